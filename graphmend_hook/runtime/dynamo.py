"""Questions to Dynamo about the place that it is tracing: all that this package knows of Dynamo's tracer.

The functions marked constant run for real while Dynamo traces their caller; their result is a constant of the graph.
"""

from __future__ import annotations

import logging
import operator
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import torch

from . import refusals

log = logging.getLogger("graphmend_hook.trace")
P = ParamSpec("P")
T = TypeVar("T")

VALUES = "gm\u01c3values"  # the local name under which rewritten code holds the arguments of an effect
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"


def at_trace_time(otherwise: T) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """What `torch.compiler.assume_constant_result` does, without the import of Dynamo that it takes.

    A question that this torch's tracer cannot answer must not end the trace: the answer is then `otherwise`.
    Dynamo stores the result as a global of the traced module under the name of the function's code, so the name is
    one that no module has.
    """

    def mark(question: Callable[P, T]) -> Callable[P, T]:
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return question(*args, **kwargs)
            except Exception as error:
                if type(error).__name__ == "UnspecializeRestartAnalysis":  # an order to Dynamo, see `_trace_without`
                    raise
                log.warning("%s cannot be told of torch %s", question.__name__, torch.__version__, exc_info=True)
                return otherwise

        ask._dynamo_marked_constant = True  # type: ignore[attr-defined]
        ask.__code__ = ask.__code__.replace(co_name=f"_@graphmend_{question.__name__}")
        return ask

    return mark


@at_trace_time(otherwise="GM101-T09")
def standing(is_warning: bool, repeats: bool) -> str:
    """ "" where an effect may wait for the end of the graph, else the code of the refusal.

    is_warning: the effect is a warning, which a filter may turn into an exception.
    repeats: a second call with the same arguments has the effect again.
    """
    from ..epilogue.deliver import drain
    from ..epilogue.install import connect

    connect()
    drain()  # what another way to compile may have left behind; Dynamo must find the list empty
    translator = _translator()
    if not _is_reached_by_epilogue(translator):
        return "GM101-T09"
    if is_warning and any(action == "error" for action, *_ in warnings.filters):
        return "GM101-T07"
    if _is_redirected(translator):
        return "GM101-T05"
    if _has_outside_container(translator):
        return "GM101-T04"
    if _is_caught(translator):
        return "GM101-T10"
    bodies = _enclosing_bodies(translator)
    if len(bodies) > 1 or any(body != _CHECKPOINT for body in bodies):
        return "GM101-T06"
    if bodies and repeats and torch.is_grad_enabled() and not translator.one_graph:
        return "GM101-T08"
    return ""


@at_trace_time(otherwise=None)
def replay_last(identity: int) -> None:
    """Let Dynamo replay the list of that `id` after all other side effects of the trace.

    Handlers then see the state of the program as the function leaves it, nothing that they change is overwritten, and
    an exception of theirs leaves no half of it behind.  Dynamo replays in the reverse order of this dict.
    """
    tracked = _translator().output.side_effects.id_to_variable
    if next(iter(tracked)) != identity and identity in tracked:
        others = {key: variable for key, variable in tracked.items() if key != identity}
        first = tracked[identity]
        tracked.clear()
        tracked.update({identity: first, **others})


@at_trace_time(otherwise=True)
def in_a_body() -> bool:
    """Is the body of a higher-order operator being traced?  After `standing`, that is an activation checkpoint."""
    return bool(_enclosing_bodies(_translator()))


