"""Questions about the sides of a branch: what may be done in them, and what they have done once they are traced."""

from __future__ import annotations

import builtins
import enum
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn

import torch

from ...engine.attempt.as_written import is_as_written
from ...engine.attempt.attempt import INLINED, STATEMENT, Feature
from ...engine.attempt.compilation import Compilation, is_break_or_failure, is_order
from ...engine.attempt.refusals import Place
from ...engine.attempt.refusals import record as record_here
from ...engine.door.callers import is_called_by_the_program
from ...engine.door.own_code import is_of_package
from ...engine.door.question import question
from ...engine.door.trace_state import State
from ...engine.door.tracer import SourceLine, Trace, is_caught, log
from ...engine.door.variables import (
    LITTLE,
    Variable,
    bytes_of,
    fake_of,
    is_contiguous,
    is_known,
    python_of,
    same_sizes,
    tensor_node,
    type_of,
)
from ...engine.facts.object_identity import before_questions
from ...engine.facts.operations import divides_whole_numbers, facts_of, is_plain, name_of, only_computes, written_nodes
from ...engine.facts.writes import (
    are_apart,
    example_of,
    fakes_of,
    memory_of,
    memory_of_fake,
    memory_of_inference,
    operations,
    written_by,
)
from ...engine.graph_end.order import Verdict
from ...engine.numbers.size_guards import SizeGuards
from ..defer.codes import NEEDS_ITS_BREAKS
from ..where.codes import ENDS_GRAPH, GRADIENTS_DIFFER, HARMFUL, SIDES_DIFFER, SIZE_FIXED

# Where a module keeps what it registers; and the modules of types whose methods are nobody's own.
REGISTRIES = ("_parameters", "_buffers", "_modules")
# What Python ends a loop or a generator by, and what `getattr` and `hasattr` make of an attribute that is not there.
_CAUGHT_BY_PYTHON = (AttributeError, StopIteration, StopAsyncIteration, GeneratorExit)
_HOMES_OF_VALUES = frozenset({"builtins", "collections", "numpy", "torch", "types"})

_InTrace = tuple[SourceLine | None, int]  # a line, and how often the trace has reached it before


_BRANCH = Feature("both sides of a branch are traced")  # by its place in the trace


@dataclass
class _Open:
    """A branch whose sides are being traced.

    at: its place in the trace; place, code: that in the program.
    nodes, state, guards, sizes: those that there were before.
    predicate: its condition, where that is known; is_where_true: is that the side which is taken where it is true?
    """

    at: _InTrace
    place: Place
    code: CodeType | None
    nodes: set[torch.fx.Node]
    state: State
    guards: int
    sizes: SizeGuards
    predicate: Variable = None
    is_where_true: bool = True


@dataclass
class Sides:
    """The branches whose sides are being traced, one in another.

    made: the nodes of the sides traced last; last: the branch that they are of; met: how often a line was reached.
    """

    open: list[_Open] = field(default_factory=list)
    made: set[torch.fx.Node] = field(default_factory=set)
    last: _Open | None = None
    met: Counter[SourceLine | None] = field(default_factory=Counter)


@dataclass
class Created:
    """The attributes that sides create, by the variable of their owner; line: of the one that is being made."""

    attributes: set[tuple[int, str]] = field(default_factory=set)
    line: SourceLine | None = None


@dataclass
class Reads:
    """What branches have selected from tensors that may not be written to later."""

    found: list[_Read] = field(default_factory=list)


@question(otherwise=False)
def stores_plainly(trace: Trace, owner: Variable, attribute: str) -> bool:
    """Does assigning to that attribute of the object store the value, and nothing else?"""
    kind = owner.python_type()
    plain = kind.__setattr__ in (object.__setattr__, torch.nn.Module.__setattr__)
    return plain and not hasattr(getattr(kind, attribute, None), "__set__") and _has_itself(trace, owner, attribute)


