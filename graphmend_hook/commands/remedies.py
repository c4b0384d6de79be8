"""What to do about each refusal: a sentence for a person, and for some codes the same statement before and after.

A refusal that several rules share has one remedy, by its number (``R10`` is that of GM102-R10 and GM103-R10).
"""

from __future__ import annotations

from dataclasses import dataclass

_ASSIGN = "Give what the side computes to names, and do the rest after the branch"

REMEDIES = {
    "R01": "Give the expression in the middle of the chained comparison a name, in the line before.",
    "R02": "Leave calls of the program's own out of the sides: compute in front of the branch what does not depend on it.",
    "R03": "Bind the name before the branch, also where it is read on one side only.",
    "R04": "Write and read the attribute through the same name: `self.x`, not `self.x` and `model.x`.",
    "R05": "Bind the name on both sides, or before the branch.",
    "R06": "Move the `return` out of the loop, `with` or `try`: keep the value in a name, and return that after it.",
    "R07": "Make the sides small: put what does not depend on the test in front of the branch, or after it.",
    "R08": f"{_ASSIGN}: calls whose value is dropped, stores to items, loops and `with` are not taken.",
    "R09": "Make the log on the side one that [Defer] takes, or move it behind the branch; its own code says what is in the way.",
    "R10": "Move the statement into a plain function, which the coroutine or generator calls.",
    "R11": "Leave `locals()`, `sys._getframe`, `exec` and their like out of the function, or move the statement into another.",
    "R12": "Compile the function by torch.compile alone: numba, triton or TorchScript read its text by themselves.",
    "R13": "Write out what is raised: `raise ValueError(...)`, and not `raise` alone.",
    "R14": "Build the message of names, attributes, shapes and tensors; compute the rest in a line before.",
    "R15": "Leave the side at its end: no `break`, `continue` or `return` of its own there.",
    "R16": "Move the statement out of the `try`, or let its handlers name exceptions that the statement does not raise.",
    "R17": "Do not write to the result in place, and do not look at it by `is`, `in`, `.grad` or hooks: `x = x + 1`, not `x += 1`.",
    "R18": "Give each conditional expression a statement of its own.",
    "R19": "Write the arguments of the check out, as its signature has them.",
    "R20": "Leave questions about `requires_grad` out of the function; the model's parameters can be asked before.",
    "GM101-R01": "Leave `exc_info`, `stack_info` and what waits for other processes out of the call.",
    "GM101-R02": "Write the arguments of the call out.",
    "GM101-R03": "Move the call out of the `try`, or let its handlers name exceptions that no log raises.",
    "GM101-R04": "Leave `locals()`, `sys._getframe`, `exec` and their like out of the function, or log from another.",
    "GM101-R05": "Compile the function by torch.compile alone: numba, triton or TorchScript read its text by themselves.",
    "GM101-R06": "Print to sys.stdout or sys.stderr, or write the file after the call of the compiled function.",
    "GM101-R07": "Log from a plain function, which the coroutine calls.",
    "GM101-R08": "Let the call stand alone: what print and loggers return is None.",
    "GM101-R09": "Compute such an argument in the line before, and log its name.",
    "GM101-R10": "Compare the number that is drawn directly, in its own `if`, and draw it by a plain call.",
    "GM101-R11": "Read the clock before and after the call of the compiled function.",
    "GM101-T01": "Log by `logging`, warn by `warnings.warn`, or print; other calls with effects belong around the compiled call.",
    "GM101-T02": "Log `tensor.detach()`, or a number of it.",
    "GM101-T03": "Log around the function transform.",
    "GM101-T04": "Log a text, a number or a tensor in the place of the object: `str(config)` before the model is compiled.",
    "GM101-T05": "Move the call out of the `with`, and in front of what changes stdout, print settings or the logger.",
    "GM101-T06": "Log outside the body of the operator.",
    "GM101-T07": "Let the warning be a warning while the model is compiled: `warnings.filterwarnings('default', ...)` for it.",
    "GM101-T08": "Compile with `fullgraph=True`, or log outside the checkpointed block.",
    "GM101-T09": "Compile at the first call (not `aot_compile`, no precompile package) on torch 2.12 to 2.15, or log outside.",
    "GM101-T10": "Let the handler around the caller name exceptions that no log raises.",
    "GM101-T11": "Mend what breaks beside it first: `graphmend explain` shows what.",
    "GM101-T12": "Log before or after the `try`, and not in its `finally`.",
    "GM101-T13": "Compare the number that is drawn, and do nothing else with it.",
    "GM101-T14": "Nothing, if one record a step is right; else log outside the checkpointed block.",
    "GM101-T15": "Call the logging function from code that is traced, or leave `stacklevel` out.",
    "GM101-T16": "Write `stacklevel` as a number, and leave `exc_info=True` out.",
    "GM101-T17": "Log outside the function that is cached.",
    "GM101-T18": "Bind the logger, and what it shows, before the model is compiled; leave `bind` and `opt` out of `forward`.",
    "GM103-T01": "Leave `--guards` at exact (GRAPHMEND_GUARDS, install(guards=...)).",
    "GM105-R01": "Let the step compute from its rows and end with one `index_add_` or assignment at the index.",
    "GM105-R02": "Do not read after the loop what one of its steps has bound.",
    "GM105-T01": "Let the step compute from its rows alone, by operations that work on no rows.",
    "GM105-T02": "Use the parameters of a step in that step alone, or train with torch.compile around each expert.",
    "GM105-T03": "Use fewer steps than 64, or a grouped product of matrices in the place of the loop.",
    "GM102-T01": "Ask for one element: `.any()`, `.all()` or an index.",
    "GM102-T02": "Make the sides alike: the same dtype, shape, device and memory format, and tensors of their own (`x.clone()`).",
    "GM102-T03": "Let the sides give tensors, or the same Python value; what else depends on data has to break.",
    "GM102-T04": "Move the operation in front of the branch if it may run always, or use `torch.where` on inputs where it is safe.",
    "GM102-T05": "Let the side be one that works on these shapes whether it is taken or not.",
    "GM102-T06": "Compute under `torch.no_grad()` where no gradient is wanted, or clamp what is singular (`x.clamp(min=eps).log()`).",
    "GM102-T07": "Branch outside the function transform, or use `torch.where`.",
    "GM102-T08": "Give the inner test a name in front of the outer branch.",
    "GM102-T09": "Assign to a plain attribute that the object has already, and read it after the branch.",
    "GM102-T10": "Write to a copy (`x = x.clone()`), or select: `x = torch.where(mask, new, x)`.",
    "GM102-T11": f"{_ASSIGN}; do not write to the result in place.",
    "GM104-T01": "Read the number around the compiled call and hand it in, or compute with the tensor.",
    "GM104-T02": "Name the input by `--values NAME` (GRAPHMEND_VALUES, install(values=...)) if it takes few values.",
    "GM104-T03": "Read the number before the tensor is written to, or write to a copy.",
    "GM104-T04": "Compile without saving the code, and without a `guard_filter_fn` that may drop guards on values.",
    "GM104-T05": "Take the input out of `--values`: it takes more than four values.",
    "GM104-T06": "Pad what the data makes small, or read the number around the compiled call.",
    "GM104-T07": "Give the loop a number of steps that the shape or a constant decides.",
    "GM104-T08": "Split by sizes that are known (`tensor_split`, padding), or around the compiled call.",
    "GM104-T09": "Look at the line that the reason names; `# graphmend: off[value]` there saves the attempts.",
    "GM106-T01": "Set `requires_grad` before the call of the compiled function, or leave it out.",
    "GM106-T02": "Set `requires_grad` before the call of the compiled function.",
}