@at_trace_time(otherwise=logging.getLogger())
def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of that name; there is one for the life of the process, so it may be looked up ahead of time."""
    return logging.getLogger(name)


@at_trace_time(otherwise="GM101-T03")
def tensor_standing() -> str:
    """ "" where a tensor may be kept for the epilogue; under a function transform it is a wrapper that cannot be."""
    return "GM101-T03" if torch._C._functorch.peek_interpreter_stack() is not None else ""


@at_trace_time(otherwise=None)
def record(code: str) -> None:
    """Remember that the effect being traced stays where it is."""
    from torch._guards import TracingContext

    frames = [frame for frame in TracingContext.extract_stack() if frame.filename not in _OWN_FILES]
    frame = frames[-1] if frames else None
    place = (frame.filename, frame.lineno or 0, frame.name) if frame else ("?", 0, "?")
    if (code, *place) not in refusals.seen:
        refusals.seen.append((code, *place))
        log.debug("%s: left in place at %s:%s in %s: %s", code, *place, refusals.REFUSALS[code])


@at_trace_time(otherwise=True)
def transformed() -> bool:
    """Is the caller inside vmap, grad or another function transform, which has ways of its own with tensors?"""
    return torch._C._functorch.peek_interpreter_stack() is not None


@at_trace_time(otherwise=False)
def succeeds() -> bool:
    """Would the call that `runtime.speculation.attempt` is about to make succeed, and is the function the one named?

    The call is made on the fake tensors that stand for the traced ones, so it can only fail on types and shapes, as
    tracing it would; but a failure while tracing ends the trace.
    """
    translator = _translator()
    frame = next(frame for frame in _frames(translator) if "graphmend_function" in frame.symbolic_locals)
    held = frame.symbolic_locals
    name, function = _python(held["graphmend_name"]), _python(held["graphmend_function"])
    homes = (torch, torch.nn.functional, torch.Tensor, operator)
    if not any(getattr(home, name, None) is function for home in homes):
        return False
    arguments, options = _fake(held["graphmend_arguments"]), _fake(held["graphmend_options"])
    try:
        with translator.fake_mode:
            function(*arguments, **options)
    except Exception as error:
        log.debug("%s would fail: %s", name, error)
        return False
    return True


@at_trace_time(otherwise=None)
def round_decisions() -> None:
    """Let the tensor at hand be decided on half-precision values as they are in memory.

    Inductor keeps them in float32 inside a kernel, where what overflows in memory does not: `isinf` would not see it.
    Reading the bits as integers, and those as a float again, rounds at the price of a register; the operation between
    is there because Inductor takes away a pair of views.
    """
    frame = next(frame for frame in _frames(_translator()) if "graphmend_predicate" in frame.symbolic_locals)
    _decide_on_memory(frame.symbolic_locals["graphmend_predicate"].as_proxy().node, _FARTHEST)


def _decide_on_memory(node: torch.fx.Node, steps: int) -> torch.fx.Node:
    """What a decision is to read in the place of `node`.

    A comparison is changed where it stands; a value that is also computed with is copied, so that neither the result
    nor its gradient is touched.
    """
    if _dtype(node) in _HALF:
        return _rounded(node)
    if not node.op.startswith("call") or steps == 0 or node.meta.get("graphmend_rounded"):
        return node
    instead = {value: _decide_on_memory(value, steps - 1) for value in node.all_input_nodes}
    if all(new is old for old, new in instead.items()):
        node.meta["graphmend_rounded"] = True  # with all that it depends on
        return node
    if _dtype(node) is torch.bool:
        for old, new in instead.items():
            node.replace_input_with(old, new)
        node.meta["graphmend_rounded"] = True
        return node
    with node.graph.inserting_after(max(instead.values(), key=list(node.graph.nodes).index)):
        copied = node.graph.node_copy(node, lambda value: instead[value])
    copied.meta["graphmend_rounded"] = True
    return copied


def _dtype(node: torch.fx.Node) -> torch.dtype | None:
    return getattr(node.meta.get("example_value"), "dtype", None)


def _rounded(value: torch.fx.Node) -> torch.fx.Node:
    known = value.meta.get("graphmend_rounded_value")
    if known is not None:
        return known
    rounded, fake = value, value.meta["example_value"]
    steps = ("detach", ()), ("view", (torch.int16,)), ("bitwise_and", (-1,)), ("view", (fake.dtype,))
    for method, arguments in steps:
        with value.graph.inserting_after(rounded):
            rounded = value.graph.call_method(method, (rounded, *arguments))
        fake = getattr(fake, method)(*arguments)
        rounded.meta["example_value"], rounded.meta["graphmend_rounded"] = fake, True
    value.meta["graphmend_rounded_value"] = rounded
    return rounded


@at_trace_time(otherwise=False)
def stores_plainly(attribute: str) -> bool:
    """Does assigning to that attribute of the object at hand store the value, and nothing else?"""
    frame = next(frame for frame in _frames(_translator()) if "graphmend_owner" in frame.symbolic_locals)
    kind = frame.symbolic_locals["graphmend_owner"].python_type()
    plain = kind.__setattr__ in (object.__setattr__, torch.nn.Module.__setattr__)
    return plain and not hasattr(getattr(kind, attribute, None), "__set__")


@at_trace_time(otherwise=False)
def defined_in(modules: tuple[str, ...]) -> bool:
    """Is the function at hand defined in one of those modules?"""
    frame = next(frame for frame in _frames(_translator()) if "graphmend_check" in frame.symbolic_locals)
    return getattr(_python(frame.symbolic_locals["graphmend_check"]), "__module__", "") in modules


@at_trace_time(otherwise=0)
def remember_condition() -> int:
    """Keep the graph for the case that it fails, with the condition at hand; the number of the condition in it."""
    from ..epilogue.replay import prepare

    output = _translator().output
    frame = next(frame for frame in _frames(_translator()) if "graphmend_condition" in frame.symbolic_locals)
    if not hasattr(output, "graphmend_conditions"):
        output.graphmend_conditions = []
        output.register_finalizer_fns.append(lambda module: prepare(module, output.graphmend_conditions))
    held = frame.symbolic_locals
    values = held["graphmend_tensors"].items
    tensors = [value.as_proxy().node for value in values if value.is_tensor()]
    output.graphmend_conditions.append((held["graphmend_condition"].as_proxy().node, tensors))
    return len(output.graphmend_conditions) - 1


@at_trace_time(otherwise=False)
def reads_plainly(attribute: str) -> bool:
    """Does reading that attribute of the object at hand give what is stored, without running code of its class?"""
    frame = next(frame for frame in _frames(_translator()) if "graphmend_owner" in frame.symbolic_locals)
    kind = frame.symbolic_locals["graphmend_owner"].python_type()
    looked_up = getattr(kind, "__getattr__", torch.nn.Module.__getattr__)
    usual = kind.__getattribute__ is object.__getattribute__ and looked_up is torch.nn.Module.__getattr__
    return usual and not hasattr(getattr(kind, attribute, None), "__get__")


@at_trace_time(otherwise=False)
def begin_sides() -> bool:
    """Remember what the trace has done so far, for `end_sides`; False where the site was found to harm before."""
    translator = _translator()
    if _site(translator) in _harmful:
        return False
    output = translator.output
    if not hasattr(output, "graphmend_sides"):
        output.graphmend_sides, output.graphmend_reads = [], []
    output.graphmend_sides.append((len(output.current_tracer.graph.nodes), _changes(output)))
    return True


@at_trace_time(otherwise=None)
def end_sides(attribute: str = "") -> None:
    """Since `begin_sides`, did the trace only compute, and store that attribute?  If not, trace anew, without."""
    translator = _translator()
    output = translator.output
    count, before = output.graphmend_sides.pop()
    made = list(output.current_tracer.graph.nodes)[count:]
    output.graphmend_made = set(made)
    stored = {change for change in _changes(output) - before if not attribute or change[1] != attribute}
    if stored or not all(map(_only_computes, made)):
        _trace_without(_site(translator), "what a branch may not do happens in it")


watch, harmless = begin_sides, end_sides  # of the statement that creates a lazy attribute


@at_trace_time(otherwise=False)
def gradients_agree() -> bool:
    """Do both sides' values depend on the same tensors that require a gradient?

    If not, a tensor that only one side uses would get zeros, where it has no gradient if that side is not taken.
    """
    if not torch.is_grad_enabled():
        return True
    translator = _translator()
    frame = next(frame for frame in _frames(translator) if "graphmend_left" in frame.symbolic_locals)
    roots = [frame.symbolic_locals[key].as_proxy().node for key in ("graphmend_left", "graphmend_right")]
    made = translator.output.graphmend_made
    return _trained(roots[0], made) == _trained(roots[1], made)


@at_trace_time(otherwise=None)
def expect_no_writes() -> None:
    """Trace anew, without the site, if what is selected here, or what it is selected from, is written in place later.

    Which of the two tensors a later write changes is for the data to decide; fake tensors count writes, also those to
    an alias, so the counts are looked at when the graph is complete.
    """
    translator = _translator()
    output = translator.output
    frame = next(frame for frame in _frames(translator) if "graphmend_left" in frame.symbolic_locals)
    if not output.graphmend_reads:
        output.register_finalizer_fns.append(lambda _graph: _judge_writes(output))
    for key in ("graphmend_left", "graphmend_right", "graphmend_selected"):
        node = frame.symbolic_locals[key].as_proxy().node
        output.graphmend_reads.append([_site(translator), node, _version(node)])


@at_trace_time(otherwise=None)
def accept_write() -> None:
    """The write that has just been traced is the branch's own."""
    output = _translator().output
    site = output.graphmend_reads[-1][0] if output.graphmend_reads else None
    for read in output.graphmend_reads:
        if read[0] == site:
            read[2] = _version(read[1])