def _has_itself(trace: Trace, owner: Variable, attribute: str) -> bool:
    """Does the object have the attribute, and not only its class, or its `__getattr__`?  Else storing makes it."""
    stored = trace.output.side_effects.store_attr_mutations.get(owner.realize(), {})
    if attribute in stored:
        return type(stored[attribute]).__name__ != "DeletedVariable"
    value = getattr(owner.realize(), "value", None)
    own = getattr(value, "__dict__", {})
    registered = [own.get(name, {}) for name in REGISTRIES] if isinstance(value, torch.nn.Module) else []
    return any(attribute in names for names in (own, *registered))


@question(otherwise=True)
def has_methods_of_the_program(_trace: Trace, value: Variable) -> bool:
    """May Python call a method that the program has written, where it compares the value, counts it, or calculates?"""
    try:
        kind = value.python_type()
    except NotImplementedError:  # Dynamo cannot tell
        return True
    return kind.__module__.partition(".")[0] not in _HOMES_OF_VALUES and not issubclass(kind, enum.Enum)


@question(otherwise=False)
def reads_plainly(_trace: Trace, owner: Variable, attribute: str) -> bool:
    """Does reading that attribute of the object give what is stored, without running code of its class?"""
    kind = owner.python_type()
    looked_up = getattr(kind, "__getattr__", torch.nn.Module.__getattr__)
    usual = kind.__getattribute__ is object.__getattribute__ and looked_up is torch.nn.Module.__getattr__
    return usual and not hasattr(getattr(kind, attribute, None), "__get__")


@question(otherwise=True)
def may_be_caught(trace: Trace, raised: Variable) -> bool:
    """May Python itself catch the exception where it is raised, as `getattr` and loops do?"""
    kind = _class_of(raised)
    names = {code.co_name for code in map(operator.attrgetter("f_code"), trace.frames_outside())}
    return issubclass(kind, _CAUGHT_BY_PYTHON) or (issubclass(kind, IndexError) and "__getitem__" in names)


def _class_of(raised: Variable) -> type:
    """The class of exceptions that the variable is, or is an instance of, or the name of, if it is a builtin."""
    try:
        value = python_of(raised)
    except NotImplementedError:
        return raised.python_type()  # type: ignore[no-any-return]
    named = getattr(builtins, value) if isinstance(value, str) else value
    return named if isinstance(named, type) else type(named)


@question(otherwise=False)
def is_defined_in(_trace: Trace, function: Variable, modules: tuple[str, ...]) -> bool:
    """Is the function defined in one of those modules?"""
    return getattr(python_of(function), "__module__", "") in modules


@question(otherwise=False)
def is_of_module(trace: Trace, owner: Variable, method: str) -> bool:
    """Is it `torch.nn.Module`'s method of that name?  One of the program's could look at the line that calls it."""
    kind, own = owner.python_type(), getattr(owner.realize(), "value", None)
    is_own = method in getattr(own, "__dict__", {})
    if is_own or getattr(kind, method, None) is not getattr(torch.nn.Module, method):
        record_here(HARMFUL)
        return False
    return True


_HARMFUL: tuple[str, ...] = (HARMFUL,)


@question(otherwise=_HARMFUL)
def why_not_begun(trace: Trace) -> tuple[str, ...]:
    """Remember what the trace has done so far, for `end_sides`; or why the place may not be a branch."""
    return _why_not_begun(trace)


def _why_not_begun(trace: Trace, predicate: Variable = None) -> tuple[str, ...]:
    if is_harmful(trace):
        return _HARMFUL
    sides = trace.compilation.of(Sides)
    at = trace.line, sides.met[trace.line]
    sides.met[trace.line] += 1
    dropped = trace.compilation.dropped(_BRANCH, at)
    if dropped is not None:
        return (dropped.code, dropped.about) if dropped.about else (dropped.code,)
    guards, sizes = len(trace.output.guards), SizeGuards(trace.output)
    sides.open.append(
        _Open(at, trace.place, trace.code, set(trace.graph.nodes), State(trace), guards, sizes, predicate)
    )
    trace.compilation.at_end(_judge_open)
    return ()


@question(otherwise=None)
def end_sides(trace: Trace) -> None:
    """Since `why_not_begun`, did the trace only compute?  If not, trace anew, without.

    So too where the sides turned out unspeculable: what their first statements did is done.
    """
    _end(trace)


