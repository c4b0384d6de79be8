"""Calls in a region that no table knows: they are made as they were written, and judged on the trace.

Of what such a call has added to the graph each operation may only compute, from tensors on which it cannot fail, and it
may not cost much, since eager would not make it where the region is not taken.  Where an operation's gradient could be
infinite or NaN, its operands are sheltered: the graph is changed so that it is given other values there, and the
gradients of what they were are zeros.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from ...engine import predicated_draws, predicated_writes
from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace, is_caught, log
from ...engine.door.variables import (
    at_most,
    is_much,
    is_unbacked,
    is_wrapper,
    same_sizes,
    tensor_node,
    without_hooks,
)
from ...engine.facts import selections
from ...engine.facts.gradient_flow import may_save
from ...engine.facts.lookups import is_inside, parts_of, places_of_item, size_of_table, tensor_of
from ...engine.facts.operations import (
    divides_whole_numbers,
    facts_of,
    fake_arguments,
    finds_extreme,
    is_of_torch,
    is_steady,
    name_of,
    stores_steadily,
)
from ...engine.facts.truths import is_same
from ...engine.facts.writes import dimensions_of, fakes_of, memory_of, written_by
from ...engine.numbers import number_tensors
from ...engine.numbers.captured_tensors import call
from ...engine.numbers.first_call import is_made_of_constants
from ...engine.numbers.runtime_asserts import IN_SIDE
from ...engine.region import Region, Regions, computes_in, memory_made, nodes_since
from ...engine.shelter import Shelters, add, is_trained, shelter, taken_at
from ...source import tensor_ops
from ...source.tensor_ops import SPECULABLE, STEADY, operation
from ..where.codes import COSTS_TOO_MUCH, GRADIENTS_DIFFER, HARMFUL, MAY_FAIL, WRITES
from ..where.traced_rows import Rows
from .traced_operations import can_fail
from .traced_selection import expect_unwritten
from .traced_sides import Unspeculable

# Multiplications that a region may make for nothing: about a tenth of a millisecond, which is what a break costs.
_MOST_WORK = {"cpu": 1 << 22}
_MOST_WORK_OF_DEVICES = 1 << 31
_REGIONS = 8  # which may come to that much, of a whole graph


def begun() -> int:
    """Begin what is judged when it has been traced; gives its number, for `judged`.  See also `watched`."""
    if not in_trace():
        return -1
    start = begin()
    if start < 0:
        raise Unspeculable(MAY_FAIL)
    return start


def judged(start: int, value: Any) -> Any:
    """`value`, if what was traced since may be done where the region is not taken."""
    if in_trace():
        why = why_not_made(start)
        if why:
            raise Unspeculable(*why)
    return value


@dataclass
class _Statements:
    """Of each statement that is judged, the last node before it; and the work of all."""

    before: list[torch.fx.Node | None] = field(default_factory=list)
    work: float = 0.0


@question(otherwise=-1)
def begin(trace: Trace) -> int:
    """Remember what the graph has; gives the statement's number, for `why_not_made`."""
    statements, regions = trace.compilation.of(_Statements), trace.compilation.of(Regions).open
    if bool(regions) is trace.is_in_a_body:
        return -1
    statements.before.append(next(reversed(trace.graph.nodes), None))
    for region in regions[-1:]:
        region.begin(trace)
    return len(statements.before) - 1


_UNKNOWN: tuple[str, ...] = (MAY_FAIL,)