def _judge_writes(output: Any) -> None:
    for site, node, version in output.graphmend_reads:
        if _version(node) != version:
            _trace_without(site, "a tensor that a branch selects is written in place later")


def _version(node: torch.fx.Node) -> int:
    fake = node.meta["example_value"]
    return -1 if fake.is_inference() else int(fake._version)


def _trained(root: torch.fx.Node, made: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """The tensors that require a gradient, made outside the sides, on which `root` depends."""
    found, waiting, seen = set(), [root], {root}
    while waiting:
        node = waiting.pop()
        if not getattr(node.meta.get("example_value"), "requires_grad", True):
            continue
        if node not in made or node.op == "placeholder":
            found.add(node)
            continue
        waiting += [value for value in node.all_input_nodes if value not in seen]
        seen.update(node.all_input_nodes)
    return found


def _trace_without(site: tuple[str, int], reason: str) -> None:
    from torch._dynamo.exc import UnspecializeRestartAnalysis  # the one that also forgets where the trace has been

    _harmful.add(site)
    raise UnspecializeRestartAnalysis(restart_reason=f"graphmend_hook: {reason}")


def in_any_body(function: Callable[..., Any], *args: Any) -> None:
    """Call `function` with Dynamo's check for side effects of higher-order bodies off, for this call only."""
    from torch._dynamo.utils import _disable_side_effect_safety_checks_for_current_subtracer as unchecked

    unchecked(function, *args)


def _changes(output: Any) -> set[tuple[int, str]]:
    """The attributes that the trace has stored on objects older than it, and the containers that it has changed."""
    effects = output.side_effects
    stored = {
        (id(variable), attribute)
        for variable, attributes in effects.store_attr_mutations.items()
        if not type(variable.mutation_type).__name__.endswith("New")
        for attribute in attributes
    }
    return stored | {
        (id(variable), "")
        for variable in effects.id_to_variable.values()
        if getattr(variable.mutation_type, "is_modified", False)
    }


def _only_computes(node: torch.fx.Node) -> bool:
    """Does the operation neither write in place nor draw random numbers?"""
    if not node.op.startswith("call"):
        return True
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if getattr(node.target, "__module__", "") == "_operator":
        return name not in _WRITING_OPERATORS
    writes = name.endswith("_") and not name.endswith("__")
    return not writes and not name.startswith(_RANDOM) and "out" not in node.kwargs and not node.kwargs.get("inplace")


def _site(translator: Any) -> tuple[str, int]:
    """The innermost place outside this package."""
    frame = next(frame for frame in _frames(translator) if frame.f_code.co_filename not in _OWN_FILES)
    return frame.f_code.co_filename, frame.lineno


def _python(variable: Any) -> Any:
    """The Python object that a variable of Dynamo stands for."""
    variable = variable.realize()
    for holder in ("value", "fn"):
        if hasattr(variable, holder):
            return getattr(variable, holder)
    return variable.as_python_constant()


def _fake(variable: Any) -> Any:
    """The same with fake tensors for the traced ones."""
    variable = variable.realize()
    kind = type(variable).__name__
    if variable.is_tensor() or kind == "SymNodeVariable":
        return variable.as_proxy().node.meta["example_value"]
    if kind in ("TupleVariable", "ListVariable", "SizeVariable"):
        return variable.python_type()([_fake(item) for item in variable.items])
    if kind == "ConstDictVariable":
        return {_python(key.vt): _fake(value) for key, value in variable.items.items()}
    if kind == "SliceVariable":
        return slice(*[_fake(item) for item in variable.items])
    return _python(variable)


def _translator() -> Any:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx().output.current_tx  # the first is that of the outermost frame


def _is_reached_by_epilogue(translator: Any) -> bool:
    """Will the code generated from this trace go through the bytecode hooks, run here, and replay side effects?

    `aot_compile` and export capture without the hooks, and precompiled code runs in other processes.
    """
    from torch._dynamo import config

    if getattr(translator.output, "package", None) is not None or not getattr(config, "replay_side_effects", True):
        return False
    if getattr(config, "side_effect_replay_policy", "") in ("warn", "error"):
        return False
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_compile_inner":  # the one that calls the hooks
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def _is_redirected(translator: Any) -> bool:
    """May the effect go elsewhere, here, than at the end of the graph?

    So it may in a context manager of the program's (redirect_stdout, catch_warnings, a log capture) in any traced
    frame, and where traced code has assigned to `sys` (a stream), `warnings` or `logging`.
    """
    from torch._dynamo.variables.ctx_manager import CatchWarningsCtxManagerVariable, GenericContextWrappingVariable

    for changed in translator.output.side_effects.store_attr_mutations:
        if getattr(changed, "value", None) in (sys, warnings, logging):
            return True
    redirecting = (CatchWarningsCtxManagerVariable, GenericContextWrappingVariable)
    return any(
        isinstance(block.with_context, redirecting)
        for frame in _frames(translator)
        for block in getattr(frame, "block_stack", ())
    )


def _is_caught(translator: Any) -> bool:
    """Is there an ``except`` around the statement in any traced frame?  It could not catch what a delivery raises."""
    return any(_in_try(frame) for frame in _frames(translator) if frame.f_code.co_filename not in _OWN_FILES)


def _has_outside_container(translator: Any) -> bool:
    """Is a value a list or dict that is older than the trace?  Copying it would guard on all that is in it."""
    frame = next((frame for frame in _frames(translator) if VALUES in getattr(frame, "symbolic_locals", ())), None)
    values = getattr(frame and frame.symbolic_locals[VALUES], "items", None)
    for value in values if isinstance(values, list) else ():
        if hasattr(value, "is_realized") and not value.is_realized():
            if value.peek_type() in (list, dict):
                return True
        elif value.source is not None and type(value).__name__ in ("ListVariable", "ConstDictVariable"):
            return True
    return False


def _in_try(frame: Any) -> bool:
    if sys.version_info < (3, 11):
        return any(block.with_context is None for block in frame.block_stack)
    entry, seen = frame.current_instruction.exn_tab_entry, set()
    while entry is not None and id(entry.target) not in seen:
        seen.add(id(entry.target))
        at = frame.indexof[entry.target]
        names = [instruction.opname for instruction in frame.instructions[at : at + 12]]
        bare = names[:2] == ["PUSH_EXC_INFO", "POP_TOP"]
        if bare or "CHECK_EXC_MATCH" in names or "CHECK_EG_MATCH" in names:
            return True
        entry = entry.target.exn_tab_entry  # the handler of a `with` or a `finally` stands in the block around it
    return False


def _frames(translator: Any) -> Iterator[Any]:
    while translator is not None:
        yield translator
        translator = translator.parent


def _enclosing_bodies(translator: Any) -> list[str]:
    """The higher-order operators whose bodies are being traced, innermost first."""
    bodies, tracer = [], translator.output.current_tracer
    while tracer.parent is not None:
        bodies.append(str(getattr(tracer, "description", None) or tracer.source_target))
        tracer = tracer.parent
    return bodies


_harmful: set[tuple[str, int]] = set()
_FARTHEST = 4  # how many operations may stand between a half-precision value and the decision
_HALF = (torch.float16, torch.bfloat16)
_WRITING_OPERATORS = {name for name in dir(operator) if name[0] == "i" and hasattr(operator, name[1:])} | {
    "ifloordiv",
    "itruediv",
    "iand",
    "ior",
    "setitem",
    "delitem",
}
_RANDOM = ("rand", "dropout", "bernoulli", "multinomial", "normal", "poisson", "alpha_dropout", "feature_", "rrelu")
_OWN_FILES = {
    __file__.replace("dynamo.py", f"{name}.py") for name in ("dynamo", "effects", "guards", "select", "speculation")
}