def _end(trace: Trace) -> None:
    sides = trace.compilation.of(Sides)
    before = sides.last = sides.open.pop()
    made = [node for node in trace.graph.nodes if node not in before.nodes]
    sides.made = set(made)
    changed = State(trace).changed_since(before.state)
    before.state.modes.restore()
    if changed or not all(map(only_computes, made)):
        log.debug("in a branch: %s", changed or "an operation that does more than compute")
        trace.compilation.without(STATEMENT.at(trace.line), reason="what a branch may not do happens in it")
    if before.sizes.have_fixed():
        _give_up(trace.compilation, before, (SIZE_FIXED,))


@question(otherwise=None)
def give_up_sides(trace: Trace, why: tuple[str, ...]) -> None:
    """The sides that were traced last are not merged: trace anew, without, if guards are left of them.

    They would be guards of the whole frame.  Of a branch in a side the one around it is given up.
    """
    sides = trace.compilation.of(Sides)
    before = sides.last
    if before is None or sides.open:
        return
    new = itertools.islice(trace.output.guards, before.guards, None)
    if any(not is_of_package(guard.name) for guard in new) or before.sizes.have_grown():
        _give_up(trace.compilation, before, why)


def _give_up(compilation: Compilation, branch: _Open, why: tuple[str, ...]) -> NoReturn:
    """Trace the frame anew, with that branch as it was written in this compilation."""
    code, about = (*why, "")[:2]
    compilation.without(_BRANCH.at(branch.at, code, about, branch.place), reason=f"a branch is given up: {code}")


def _judge_open(compilation: Compilation, error: BaseException | None) -> None:
    """Has the attempt ended in a side, by a graph break or an error?  Dynamo would break where the sides are called."""
    sides = compilation.of(Sides).open
    if sides and is_break_or_failure(error):
        _give_up(compilation, sides[0], (ENDS_GRAPH,))


@question(otherwise=_HARMFUL)
def why_not_entered(trace: Trace, predicate: Variable) -> tuple[str, ...]:
    """As `why_not_begun`, and from here on the side is traced that is taken where the predicate is true."""
    return (NEEDS_ITS_BREAKS,) if is_as_written(trace) else _why_not_begun(trace, predicate)


@question(otherwise=None)
def enter_other_side(trace: Trace) -> None:
    """From here on, the side is traced that is taken where the predicate is false."""
    trace.compilation.of(Sides).open[-1].is_where_true = False


@question(otherwise=0)
def open_sides(trace: Trace) -> int:
    """How many sides stand around the place, one in another; 0 where the condition of one is not known."""
    sides = trace.compilation.of(Sides).open
    return len(sides) if all(side.predicate is not None for side in sides) else 0


@question(otherwise=None)
def predicate_of(trace: Trace, depth: int) -> Any:
    """The condition of the side that `depth` others stand around, a tensor () of bool."""
    return trace.compilation.of(Sides).open[depth].predicate


@question(otherwise=True)
def is_where_true(trace: Trace, depth: int) -> bool:
    """Is that side taken where its condition is true?"""
    return trace.compilation.of(Sides).open[depth].is_where_true


@question(otherwise=False)
def watch(trace: Trace, owner: Variable, attribute: str) -> bool:
    """As `why_not_begun`; what is traced from here on makes the value of an attribute that a side creates.

    It is traced once in a frame, and nowhere where a handler could catch its exception.  If it ends the graph, or the
    attempt, the frame is traced anew, without.
    """
    key = id(owner.realize()), attribute
    if is_harmful(trace):
        return False
    if is_caught(trace) or key in trace.compilation.of(Created).attributes:
        trace.compilation.without(STATEMENT.at(trace.line), reason="an attribute is created where that cannot wait")
    trace.compilation.of(Created).attributes.add(key)
    trace.compilation.of(Created).line = trace.line
    trace.compilation.judge(Verdict.CREATED, _judge_creation)
    trace.compilation.at_end(_judge_creation)
    return not _why_not_begun(trace)