@question(otherwise=_UNKNOWN)
def why_not_made(trace: Trace, start: int) -> tuple[str, ...]:
    """Why what was traced since `begin` may not be made in a region: a code, and the operation; () if it may be."""
    regions = trace.compilation.of(Regions).open
    made = nodes_since(trace, trace.compilation.of(_Statements).before[start])
    if regions:
        for node in made:
            _fill(node)
        made = [each for node in made for each in predicated_draws.predicate(trace, node)]
        made = [each for node in made for each in predicated_writes.write_to_copies(trace, node)]
    own = memory_made(regions[-1].nodes(trace) if regions else [])
    predicated = trace.compilation.of(Regions).predicated
    writing = [node for node in made if node not in predicated and not computes_in(own, node)]
    for node in made:
        why = ""
        if node in writing and not predicated_writes.may_be_predicated(trace, node):
            why = HARMFUL if facts_of(node).draws else WRITES
        elif torch.is_grad_enabled() and _writes_what_is_saved(trace, node, regions):
            why = WRITES
        elif node not in predicated and not _is_harmless(trace, node, made):
            why = MAY_FAIL
        if why:
            log.debug("not in a region: %s", node.format_node())
            return why, name_of(node)
    large = (node for node in made if _is_large(node) or (node in writing and predicated_writes.is_large(node)))
    costly = next(large, None) or _costly(trace, made)
    if costly is not None:
        return COSTS_TOO_MUCH, name_of(costly)
    steep = _gradients_differ(trace, made, writing) if torch.is_grad_enabled() else None
    if steep is not None:
        return GRADIENTS_DIFFER, name_of(steep)
    for node in writing:
        if not predicated_writes.predicate(trace, node, (WRITES,)):
            return WRITES, name_of(node)
    for region in regions[-1:]:
        region.end()
    return ()


_FILLED: dict[Any, Any] = {torch.empty: torch.zeros, torch.empty_like: torch.zeros_like, "new_empty": "new_zeros"}


def _fill(node: torch.fx.Node) -> None:
    """Let it give zeros, if it gives a tensor that holds anything: an infinity there would reach gradients as NaN."""
    is_filled = torch.are_deterministic_algorithms_enabled() and torch.utils.deterministic.fill_uninitialized_memory
    if node.op.startswith("call") and node.target in _FILLED and not {*node.kwargs} & {"memory_format", "out"}:
        node.target = node.target if is_filled else _FILLED[node.target]


def _writes_what_is_saved(trace: Trace, node: torch.fx.Node, regions: Sequence[Region]) -> bool:
    """Has an operation of the region kept for its gradient what the node writes to?  Where it is taken eager fails."""
    memory = written_by(node)
    if not memory or not regions:
        return False
    before = itertools.takewhile(lambda each: each is not node, regions[-1].nodes(trace))
    return any(is_trained(each) and may_save(each, memory) for each in before if each.op.startswith("call"))


def _gradients_differ(
    trace: Trace, made: Sequence[torch.fx.Node], writing: Sequence[torch.fx.Node]
) -> torch.fx.Node | None:
    """An operation that cannot be sheltered; None where all are that need it, and later writes are watched for."""
    shelters = shelter(trace, [node for node in made if node not in writing])
    if isinstance(shelters, torch.fx.Node):
        return shelters
    for selected in shelters:
        expect_unwritten(trace, (selected.all_input_nodes[1],), selected, is_kept=True)
    for node in made:
        for operand in _kept_untrained(node, made):
            expect_unwritten(trace, (operand,), node, is_kept=True)
    return None