@dataclass(frozen=True)
class Example:
    """A function that is declined with a code, and one that does the same and is mended."""

    before: str
    after: str


EXAMPLES = {
    "GM102-R05": Example(
        "def f(x):\n    if x.sum() > 0:\n        y = x + 1\n    return y\n",
        "def f(x):\n    y = x\n    if x.sum() > 0:\n        y = x + 1\n    return y\n",
    ),
    "GM102-R06": Example(
        "def f(x):\n    for _ in range(3):\n        if x.sum() > 0:\n            return x + 1\n    return x\n",
        "def f(x):\n    if x.sum() > 0:\n        return x + 1\n    return x\n",
    ),
    "GM102-R08": Example(
        "def f(x, out):\n    if x.sum() > 0:\n        out[0] = x\n    return out\n",
        "def f(x, out):\n    y = out\n    if x.sum() > 0:\n        y = x\n    return y\n",
    ),
    "GM103-R16": Example(
        "def f(x):\n    try:\n        if x.sum() > 0:\n            raise ValueError('no')\n    except ValueError:\n        pass\n",
        "def f(x):\n    if x.sum() > 0:\n        raise ValueError('no')\n",
    ),
    "GM101-R08": Example("def f(x):\n    y = print(x)\n    return y\n", "def f(x):\n    print(x)\n"),
    "GM101-R01": Example("def f(x):\n    logger.info('x', exc_info=True)\n", "def f(x):\n    logger.info('x')\n"),
    "GM101-R02": Example("def f(x, y):\n    logger.info(*y)\n", "def f(x, y):\n    logger.info('%s', y)\n"),
    "GM101-R07": Example("async def f(x):\n    print(x)\n", "def f(x):\n    print(x)\n"),
    "GM101-R03": Example(
        "def f(x):\n    try:\n        print(x)\n    except Exception:\n        pass\n", "def f(x):\n    print(x)\n"
    ),
    "GM102-R10": Example(
        "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    yield x\n",
        "def f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n",
    ),
}