@question(otherwise=None)
def harmless(trace: Trace) -> None:
    """As `end_sides`; what was traced can also not fail, takes little memory, and is not trained."""
    trace.compilation.of(Created).line = None
    _end(trace)
    made = trace.compilation.of(Sides).made
    fakes = [fake for node in made for fake in fakes_of(node)]
    is_trained = any(fake.requires_grad or not fake.is_contiguous() for fake in fakes)
    if is_trained or bytes_of(fakes) > LITTLE or not all(map(_cannot_fail, made)):
        trace.compilation.without(STATEMENT.at(trace.line), reason="what a side creates may fail, or is trained")


def _cannot_fail(node: torch.fx.Node) -> bool:
    """Is it plain, or made of numbers, as `torch.arange` is?  An input that is looked at for the first time is both."""
    is_input = node.op in ("placeholder", "get_attr")
    return is_input or ((is_plain(node) or not node.all_input_nodes) and not divides_whole_numbers(node))


def _judge_creation(compilation: Compilation, end: object) -> None:
    """Has the attempt, or a graph of it, ended while the value of an attribute was made?"""
    line = compilation.of(Created).line
    if line is not None and not is_order(end) and not compilation.one_graph:
        compilation.without(STATEMENT.at(line), reason="what a side creates cannot be traced")


_DIFFERENT: tuple[str, ...] = (SIDES_DIFFER,)


@question(otherwise=_DIFFERENT, elsewhere=lambda *given: () if _differ_in_values(*given) else _DIFFERENT)
def why_not_selected(trace: Trace, predicate: Variable, left: Variable, right: Variable) -> tuple[str, ...]:
    """Why neither of the two tensors can be selected by data: a code, and what about; () where it can be."""
    kind, other = type_of(left), type_of(right)
    if kind is not other or kind is not torch.Tensor or not all(map(_is_strided, (left, right))):
        return _DIFFERENT
    if not _differ_in_values(*map(fake_of, (predicate, left, right))):
        return _DIFFERENT
    alone = _trained_alone(trace, left, right)
    return (GRADIENTS_DIFFER, alone) if alone else ()


def _is_strided(tensor: Variable) -> bool:
    """Is it laid out as most are?  The fake tensor of an input may be, where the input itself is not."""
    node = tensor_node(tensor)
    example = fake_of(tensor) if node.meta.get("grapharg") is None else example_of(node)
    return example is None or example.layout is torch.strided


