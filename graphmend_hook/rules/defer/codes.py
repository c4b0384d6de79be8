"""What [Defer] says of an effect that is left as it was written."""

from __future__ import annotations

from ...diagnostics import code

NEEDS_ITS_MOMENT = code(
    "GM101-R01",
    sentence="no keyword that reads the exception or the stack, or has processes wait for each other",
    remedy="Leave `exc_info`, `stack_info` and what waits for other processes out of the call.",
    because="a keyword reads the exception or the stack (`exc_info`, `stack_info`, `source`, `use_call_stack`), or has processes wait for each other (`in_order`)",
)
UNPACKED = code(
    "GM101-R02",
    sentence="nothing is unpacked but the function's own ``*args`` and ``**kwargs``, as Python has made them",
    remedy="Write the arguments of the call out.",
    because="`*args` or `**kwargs` in the call that are not the function's own",
)
MAY_BE_CAUGHT = code(
    "GM101-R03",
    sentence="no handler in the function could catch what the call raises, unless a logger that is off may say nothing",
    remedy="Move the call out of the `try`, whichever exceptions its handlers name; a `finally` alone may stay around it.",
    because="a handler in the function could catch what the call raises, and it is no log that may be off",
)
READS_FRAME = code(
    "GM101-R04",
    sentence="the function does not read its own frame",
    remedy="Leave `locals()`, `sys._getframe`, `exec` and their like out of the function, or log from another.",
    because="the function reads its own frame: `locals()`, `exec`, `eval`, frame objects",
)
TO_A_FILE = code(
    "GM101-R06",
    sentence="``print`` goes to sys.stdout or sys.stderr",
    remedy="Print to sys.stdout or sys.stderr, or write the file after the call of the compiled function.",
    because="`print(..., file=...)` to a file object",
)
IN_COROUTINE = code(
    "GM101-R07",
    sentence="the function is not a coroutine: Dynamo does not trace those",
    remedy="Log from a plain function, which the coroutine calls.",
    because="the function is a coroutine",
)
VALUE_USED = code(
    "GM101-R08",
    sentence="the call's value is not used",
    remedy="Let the call stand alone: what print and loggers return is None.",
    because="the value of the call is used",
)
TEXT_MAY_CHANGE = code(
    "GM101-R09",
    sentence="no argument that is evaluated after text is formatted could change the text",
    remedy="Compute such an argument in the line before, and log its name.",
    because="text is formatted before a later argument makes a call that could change it",
)
READS_CLOCK = code(
    "GM101-R11",
    sentence="no clock is read that gives no number, as `datetime.now` does",
    remedy="Read `time.time()`, which gives one, or read this clock before and after the call of the compiled function.",
    because="a clock is read that gives no number",
)
UNKNOWN_CALL = code(
    "GM101-T01",
    sentence="the call is not print, warnings.warn or a method that a logger has from logging.Logger",
    remedy="Log by `logging`, warn by `warnings.warn`, or print; other calls with effects belong around the compiled call.",
    because="the call is not `print` or `warnings.warn`, its receiver is no `logging.Logger` after all, nor another logger that is known",
)
SHOWS_AUTOGRAD = code(
    "GM101-T02",
    sentence="an argument is a tensor whose `grad_fn` in eager is not known, or a subclass of Tensor",
    remedy="Log `tensor.detach()`, or a number of it.",
    because="a tensor whose `grad_fn` in eager is not known, as that of one which a merged branch has given; or a subclass",
)
TENSOR_IN_TRANSFORM = code(
    "GM101-T03",
    sentence="an argument is a tensor inside vmap, grad or another function transform",
    remedy="Log around the function transform.",
)
MAY_CHANGE = code(
    "GM101-T04",
    sentence="an argument is an object whose text may change before the effect is delivered, or is too big to copy",
    remedy="Log a text, a number or a tensor in the place of the object: `str(config)` before the model is compiled.",
    because="an object whose text may change until delivery, a list or dict from outside, one too big to copy, a number that `random` draws, a tensor that `warning_once` is given",
)
REDIRECTED = code(
    "GM101-T05",
    sentence="the call stands in a context manager that may swallow an exception, or behind an assignment that may redirect it or change its text",
    remedy="Move the call out of the `with`, and in front of what changes stdout, print settings or the logger.",
    because="the call stands in a context manager of the program's own that may swallow an exception, in `catch_warnings`, or after `sys.stdout = ...`",
)
FORBIDDEN = code(
    "GM101-T06",
    sentence="the call stands in the body of a higher-order operator that forbids side effects",
    remedy="Log outside the body of the operator.",
    because="the call stands in the body of a higher-order operator that forbids side effects (`torch.cond`)",
)
WARNING_RAISES = code(
    "GM101-T07",
    sentence="a warnings filter turns warnings into errors, which must be raised where they arise",
    remedy="Compile without a filter that makes errors of warnings, whichever they are: no `-W error`, no `warnings.simplefilter('error')`.",
)
NO_EPILOGUE = code(
    "GM101-T09",
    sentence="this torch, or this way to compile, generates code that the epilogue cannot reach",
    remedy="Compile at the first call (not `aot_compile`, no precompile package) on torch 2.12 to 2.15, or log outside.",
    because="this torch (GM005), or this way to compile (`aot_compile`, precompile, `replay_side_effects=False`), has no epilogue",
)
HANDLER_AROUND = code(
    "GM101-T10",
    sentence="a handler around a traced call could catch what the effect raises, or a `finally` or hook act on it",
    remedy="Make the call that logs outside the `try`, whichever exceptions its handlers name.",
    because="an `except` around a traced call could catch what the effect raises; of a guard also a `finally` or a hook that acts on it",
)
NEEDS_ITS_BREAKS = code(
    "GM101-T11",
    sentence="the frame needs its breaks: compiling it without them fails, or an `assert` in it stands in a `try`",
    remedy="Mend what breaks beside it first (`graphmend explain` shows what), and move an `assert` out of the `try`.",
)
IN_FINALLY = code(
    "GM101-T12",
    sentence="the effect stands in a `finally` and would also follow a guard, or a call before it, that raises",
    remedy="Log before or after the `try`, and not in its `finally`.",
    because="the effect stands in a `finally` and would also follow a guard, or a call before it, that raises (`fullgraph=True`; else T11)",
)
HAD_AGAIN = code(
    "GM101-T14",
    sentence="activation checkpointing has the effect again in backward; the graph has it once, in forward",
    remedy="Nothing, if one record a step is right; else log outside the checkpointed block.",
)
SHOWS_CALLER = code(
    "GM101-T15",
    sentence="the call shows a caller that is not traced, or that is not known to be the one eager would show",
    remedy="Call the logging function from code that is traced, or leave `stacklevel` out.",
)
READS_STACK = code(
    "GM101-T16",
    sentence="the call reads the exception or the stack of its moment, or has a `stacklevel` that is no number",
    remedy="Write `stacklevel` as a number, and leave `exc_info=True` out.",
    because="keywords that are given on read the exception or the stack, or `stacklevel` is no number",
)
CACHED = code(
    "GM101-T17",
    sentence="the function is behind a cache of functools, so that it has the effect once, and the trace each time",
    remedy="Log outside the function that is cached.",
)
LOGGER_CHANGES = code(
    "GM101-T18",
    sentence="the logger shows what is not plain, or what the traced code changes, or not its direct caller",
    remedy="Bind the logger, and what it shows, before the model is compiled; leave `bind` and `opt` out of `forward`.",
    because="the logger shows values of its own that are not plain, or that the traced code changes; or not its direct caller",
)