_CONFIG = "class Config:\n    size = 3\n\nconfig = Config()\n"
# Of codes while tracing: `f` is compiled.
EXAMPLES_TRACED = {
    "GM101-T03": Example(
        "def g(x):\n    logger.info('in %s', x)\n    return x + 1\n\ndef f(x):\n    return torch.vmap(g)(x)\n",
        "def g(x):\n    return x + 1\n\ndef f(x):\n    logger.info('in %s', x)\n    return torch.vmap(g)(x)\n",
    ),
    "GM101-T04": Example(
        f"{_CONFIG}\ndef f(x):\n    logger.info('%s', config)\n    return x + 1\n",
        f"{_CONFIG}text = str(config)\n\ndef f(x):\n    logger.info('%s', text)\n    return x + 1\n",
    ),
    "GM102-T02": Example(
        "def f(x):\n    if x.sum() > 0:\n        return x + 1\n    return x.long()\n",
        "def f(x):\n    if x.sum() > 0:\n        return x + 1\n    return x.trunc()\n",
    ),
    "GM102-T03": Example(
        "def f(x):\n    if x.sum() > 0:\n        factor = 1.0\n    else:\n        factor = 2.0\n    return x * factor\n",
        "def f(x):\n    if x.sum() > 0:\n        y = x * 1.0\n    else:\n        y = x * 2.0\n    return y\n",
    ),
    "GM104-T07": Example(
        "def f(x, n):\n    while n > 0:\n        x, n = x + 1, n - 1\n    return x\n",
        "def f(x, n):\n    for step in range(3):\n        x = torch.where(step < n, x + 1, x)\n    return x\n",
    ),
    "GM106-T02": Example(
        "def f(x):\n    y = x * 2\n    y.requires_grad_()\n    return y * 2\n",
        "def f(x):\n    y = x * 2\n    return y * 2\n",
    ),
}
EXAMPLES |= EXAMPLES_TRACED


def remedy(code: str) -> str:
    """What to do about the refusal `code`.  Raises KeyError for what is none."""
    return REMEDIES[code] if code in REMEDIES else REMEDIES[code.partition("-")[2]]