def _differ_in_values(predicate: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> bool:
    """Do the tensors differ in their values only?"""
    if type(left) is not type(right) or isinstance(left, torch.nn.Parameter) or predicate.device != left.device:
        return False
    if left.dtype is not right.dtype or left.device != right.device or left.layout is not right.layout:
        return False
    if left.requires_grad != right.requires_grad or (left.requires_grad and not torch.is_grad_enabled()):
        return False  # what is selected without gradients requires none
    return bool(same_sizes(left.shape, right.shape) and same_sizes(left.stride(), right.stride()))


@question(otherwise=False, elsewhere=lambda *_given: True)
def stands_for_both(trace: Trace, selected: Variable, left: Variable, right: Variable) -> bool:
    """Are its strides, and the kind of its memory, those of what it was selected from?

    If so, the frame is traced anew, without the branch, if what is selected, or what it is selected from, is written in
    place later: which of the two tensors a later write changes is for the data to decide.  So too if the write may be
    behind the graph break that the graph ends in: if both are still there.  And so too if the program asks, in a place
    that the trace comes to, whether the one is the other.
    """
    sources = memory_of(map(tensor_node, (left, right)))
    if not torch.is_inference_mode_enabled() and not sources.isdisjoint(memory_of_inference(trace.output.graph)):
        return False
    fakes = map(fake_of, (selected, left, right))  # strides may be symbols, which have to be the same ones
    if len({(str(fake.stride()), fake.is_conj(), fake.is_neg()) for fake in fakes}) != 1:
        return False
    _expect(trace, (left, right), selected)
    return True


@question(otherwise=False)
def are_apart_or_same(_trace: Trace, results: Variable) -> bool:
    """Does none of the results of a side share the memory of another, but the same tensor?

    Of those that are selected each would have memory of its own.
    """
    nodes = {tensor_node(item) for item in results.items if item.is_tensor()}
    memories = [memory for node in nodes for memory in memory_of([node])]
    return len(memories) == len({*memories})


@question(otherwise=False)
def is_made_here(trace: Trace, tensor: Variable) -> bool:
    """Was the memory of the tensor made in this trace, and is no gradient computed with what it holds?

    To write back what it holds is a write all the same: to memory that may be read-only, that autograd has saved, or
    whose versions somebody counts.
    """
    nodes, memory = list(trace.output.graph.nodes), memory_of([tensor_node(tensor)])
    inputs = [node for node in nodes if node.op in ("placeholder", "get_attr")]
    wanted = [node for node in nodes if any(fake.requires_grad for fake in fakes_of(node))]
    return memory.isdisjoint(memory_of(inputs)) and not (torch.is_grad_enabled() and wanted)


def _trained_alone(trace: Trace, left: Variable, right: Variable) -> str:
    """A tensor that requires a gradient, on which the value of one side alone depends, by name; "" if there is none.

    It would get zeros, where it has no gradient if that side is not taken.
    """
    if not torch.is_grad_enabled():
        return ""
    made = trace.compilation.of(Sides).made
    alone = _trained(tensor_node(left), made) ^ _trained(tensor_node(right), made)
    return min((_called(node) for node in alone), default="")


def _called(node: torch.fx.Node) -> str:
    """What the program calls the tensor, if it is handed in; else what the graph does."""
    argument = node.meta.get("grapharg")
    return str(node.name if argument is None else getattr(argument.source, "name", node.name))


@question(otherwise=None)
def expect_no_alias(trace: Trace, table: Variable, item: Variable) -> None:
    """As `stands_for_both`, of a copy that stands for a part of the table, which the graph may not give away either."""
    _expect(trace, (table,), item, is_part=True)


@question(otherwise=None)
def expect_no_write(trace: Trace, operand: Variable, selected: Variable) -> None:
    """As `stands_for_both`, of a copy that an operation keeps for its gradient in the place of its operand.

    For what eager keeps is the operand, and autograd refuses to use what was written to.
    """
    _expect(trace, (operand,), selected)


def _expect(trace: Trace, sources: tuple[Variable, ...], selected: Variable, *, is_part: bool = False) -> None:
    around = trace.compilation.of(Sides).open
    line, code = (around[-1].at[0], around[-1].code) if around else (trace.line, trace.code)
    read = _Read(line, code, tuple(map(tensor_node, sources)), tensor_node(selected), is_part)
    trace.compilation.judge(Verdict.SELECTED, _judge_writes)
    before_questions(trace.compilation, _judge_question)
    trace.compilation.of(Reads).found.append(read)


@dataclass(frozen=True)
class _Read:
    """What a branch at `line` of `code` selects from, and what it selects; is_part: it stands for a part of that."""

    line: SourceLine | None
    code: CodeType | None
    sources: tuple[torch.fx.Node, ...]
    selected: torch.fx.Node
    is_part: bool = False


def _judge_writes(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    ends_in_a_break = compilation.output.compile_subgraph_reason.graph_break
    order = {node: place for place, node in enumerate(operations(module))}
    writes = [(place, written) for node, place in order.items() if (written := written_by(node))]
    permuted = [(place, fakes) for node, place in order.items() if (fakes := _written_out_of_order(node))]
    for read in compilation.of(Reads).found:
        nodes = [*read.sources, read.selected]
        begin = max(order.get(node, -1) for node in nodes)
        relied_on = memory_of(nodes)
        if any(_covers(fake, read.sources) for place, fakes in permuted if place < begin for fake in fakes):
            _trace_without_read(compilation, read, "a tensor that a branch selects was written to as a transposed one")
        written = {storage for place, storages in writes if place > begin for storage in storages}
        if not written.isdisjoint(relied_on) or not are_apart(compilation, relied_on, written):
            _trace_without_read(compilation, read, "a tensor that a branch selects is written in place later")
        if read.is_part and not _may_be(read.selected).isdisjoint(module.graph.output_node().all_input_nodes):
            _trace_without_read(compilation, read, "an item that a branch selects is given to others")
        if (ends_in_a_break or is_called_by_the_program()) and _both_remain(read, module):
            _trace_without_read(
                compilation, read, "a tensor that a branch selects may be written in place behind a graph break"
            )


def _written_out_of_order(node: torch.fx.Node) -> list[torch.Tensor]:
    """What the operation writes to whose elements do not follow each other in memory, as those of `x.t()` do not."""
    written = (fake for one in written_nodes(node) for fake in fakes_of(one))
    return [fake for fake in written if fake.layout is torch.strided and not is_contiguous(fake)]


def _covers(written: torch.Tensor, sources: Iterable[torch.fx.Node]) -> bool:
    """Was a whole source written?  AOTAutograd computes that anew, and gives it the strides of what was written."""
    memory, fakes = memory_of_fake(written), (fake for node in sources for fake in fakes_of(node))
    shared = (fake for fake in fakes if not memory.isdisjoint(memory_of_fake(fake)))
    return any(not is_known(written.numel() < fake.numel()) for fake in shared)


def _judge_question(compilation: Compilation, tensors: list[Variable]) -> None:
    """The data decides which tensor a selection gives; so the program may not ask which object it is, or views."""
    reads = {read.selected: read for read in compilation.of(Reads).found}
    met: set[torch.fx.Node] = set()
    for node in {tensor_node(tensor) for tensor in tensors}:
        found = _reached(node, lambda one: reads[one].sources if one in reads else _handed_on(one))
        selected = [reads[one] for one in (*found, *met) if one in reads]
        if selected and (len(tensors) == 1 or not met.isdisjoint(found)):
            reason = "the program asks which object a tensor is that a branch selects"
            _trace_without_read(compilation, selected[0], reason)
        met |= found


def _handed_on(node: torch.fx.Node) -> Iterable[torch.fx.Node]:
    """What it may be, or may be a view of."""
    return node.all_input_nodes if node.op.startswith("call") and facts_of(node).aliases else ()


def _reached(root: torch.fx.Node, step: Callable[[torch.fx.Node], Iterable[torch.fx.Node]]) -> set[torch.fx.Node]:
    """The node, and what one comes to from it step by step."""
    found, waiting = {root}, [root]
    while waiting:
        new = {*step(waiting.pop())} - found
        waiting += new
        found |= new
    return found


def _may_be(copy: torch.fx.Node) -> set[torch.fx.Node]:
    """What in the graph may share memory with the copy, or is selected from it, for all that follows."""

    def followed(node: torch.fx.Node) -> list[torch.fx.Node]:
        return [user for user in node.users if facts_of(user).aliases or name_of(user) == "where"]

    return _reached(copy, followed)


def _trace_without_read(compilation: Compilation, read: _Read, reason: str) -> NoReturn:
    """So too in every other frame, if it is the code of another function: behind a break that is its own frame.

    It does not see the write itself then.
    """
    bets = [STATEMENT.at(read.line)]
    if read.code is not None and read.code is not compilation.code:
        bets.append(INLINED.at(read.line))
    compilation.without(*bets, reason=reason)


def _both_remain(read: _Read, module: torch.fx.GraphModule) -> bool:
    """Are what is selected, and what it is selected from, both there when the graph has run?"""
    given = module.graph.output_node().all_input_nodes
    others = [node for node in (*given, *module.graph.find_nodes(op="placeholder")) if node is not read.selected]
    return read.selected in given and not memory_of(read.sources).isdisjoint(memory_of(others))


def _trained(root: torch.fx.Node, made: set[torch.fx.Node]) -> set[torch.fx.Node]:
    """The tensors that require a gradient, made outside the sides, on which `root` depends."""

    def is_trained(node: torch.fx.Node) -> bool:
        return bool(getattr(node.meta.get("example_value"), "requires_grad", True))

    def is_inside(node: torch.fx.Node) -> bool:
        return node in made and node.op != "placeholder"

    nodes = _reached(root, lambda node: node.all_input_nodes if is_trained(node) and is_inside(node) else ())
    return {node for node in nodes if is_trained(node) and not is_inside(node)}


def is_harmful(trace: Trace) -> bool:
    """Is the statement to be traced as it was written, as was found before, here or in a caller?"""
    if is_as_written(trace) or trace.line is None:
        return True
    return not all(trace.compilation.allows(feature, trace.line) for feature in (STATEMENT, INLINED))
