"""What the sides of a branch give is selected by data: may it be, and what may the program do with it from then on?"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn

import torch

from ...engine.attempt.attempt import INLINED, STATEMENT, Bet, Feature
from ...engine.attempt.compilation import Compilation
from ...engine.door.callers import is_called_by_the_program
from ...engine.door.question import question
from ...engine.door.tracer import SourceLine, Trace
from ...engine.door.variables import (
    Variable,
    fake_of,
    is_contiguous,
    is_known,
    is_plain_tensor,
    is_unbacked,
    python_of,
    same_sizes,
    tensor_node,
    type_of,
)
from ...engine.facts.gradient_flow import may_save, recorded
from ...engine.facts.object_identity import before_kinds, before_questions
from ...engine.facts.operations import facts_of, name_of, written_nodes
from ...engine.facts.selections import empty_unless
from ...engine.facts.truths import selects_all
from ...engine.facts.writes import (
    are_apart,
    example_of,
    fakes_of,
    memory_of,
    memory_of_fake,
    memory_of_inference,
    memory_of_inputs,
    operations,
    written_by,
)
from ...engine.graph_end.order import Verdict
from ...engine.graph_end.stopped_gradients import stop_where_not_taken
from ...engine.graph_end.undefined_gradients import Step, Steps, leave_undefined
from ...engine.region import Region, Regions, conditions
from ...engine.shelter import add, taken_at
from ..where.codes import GRADIENTS_DIFFER, HARMFUL, SIDES_DIFFER

REPLACED = Feature("another tensor stands for one that is written to in a region")  # by the region's place
_DIFFERENT: tuple[str, ...] = (SIDES_DIFFER,)
_SELECTED = {torch.Tensor, torch.nn.Parameter}


@question(otherwise=_DIFFERENT, elsewhere=lambda *given: () if _may_be_selected(*given) else _DIFFERENT)
def why_not_selected(trace: Trace, predicate: Variable, left: Variable, right: Variable) -> tuple[str, ...]:
    """Why neither of the two tensors can be selected by data: a code, and what about; () where it can be."""
    if not {type_of(left), type_of(right)} <= _SELECTED or not all(map(_is_strided, (left, right))):
        return _DIFFERENT
    may_be_undefined = not (trace.compilation.is_saved or trace.is_in_a_body or conditions(trace) is None)
    fakes = map(fake_of, (predicate, left, right))
    if not _differ_in_values(*fakes, in_gradients_too=may_be_undefined and torch.is_grad_enabled()):
        return _DIFFERENT
    alone = _trained_alone(trace, left, right)
    return (GRADIENTS_DIFFER, alone) if alone and not may_be_undefined else ()


@question(otherwise=None)
def leave_gradients_undefined(
    trace: Trace, predicate: Variable, selected: Variable, left: Variable, right: Variable
) -> None:
    """What one side alone depends on gets no gradient where that side is not taken, as in eager."""
    region, node = trace.compilation.of(Regions).last, tensor_node(selected)
    trace.compilation.of(Steps).selected.add(node)
    if region is not None and torch.is_grad_enabled() and fake_of(selected).requires_grad and not trace.is_in_a_body:
        bet = region.bet((GRADIENTS_DIFFER,))
        stop_where_not_taken(trace.compilation, tensor_node(predicate), region.made, bet)
    alone = _trained_alone(trace, left, right)
    if not alone or region is None:
        return
    bet = region.bet((GRADIENTS_DIFFER, alone))
    for side, is_where_true in ((left, True), (right, False)):
        if is_where_true not in region.conditions:
            region.conditions[is_where_true] = _condition(trace, tensor_node(predicate), is_where_true)
        condition = region.conditions[is_where_true]
        leave_undefined(trace.compilation, Step(frozenset(region.made), node, condition, tensor_node(side)), bet)


def _condition(trace: Trace, predicate: torch.fx.Node, is_where_true: bool) -> torch.fx.Node:
    """Says whether a side is taken of a branch with this predicate, and so is what stands around it."""
    around = taken_at(trace)
    condition = predicate if is_where_true else add(trace, None, operator.invert, predicate)
    return condition if around is None else add(trace, None, operator.and_, around, condition)


def _is_strided(tensor: Variable) -> bool:
    """Is it laid out as most are?  The fake tensor of an input may be, where the input itself is not."""
    node = tensor_node(tensor)
    example = fake_of(tensor) if node.meta.get("grapharg") is None else example_of(node)
    return example is None or example.layout is torch.strided


def _may_be_selected(predicate: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> bool:
    """The same where no trace watches what becomes of a parameter."""
    is_one_kind = type(left) is type(right) and not isinstance(left, torch.nn.Parameter)
    return is_one_kind and _differ_in_values(predicate, left, right)


def _differ_in_values(
    predicate: torch.Tensor, left: torch.Tensor, right: torch.Tensor, *, in_gradients_too: bool = False
) -> bool:
    """Do the tensors differ in their values only?  in_gradients_too: or in whether they require a gradient."""
    if predicate.device != left.device:
        return False
    if left.dtype is not right.dtype or left.device != right.device or left.layout is not right.layout:
        return False
    if left.requires_grad != right.requires_grad and not in_gradients_too:
        return False
    if left.requires_grad and not torch.is_grad_enabled():
        return False  # what is selected without gradients requires none
    return bool(same_sizes(left.shape, right.shape) and same_sizes(left.stride(), right.stride()))


@question(otherwise=0, elsewhere=lambda *_given: 0)
def holds_all(trace: Trace, predicate: Variable, left: Variable, right: Variable) -> int:
    """Is the one tensor what a mask has selected from the other, all of it where that is taken: ``x = x[~bad]``?

    1: then `left` stands for both; -1: then `right` does; 0: neither.
    """
    if not all(is_plain_tensor(each) for each in (left, right)):
        return 0
    if fake_of(left).requires_grad is not fake_of(right).requires_grad:
        return 0
    asked, nodes = tensor_node(predicate), (tensor_node(left), tensor_node(right))
    for selected, whole, is_left in zip(nodes, nodes[::-1], (True, False), strict=True):
        if selects_all(trace, selected, whole, asked, not is_left):
            chosen = left if is_left else right
            _expect(trace, (left, right), chosen, trace.compilation.of(Regions).last)
            return 1 if is_left else -1
    return 0


@question(otherwise=False)
def is_of_data(_trace: Trace, number: Variable) -> bool:
    """Is it a whole number that only the graph knows?"""
    value = getattr(number.realize(), "sym_num", None)
    return isinstance(value, torch.SymInt) and is_unbacked(value)


@question(otherwise=0)
def is_same_if_empty(_trace: Trace, predicate: Variable, left: Variable, right: Variable) -> int:
    """Is the one number the other where that is taken, as of ``start + n`` and ``start`` where ``n == 0``?

    1: then `left` stands for both; -1: then `right` does; 0: neither.
    """
    import sympy  # it takes a while, and PyTorch does without until it traces

    numbers, asked = [_whole(each) for each in (left, right)], tensor_node(predicate)
    if None in numbers:
        return 0
    for holds, stands_for in ((True, 1), (False, -1)):  # the sizes that are 0 where the other one is taken
        empty = dict.fromkeys(empty_unless(asked, holds), 0)
        one, other = (sympy.sympify(number).subs(empty) for number in numbers)
        if one == other:
            return stands_for
    return 0


def _whole(number: Variable) -> Any:
    """A whole number as an expression of sympy; None of anything else."""
    value = getattr(number.realize(), "sym_num", None)
    if isinstance(value, torch.SymInt):
        return value.node.expr
    value = python_of(number) if number.realize().is_python_constant() else None
    return value if type(value) is int else None


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
    is_parameter = any(_is_parameter(tensor_node(each)) for each in (left, right))
    _expect(trace, (left, right), selected, trace.compilation.of(Regions).last, is_part=is_parameter)
    if is_parameter:
        before_kinds(trace.compilation, _judge_kind)
    return True


@question(otherwise=None)
def expect_apart(trace: Trace, results: Variable, selected: Variable) -> None:
    """Of results of a side that share memory nobody may be given two: each that is selected has memory of its own.

    results, selected: those of one side, and what stands for each of them, as tuples.
    """
    groups: dict[int, dict[torch.fx.Node, torch.fx.Node]] = {}
    for result, other in _pairs(results, selected):
        for memory in memory_of([tensor_node(result)]):
            groups.setdefault(memory, {})[tensor_node(result)] = tensor_node(other)
    shared = [{*group.values()} for group in groups.values() if len(group) > 1]
    reads, nodes = trace.compilation.of(Reads), set[torch.fx.Node]().union(*shared)
    of_branch = [read for read in reads.found if read.selected in nodes]
    reads.shared += [(of_branch[-1], group) for group in shared if of_branch]


def _pairs(results: Variable, selected: Variable) -> Iterator[tuple[Variable, Variable]]:
    """The tensors of a side, in tuples too, each with what stands for it."""
    for result, other in zip(results.items, selected.items, strict=True):
        if result.is_tensor() and other.is_tensor():
            yield result, other
        elif all(type(each.realize()).__name__ == "TupleVariable" for each in (result, other)):
            yield from _pairs(result.realize(), other.realize())


def _trained_alone(trace: Trace, left: Variable, right: Variable) -> str:
    """A tensor that requires a gradient, on which the value of one side alone depends, by name; "" if there is none."""
    if not torch.is_grad_enabled():
        return ""
    made = trace.compilation.of(Regions).made
    alone = _trained(tensor_node(left), made) ^ _trained(tensor_node(right), made)
    return min((_called(node) for node in alone), default="")


def _called(node: torch.fx.Node) -> str:
    """What the program calls the tensor, if it is handed in; else what the graph does."""
    argument = node.meta.get("grapharg")
    return str(node.name if argument is None else getattr(argument.source, "name", node.name))


@question(otherwise=False)
def brings_gradient(_trace: Trace, given: Variable) -> bool:
    """Does one of the values require a gradient, where one is computed?"""
    tensors = [each for each in given.realize().items if each.is_tensor()]
    return torch.is_grad_enabled() and any(fake_of(each).requires_grad for each in tensors)


@question(otherwise=False)
def is_to_be_replaced(trace: Trace, written: Variable) -> bool:
    """Is another tensor to stand for one that the program writes to?  So, at first, for what the trace has made."""
    regions = trace.compilation.of(Regions).open
    return bool(regions) and not _is_older(trace, written) and trace.compilation.allows(REPLACED, regions[-1].at)


def _is_older(trace: Trace, tensor: Variable) -> bool:
    return not memory_of([tensor_node(tensor)]).isdisjoint(memory_of_inputs(trace.output.graph))


@question(otherwise=False)
def stands_for_written(trace: Trace, new: Variable, old: Variable, is_a_choice: bool = False) -> bool:
    """May the one stand for the other, which the program writes to in a region, for the rest of the trace?

    So it may if the trace has made the memory, and nothing reads it behind the region: but where sides are merged.
    is_a_choice: else the tensor itself is written to, where the side is taken.
    """
    before, after = fake_of(old), fake_of(new)
    if _is_older(trace, old) or before.dtype is not after.dtype:
        return False
    if before.requires_grad and not torch.is_grad_enabled():
        return False
    if not same_sizes(before.shape, after.shape) or not same_sizes(before.stride(), after.stride()):
        return False
    regions = trace.compilation.of(Regions).open
    trace.compilation.judge(Verdict.REPLACED, _judge_replaced)
    bet = REPLACED.at(regions[-1].at) if is_a_choice else None
    sides = {region: region.is_where_true for region in regions}
    trace.compilation.of(_Replaced).found.append(_Write(sides, tensor_node(old), tensor_node(new), bet))
    return True


@dataclass(frozen=True)
class _Write:
    """A tensor that is written to in a region, and what stands for it from there on.

    sides: the regions around the write, the innermost last, and whether it stands where their predicate is true.
    """

    sides: dict[Region, bool]
    old: torch.fx.Node
    new: torch.fx.Node
    bet: Bet | None

    @property
    def region(self) -> Region:
        return [*self.sides][-1]


@dataclass
class _Replaced:
    found: list[_Write] = field(default_factory=list)


def _judge_replaced(compilation: Compilation, module: torch.fx.GraphModule) -> None:
    nodes = [*module.graph.nodes]
    order = {node: place for place, node in enumerate(nodes)}
    reads = compilation.of(Reads).found
    writes = compilation.of(_Replaced).found
    trained = {*recorded(module, True)}
    for write in writes:
        region, new = write.region, write.new
        memory = _standing_for(write.old, [read for read in reads if order.get(read.selected, -1) < order[new]])
        merges = {read.selected for read in reads if _merges(read, write, memory)}
        # What writes to the tensor keeps what it was before, and not the tensor.
        same = {each.new for each in writes if not memory.isdisjoint(memory_of([each.old]))}
        earlier = [node for node in trained - same if order[node] < order[new] and node not in region.made]
        end = len(nodes) if region.turned_at is None else order.get(region.turned_at, -1)
        is_other_side = order[new] < end < len(nodes)  # what is not, of the region, sees the write
        others = {node for node in region.made if is_other_side and order.get(node, -1) > end}
        later = [node for node in nodes[order[new] + 1 :] if node not in others and node not in merges]
        is_read = any(not memory.isdisjoint(memory_of(node.all_input_nodes)) for node in later)
        if not is_read and not any(may_save(node, memory) for node in earlier):
            continue
        if write.bet is not None:
            compilation.without(write.bet, reason="what is written to in a region is read behind it")
        else:
            region.give_up(compilation, (HARMFUL,))


def _standing_for(node: torch.fx.Node, reads: list[_Read]) -> set[int]:
    """The memory of the tensor, and of all that it has been selected from, or that has been selected from it.

    Of these one is, for the program, the same tensor.
    """
    found = {*memory_of([node])}
    while True:
        before = len(found)
        for read in reads:
            memory = memory_of([*read.sources, read.selected])
            if not read.is_kept and not found.isdisjoint(memory):
                found |= memory
        if len(found) == before:
            return found


def _merges(read: _Read, write: _Write, memory: set[int]) -> bool:
    """Is it where the sides are merged, and is it the other side that gives the tensor as it was?"""
    if read.region not in write.sides:
        return False
    written = read.sources[0 if write.sides[read.region] else 1]
    return memory.isdisjoint(memory_of([written]))


@question(otherwise=None)
def expect_no_alias(trace: Trace, table: Variable, item: Variable) -> None:
    """As `stands_for_both`, of a copy that stands for a part of the table, which the graph may not give away either."""
    _expect(trace, (table,), item, is_part=True)


def _expect(
    trace: Trace,
    sources: tuple[Variable, ...],
    selected: Variable,
    region: Region | None = None,
    *,
    is_part: bool = False,
) -> None:
    expect_unwritten(trace, tuple(map(tensor_node, sources)), tensor_node(selected), region, is_part=is_part)


def expect_unwritten(
    trace: Trace,
    sources: tuple[torch.fx.Node, ...],
    selected: torch.fx.Node,
    region: Region | None = None,
    *,
    is_part: bool = False,
    is_kept: bool = False,
) -> None:
    """As `stands_for_both`, of any tensor.

    is_kept: of a copy that an operation keeps for its gradient in the place of its operand, and no name stands for.
    For what eager keeps is the operand, and autograd refuses to use what was written to.
    """
    around = trace.compilation.of(Regions).open
    line, code = (around[-1].at[0], around[-1].code) if around else (trace.line, trace.code)
    trace.compilation.judge(Verdict.SELECTED, _judge_writes)
    before_questions(trace.compilation, _judge_question)
    trace.compilation.of(Reads).found.append(_Read(line, code, sources, selected, region, is_part, is_kept))


@dataclass(frozen=True)
class _Read:
    """What a branch at `line` of `code` selects from, and what it selects.

    region: that of the branch whose sides are merged so; is_part: it stands for a part of that.
    is_kept: it is a copy that an operation keeps, or what that gives.
    """

    line: SourceLine | None
    code: CodeType | None
    sources: tuple[torch.fx.Node, ...]
    selected: torch.fx.Node
    region: Region | None = None
    is_part: bool = False
    is_kept: bool = False


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
    given = {*module.graph.output_node().all_input_nodes}
    for read, group in compilation.of(Reads).shared:
        if sum(not _may_be(node).isdisjoint(given) for node in group) > 1:
            _trace_without_read(compilation, read, "two tensors that share memory are selected, and given to others")


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


def _judge_kind(compilation: Compilation, tensors: list[Variable]) -> None:
    """The data decides whether what is selected is a parameter; so the program may not ask of what kind it is."""
    asked = tensor_node(tensors[0])
    for read in compilation.of(Reads).found:
        if read.selected is asked and any(map(_is_parameter, read.sources)):
            _trace_without_read(compilation, read, "the program asks whether what a branch selects is a parameter")


def _is_parameter(node: torch.fx.Node) -> bool:
    return any(isinstance(fake, torch.nn.Parameter) for fake in fakes_of(node))


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
    writes = [(node, written) for node in made if (written := written_by(node))]

    def is_trained(node: torch.fx.Node) -> bool:
        return bool(getattr(node.meta.get("example_value"), "requires_grad", True))

    def is_inside(node: torch.fx.Node) -> bool:
        return node in made and node.op != "placeholder"

    def sources(node: torch.fx.Node) -> Iterable[torch.fx.Node]:
        if not (is_trained(node) and is_inside(node)):
            return ()
        memory = memory_of([node]) if writes else set()
        return [*node.all_input_nodes, *(writer for writer, written in writes if not memory.isdisjoint(written))]

    return {node for node in _reached(root, sources) if is_trained(node) and not is_inside(node)}


@dataclass
class Reads:
    """What branches have selected from tensors that may not be written to later.

    shared: what stands for results of a side that share memory, with one of the reads of that branch.
    """

    found: list[_Read] = field(default_factory=list)
    shared: list[tuple[_Read, set[torch.fx.Node]]] = field(default_factory=list)