def _kept_untrained(node: torch.fx.Node, made: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
    """What the operation keeps for its gradient of tensors without one that are older than what was `made`.

    Where the side is not taken, eager keeps nothing, and the program may write to them.
    """
    if not is_trained(node) or operation(name_of(node).rstrip("_")).is_smooth:
        return []
    older = [each for each in node.all_input_nodes if each not in made and not is_trained(each)]
    return [each for each in older if (memory := memory_of([each])) and may_save(node, memory)]


def _is_harmless(trace: Trace, node: torch.fx.Node, made: Sequence[torch.fx.Node]) -> bool:
    """Can the operation, one of those that were `made`, fail on no data, nor for want of any?"""
    if not node.op.startswith("call") or node.args[1:] == (IN_SIDE,) or node in trace.compilation.of(Rows).nodes:
        return True
    if _has_no_gradient(node):
        return False
    if name_of(node).rstrip("_") in tensor_ops.STORING:
        return _stores_anywhere(node) or selections.fills(trace, node) or _looks_at_nothing(trace, node)
    if selections.has_open_sizes(node):
        is_known = selections.is_harmless(trace, node) or _fails_before(node, made) or _looks_at_nothing(trace, node)
        return is_known or _finds_something(trace, node)
    is_known = _cannot_fail(node) or is_made_of_constants(node)
    is_known = is_known or is_inside(trace, node) or _has_looked_there(trace, node)
    return is_known or _looks_where_taken(trace, node) or _solves_where_taken(trace, node)


def _cannot_fail(node: torch.fx.Node) -> bool:
    """Can it fail on no data, where no data decides a size?"""
    name = name_of(node).rstrip("_")
    given = [value for operand in node.all_input_nodes for value in fakes_of(operand)]
    if name not in SPECULABLE:
        return is_steady(node) or stores_steadily(node)
    if not is_of_torch(node) or divides_whole_numbers(node) or "out" in node.kwargs or any(map(is_wrapper, given)):
        return False
    arguments, options = fake_arguments(node)
    return not can_fail(name, arguments, {key: value for key, value in options.items() if key != "inplace"})


def _has_no_gradient(node: torch.fx.Node) -> bool:
    """Is it given what requires a gradient, and has none?  The backward pass fails then."""
    given = [value for operand in node.all_input_nodes for value in fakes_of(operand)]
    is_trained = torch.is_grad_enabled() and any(value.requires_grad for value in given)
    return is_trained and operation(name_of(node).rstrip("_")).is_without_gradient


def _fails_before(node: torch.fx.Node, made: Sequence[torch.fx.Node]) -> bool:
    """Does the graph find the least or the greatest element before those were made, and fails if there is none?"""
    others = [user for operand in node.all_input_nodes for user in operand.users if user not in made]
    return finds_extreme(node) and any(user.args == node.args and finds_extreme(user) for user in others)


def _finds_something(trace: Trace, node: torch.fx.Node) -> bool:
    """Let the operation find the least or the greatest of one number more where it is given none.

    That it is given some where the region is taken is a guard of the graph: else it fails in eager.
    """
    rows = node.args[0] if finds_extreme(node) else None
    (fake,) = [*fakes_of(rows)] if isinstance(rows, torch.fx.Node) else [None]
    if fake is None or fake.dim() != 1 or not is_unbacked(fake.shape):
        return False
    count = add(trace, node, torch.ops.aten.sym_size.int, rows, 0)
    lacking = add(trace, node, operator.sub, 1, add(trace, node, torch.sym_min, count, 1))
    more = add(trace, node, torch.ops.aten.new_zeros.default, rows, [lacking])
    node.args = (add(trace, node, torch.cat, [rows, more]),)
    number = call(trace, torch.scalar_tensor, torch.fx.Proxy(count, trace.output.current_tracer), dtype=torch.int64)
    return number_tensors.may_expect_false(trace, call(trace, operator.eq, number, 0))


def _looks_at_nothing(trace: Trace, node: torch.fx.Node) -> bool:
    """Does it fail on the numbers of some operands alone, such as classes, and has none where no region is taken?

    It is made where any of the open regions is not taken, so that has to follow from each of them.
    """
    numbers = _numbers_of(node)
    operands = _places_of(node) if numbers is None else [numbers]
    empty = _empty_where_not_taken(trace)
    return bool(operands and empty) and all(_has_nothing(each, sizes) for sizes in empty for each in operands)


def _has_nothing(operand: torch.fx.Node, empty: set[Any]) -> bool:
    """Has the tensor no elements, or no true one if it is a mask, where those sizes are 0?"""
    if _is_mask(operand):
        return not selections.sizes_selected_by(operand).isdisjoint(empty)
    sizes = [size for fake in fakes_of(operand) for size in fake.shape if isinstance(size, torch.SymInt)]
    return any(size.node.expr.subs(dict.fromkeys(empty, 0)) == 0 for size in sizes)


def _places_of(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The tensors by whose places it looks up, or writes as many rows as there are places; [] where more may fail."""
    name = name_of(node)
    given = (*node.args, *[None] * 3)[2]
    if name not in ("getitem", "index_put", "setitem") or not is_of_torch(node) or not {*node.kwargs} <= {"accumulate"}:
        return []
    parts = (parts_of(node) or []) if len(node.args) > 1 else []
    places = [part for part in parts if isinstance(part, torch.fx.Node)]
    fits = name == "getitem" or not isinstance(given, torch.fx.Node) or _fits_at(node.args[0], places, given)
    return places if fits and (len(parts) == 1 or not isinstance(given, torch.fx.Node)) else []


def _fits_at(target: Any, places: list[torch.fx.Node], given: torch.fx.Node) -> bool:
    """Can what is given be written at the places, however many there are?"""
    (written,), (value,) = fakes_of(target), fakes_of(given)
    if value.dtype is not written.dtype or value.dim() == 0:
        return value.dtype is written.dtype
    if len(places) != 1 or _is_mask(places[0]):  # how many rows a mask selects its shape does not say
        return False
    return any(same_sizes(value.shape, (*fake.shape, *written.shape[1:])) is True for fake in fakes_of(places[0]))


def _numbers_of(node: torch.fx.Node) -> torch.fx.Node | None:
    """The operand on whose numbers the operation may fail, and on nothing else; None of another one."""
    known = tensor_ops.FAILS_ON_NUMBERS.get(name_of(node))
    if known is None or not is_of_torch(node) or "out" in node.kwargs:
        return None
    place, name = known
    operand = node.args[place] if len(node.args) > place else node.kwargs.get(name)
    return operand if isinstance(operand, torch.fx.Node) else None


def _has_looked_there(trace: Trace, node: torch.fx.Node) -> bool:
    """Has the graph done the same with the same numbers, and a table of the same form?  It fails there if at all."""
    numbers = _numbers_of(node)
    if numbers is None:
        return False
    others = [each for each in trace.graph.nodes if name_of(each) == name_of(node)]
    return any(
        len(each.args) == len(node.args)
        and each.kwargs.keys() == node.kwargs.keys()
        and is_same(trace, _numbers_of(each), numbers)
        and all(map(_has_same_form, each.args, node.args))
        and all(map(_has_same_form, each.kwargs.values(), node.kwargs.values()))
        for each in itertools.takewhile(lambda each: each is not node, others)
    )


def _looks_where_taken(trace: Trace, node: torch.fx.Node) -> bool:
    """Let the operation, which may fail on places alone, be given the first place where no region is taken."""
    places = _places_in(node)
    if not places:
        return False
    known = trace.compilation.of(_Places).sheltered
    new = [place for place in places if place not in known]
    taken = taken_at(trace, node) if new else None
    device = None if taken is None else taken.meta["example_value"].device
    if new and not all(fake.device == device for place in new for fake in fakes_of(place)):
        return False
    instead = {place: add(trace, node, torch.where, taken, place, 0) for place in new}
    node.args, node.kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: instead.get(each, each))
    known.update(instead.values())
    return True


def _solves_where_taken(trace: Trace, node: torch.fx.Node) -> bool:
    """Let the operation, which fails on some matrices, be given one on which it does not where no region is taken."""
    matrix = node.args[0] if node.args else None
    fake = tensor_of(matrix)
    if name_of(node) not in tensor_ops.FAILS_ON_MATRICES or not is_of_torch(node) or "out" in node.kwargs:
        return False
    if is_caught(trace):
        return False  # an exception of the graph comes to no handler
    if fake is None or is_wrapper(fake) or fake.dim() < 2 or not all(type(size) is int for size in fake.shape):
        return False
    size = fake.shape[-1]
    taken = taken_at(trace, node) if fake.numel() * size <= _MOST_WORK["cpu"] else None
    if taken is None or taken.meta["example_value"].device != fake.device or fake.shape[-2] != size:
        return False
    ones = add(trace, node, torch.Tensor.to, add(trace, node, torch.eye, size), fake.device, fake.dtype)
    sheltered = add(trace, node, torch.where, taken, matrix, ones)
    if sheltered.meta["example_value"].stride() != fake.stride():
        return False
    node.args = (sheltered, *node.args[1:])
    trace.compilation.of(Shelters).safe.add(sheltered)
    if is_trained(sheltered):
        expect_unwritten(trace, (matrix,), sheltered, is_kept=True)
    return True


@dataclass
class _Places:
    """The places of an attempt that are the first ones where their region is not taken."""

    sheltered: set[torch.fx.Node] = field(default_factory=set)


def _places_in(node: torch.fx.Node) -> dict[torch.fx.Node, int]:
    """The tensors of places that it looks up, each with how many there are; {} where it may fail otherwise."""
    numbers = _numbers_of(node)
    if numbers is not None:
        found = {numbers: size_of_table(node)}
    elif name_of(node) == "getitem" and is_of_torch(node):
        found = {place: size for place, size in places_of_item(node) or () if not _is_mask(place)}
    else:
        return {}
    return found if all(type(size) is int and size > 0 and _is_of_places(each) for each, size in found.items()) else {}


def _is_of_places(operand: Any) -> bool:
    """Is it a plain tensor of whole numbers?"""
    fake = tensor_of(operand)
    return fake is not None and fake.dtype is torch.int64 and not is_wrapper(fake)


def _has_same_form(one: Any, other: Any) -> bool:
    """Are two operands tensors of one shape and type, or the same constant?"""
    if not (isinstance(one, torch.fx.Node) and isinstance(other, torch.fx.Node)):
        return type(one) is type(other) and bool(one == other)
    pairs = [(a, b) for a, b in zip(fakes_of(one), fakes_of(other), strict=True)]
    return all(a.dtype is b.dtype and same_sizes(a.shape, b.shape) is True for a, b in pairs)


def _stores_anywhere(node: torch.fx.Node) -> bool:
    """Is each element that it writes to there, and what it writes of a kind that can be written there?"""
    if "out" in node.kwargs or not is_of_torch(node):
        return False
    target, *given = [fake for operand in node.all_input_nodes for fake in fakes_of(operand)]
    if any(fake.is_complex() and not target.is_complex() for fake in given):
        return False  # torch warns
    if name_of(node) != "setitem":
        return True
    index, value = node.args[1], node.args[2]
    parts = index if isinstance(index, tuple) else (index,)
    masks = [part for part in parts if isinstance(part, torch.fx.Node)]
    if any(isinstance(part, list) for part in parts) or len(masks) > 1 or not all(map(_is_mask, masks)):
        return False  # a place may not be there
    if masks and not selections.fits_beside_others(node, masks[0]):
        return False
    if not masks or not isinstance(value, torch.fx.Node):
        return True
    # How many rows a mask selects, the data decides: each has to get the same.
    rows = dimensions_of(node.args[0]) - dimensions_of(masks[0]) if masks == [index] else 0
    return dimensions_of(value) <= rows


def _is_mask(node: torch.fx.Node) -> bool:
    return [fake.dtype for fake in fakes_of(node)] == [torch.bool]


def _is_large(node: torch.fx.Node) -> bool:
    return is_much([*fakes_of(node)], [fake for operand in node.all_input_nodes for fake in fakes_of(operand)])


def _costly(trace: Trace, made: list[torch.fx.Node]) -> torch.fx.Node | None:
    """The operation with which the multiplications come to too many, as far as sizes have been seen in the trace."""
    statements, work = trace.compilation.of(_Statements), 0.0
    for node in made:
        if name_of(node).rstrip("_") not in STEADY or (kind := _device_of(node)) is None:
            continue
        with FlopCounterMode(display=False) as counter, without_hooks(), trace.translator.fake_mode:
            args, options = fake_arguments(node)
            call = node.target if callable(node.target) else getattr(torch.Tensor, str(node.target))
            call(*args, **options)
        count = counter.get_total_flops()
        more = _seen(trace, count) / 2
        work, statements.work = work + more, statements.work + more
        most = _MOST_WORK.get(kind, _MOST_WORK_OF_DEVICES)
        if work > most or statements.work > _REGIONS * most:
            return node
    return None


def _empty_where_not_taken(trace: Trace) -> list[set[Any]]:
    """For each open region the sizes that are 0 where it is not taken, as symbols."""
    found = list[set[Any]]()
    for region in trace.compilation.of(Regions).open:
        is_known = region.predicate is not None
        found.append(
            selections.empty_unless(tensor_node(region.predicate), region.is_where_true) if is_known else set()
        )
    return found


def _seen(trace: Trace, count: Any) -> float:
    """As many as the sizes make that have been seen in the trace, and those that the data decides at most make."""
    if isinstance(count, int):
        return float(count)
    if count.node.hint is not None:
        return float(count.node.hint)
    empty = dict.fromkeys(set().union(*_empty_where_not_taken(trace)), 0)  # each region is to cost little by itself
    return 0.0 if count.node.expr.subs(empty) == 0 else at_most(count)


def _device_of(node: torch.fx.Node) -> str | None:
    return next((fake.device.type for fake in fakes_of(node)), None)
