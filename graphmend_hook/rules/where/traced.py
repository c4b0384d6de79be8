"""What [Where] and [Trap] call where a test is a tensor: may both sides be evaluated, and can they be merged?

Dynamo inlines these functions and folds their tests.  In non-strict export they run as Python, on traced tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...engine.attempt.attempt import STEP
from ...engine.attempt.refusals import record as record_here
from ...engine.attempt.restart import expect_success
from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace, gives_for_nothing
from ...engine.door.variables import Variable, type_of
from ...engine.epilogue import deferral
from ...engine.numbers import capture, choices, late_lists, late_numbers, number_or_tensor, number_tensors
from ...engine.region import Regions
from ..defer.traced import effects_around, record
from ..defer.traced_progress import stepped
from ..defer.traced_texts import is_text_or_number
from ..shared import traced_selection, traced_sides
from ..shared.traced_calls import begun, judged
from ..shared.traced_conditions import compiling, has_known_range, has_truth, of_range, truth, undecided
from ..shared.traced_export import watched
from ..shared.traced_sides import Unspeculable
from ..shared.traced_speculated import as_late
from ..trap import traced as guards
from .codes import ATTRIBUTE_OF_CLASS, HARMFUL, INNER_BRANCH, MAY_FAIL, SIDES_DIFFER, UNTAKEN_RAISES, VALUES_DIFFER

_MODULES = (torch.nn.ModuleList, torch.nn.Sequential, torch.nn.ModuleDict, torch.nn.ParameterList)
_CONTAINERS = (
    *(list, tuple, range, dict, set, frozenset, str, torch.Size, torch.Tensor, torch.nn.Parameter),
    *map(type, ({}.keys(), {}.values(), {}.items())),
)
UNREAD = "gm\u01c3unread"  # before what nobody reads where that side is taken
UNBOUND = "gm\u01c3unbound"  # in the place of a name that is not bound where that side is taken
FLAG = "gm\u01c3flag"  # before what only says whether a loop is left: True, False, or a tensor () of bool
Effect = tuple[Any, ...]  # (predicate or None, method or None for a guard, delivery, target, values)
Side = Callable[..., tuple[Any, ...] | None]


def select(
    test: torch.Tensor,
    sides: tuple[Side, Side],
    arguments: tuple[Any, ...],
    effects: list[Effect] | None,
) -> tuple[Any, ...] | None:
    """Evaluate both sides and merge what they return; None where that would not give what the original gives.

    sides: called with a list for their effects and with `arguments`; they return None where they raise.
    effects: where the effects go if this branch is inside another; else they are left for the end of the graph.
    """
    if has_known_range(test):
        return None
    return _selected(test, sides, arguments, effects, False)


def select_returned(
    test: torch.Tensor, sides: tuple[Side, Side], arguments: tuple[Any, ...], effects: list[Effect] | None
) -> tuple[Any, ...] | None:
    """The same of sides that return: where the caller drops what the function gives, it is either's."""
    if has_known_range(test):
        return None
    return _selected(test, sides, arguments, effects, is_dropped())


def _selected(
    test: torch.Tensor,
    sides: tuple[Side, Side],
    arguments: tuple[Any, ...],
    effects: list[Effect] | None,
    is_dropped: bool,
) -> tuple[Any, ...] | None:
    if not compiling():  # a graph break in here: from there on the original runs for real
        return None
    is_open = was_open = False
    try:
        predicate = truth(test)
        if in_trace():
            why_not = traced_sides.why_not_entered(predicate)
            if why_not:
                raise Unspeculable(*why_not)
            is_open = was_open = True
        taken: list[Effect] = []
        untaken: list[Effect] = []
        left = _evaluated(sides[0], taken, arguments)
        traced_sides.enter_other_side()
        right = _evaluated(sides[1], untaken, arguments)
        if is_open:
            is_open = False
            traced_sides.end_sides()
            _guard_what_fails()
        slots = traced_sides.count_stored() if in_trace() else 0
        before = [_before(place) for place in range(slots)]
        then, orelse = _with_stored(left, before, True), _with_stored(right, before, False)
        merged = _merged(predicate, then, orelse, is_dropped)
        _store(merged[len(merged) - slots :], before)
        _leave(_conditional(predicate, taken, untaken), effects)
        if in_trace():
            expect_success()
        return merged[: len(merged) - slots]
    except Unspeculable as error:
        why = error.args
    except Exception:  # of the user's expressions: attributes that do not exist, types that do not fit
        why = (UNTAKEN_RAISES,)
    if is_open:
        traced_sides.end_sides()
    record(*why)
    if was_open:
        traced_sides.give_up_sides(why)
    return None


def _evaluated(side: Side, effects: list[Effect], arguments: tuple[Any, ...]) -> tuple[Any, ...] | None:
    if in_trace():
        traced_sides.collect(effects)
        return side(effects, *arguments)
    with watched(side, effects):
        return side(effects, *arguments)


def _before(place: int) -> Any:
    """What a slot held before the sides stored to it."""
    attribute = traced_sides.attribute_of(place)
    if not attribute:
        return as_late(traced_sides.item_before(place))
    if not traced_sides.had_attribute(place):
        raise Unspeculable(ATTRIBUTE_OF_CLASS)
    return as_late(getattr(traced_sides.owner_of(place), attribute))


def _with_stored(outcome: tuple[Any, ...] | None, before: list[Any], is_then: bool) -> tuple[Any, ...] | None:
    """What a side gives, and what the slots hold behind it."""
    if outcome is None:
        return None
    found = list(outcome)
    for place in range(len(before)):
        has_stored = traced_sides.has_stored(place, is_then)
        found.append(traced_sides.stored(place, is_then) if has_stored else before[place])
    return tuple(found)


def _store(values: tuple[Any, ...], before: list[Any]) -> None:
    """Store what the slots hold behind the branch, but for what both sides have left as it was."""
    for place in range(len(before)):
        if late_numbers.is_late_number(values[place]) or values[place] is not before[place]:
            traced_sides.store(place, values[place])


def call_one_of(
    tests: tuple[torch.Tensor, ...],
    functions: tuple[Callable[..., Any], ...],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[Any, ...] | None:
    """What the function gives whose test is the first that holds, else the last one; see `choices.call_with`."""
    given = (tests, functions, arguments, options)
    return _selected(tests[0], (_call_first, _call_another), given, effects_around(), False)


def _call_first(
    _effects: list[Effect],
    _tests: tuple[torch.Tensor, ...],
    functions: tuple[Callable[..., Any], ...],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[Any, ...]:
    return (judged(begun(), functions[0](*arguments, **options)),)


def _call_another(
    effects: list[Effect],
    tests: tuple[torch.Tensor, ...],
    functions: tuple[Callable[..., Any], ...],
    arguments: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[Any, ...]:
    if len(functions) == 2:
        return _call_first(effects, tests, functions[1:], arguments, options)
    given = (tests[1:], functions[1:], arguments, options)
    return nested(tests[1], (_call_first, _call_another), given, effects)  # type: ignore[no-any-return]


choices.call_with(call_one_of)


def _guard_what_fails() -> None:
    for fails in number_tensors.failing():
        if not guards.expect_false(fails):
            raise Unspeculable(MAY_FAIL)


def _leave(every: list[Effect], effects: list[Effect] | None) -> None:
    """Leave the effects of both sides to the branch around, or for the end of the graph."""
    if effects is not None:
        effects.extend(every)
    elif len(every) > 0:  # the truth of a list looks at what is in it
        guards.commit(every)


def nested(test: Any, sides: tuple[Side, Side], arguments: tuple[Any, ...], effects: list[Effect]) -> Any:
    """What a branch inside a side gives, whatever its test is; None where the test is Python's and its side raises."""
    return _nested(test, sides, arguments, effects, False)


def nested_returned(test: Any, sides: tuple[Side, Side], arguments: tuple[Any, ...], effects: list[Effect]) -> Any:
    """The same of sides that return."""
    return _nested(test, sides, arguments, effects, is_dropped())


def _nested(
    test: Any, sides: tuple[Side, Side], arguments: tuple[Any, ...], effects: list[Effect], is_dropped: bool
) -> Any:
    if not undecided(test):
        return sides[0 if test else 1](effects, *arguments)
    found = of_range(test) if has_truth(test) else None
    if found is not None:
        return sides[0 if found else 1](effects, *arguments)
    outcome = _selected(test, sides, arguments, effects, is_dropped)
    if outcome is None:
        raise Unspeculable(INNER_BRANCH)
    return outcome


def _merged(
    predicate: torch.Tensor, left: tuple[Any, ...] | None, right: tuple[Any, ...] | None, is_dropped: bool
) -> tuple[Any, ...]:
    """What stands for what both sides give.  is_dropped: nobody uses the first of it, which is what they return."""
    if left is None or right is None:
        kept = right if left is None else left
        if kept is None:
            raise Unspeculable(INNER_BRANCH)
        return kept
    if is_dropped:
        return (left[0], *_merged(predicate, left[1:], right[1:], False))
    selected: list[tuple[Any, Any, Any]] = []
    found = tuple([_merge(predicate, a, b, selected) for a, b in zip(left, right)])  # noqa: B905  Dynamo: no strict=
    selected.clear()  # Dynamo keeps the list, and with it would be the tensors that nobody has any more
    if in_trace():
        traced_selection.expect_apart(left, found)
        traced_selection.expect_apart(right, found)
    return found


def _merge(predicate: torch.Tensor, left: Any, right: Any, known: list[tuple[Any, Any, Any]]) -> Any:
    """What stands for `left` or `right`; known: (left, right, what stands for them), of the tensors so far."""
    if _is_marked(left, UNBOUND) or _is_marked(right, UNBOUND):
        if not deferral.tracing() or deferral.is_transformed() or not late_numbers.may_be_unbound():
            raise Unspeculable(VALUES_DIFFER)
        return late_numbers.unbound()
    if _is_marked(left, UNREAD):
        return right if _is_without_gradient(right) else _merge(predicate, left[1], right, known)
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return _merge_tensors(predicate, left, right, known)
    if type(left) is tuple and type(right) is tuple and len(left) == len(right):
        if _is_marked(left, FLAG) and left[1] is not right[1]:
            return (FLAG, torch.where(predicate, truth_like(left[1], predicate), truth_like(right[1], predicate)))
        return tuple([_merge(predicate, a, b, known) for a, b in zip(left, right)])  # noqa: B905
    return _merge_values(predicate, left, right, known)


def _is_marked(value: Any, mark: str) -> bool:
    """Is it a value with one of these marks before it?"""
    return type(value) is tuple and len(value) == 2 and type(value[0]) is str and value[0] == mark


def _merge_tensors(
    predicate: torch.Tensor, left: torch.Tensor, right: torch.Tensor, known: list[tuple[Any, Any, Any]]
) -> torch.Tensor:
    if left is right:
        return left
    for one, other, selected in known:
        if one is left and other is right:
            return selected
    all_of_it = traced_selection.holds_all(predicate, left, right)
    if all_of_it:
        known.append((left, right, left if all_of_it > 0 else right))
        return known[-1][2]
    why = traced_selection.why_not_selected(predicate, left, right)
    if why:
        raise Unspeculable(*why)
    selected = torch.where(predicate, left, right)
    if not traced_selection.stands_for_both(selected, left, right):
        raise Unspeculable(SIDES_DIFFER)
    if in_trace():
        traced_selection.leave_gradients_undefined(predicate, selected, left, right)
    known.append((left, right, selected))
    return selected


def _is_without_gradient(value: Any) -> bool:
    """Is it a number, a text, or a tensor that none comes to where eager would not have made it?"""
    return not value.requires_grad if isinstance(value, torch.Tensor) else is_text_or_number(value)


def _merge_values(predicate: torch.Tensor, left: Any, right: Any, known: list[tuple[Any, Any, Any]]) -> Any:
    """The same of values of Python, which may exist behind the graph."""
    is_late = late_numbers.is_late_number(left) or late_numbers.is_late_number(right)
    is_of_data = in_trace() and (traced_selection.is_of_data(left) or traced_selection.is_of_data(right))
    if is_of_data:
        is_same = traced_selection.is_same_if_empty(predicate, left, right)
        if is_same:
            return left if is_same > 0 else right
        number = _chosen_number(predicate, left, right)
        if number is not None:
            return number
    elif not is_late and _is_same(left, right):
        return left
    if not deferral.tracing() or deferral.is_transformed():
        raise Unspeculable(VALUES_DIFFER)
    if late_lists.may_be_merged(left, right):
        of_left: tuple[torch.Tensor, ...] = late_lists.tensors_of_one(left, right)
        of_right: tuple[torch.Tensor, ...] = late_lists.tensors_of_one(right, left)
        chosen = tuple([_merge(predicate, each, torch.zeros_like(each), known) for each in of_left])
        others = tuple([_merge(predicate, torch.zeros_like(each), each, known) for each in of_right])
        return late_lists.merged(predicate.clone(), left, right, (chosen, others))
    if number_or_tensor.may_be_merged(left, right):
        one, other = number_or_tensor.tensor_like(left, right), number_or_tensor.tensor_like(right, left)
        return number_or_tensor.merged(predicate.clone(), _merge(predicate, one, other, known), left, right)
    if not late_numbers.may_be_selected(left, right):
        raise Unspeculable(VALUES_DIFFER)
    expect_success()
    return late_numbers.selected(predicate.clone(), left, right)


def _chosen_number(predicate: torch.Tensor, left: Any, right: Any) -> Any:
    """A symbol for one of two whole numbers, of which only the graph knows one at least; None where there is none."""
    if type(left) is not int or type(right) is not int or traced_sides.is_in_region():
        return None
    numbers = [torch.scalar_tensor(each, dtype=torch.int64, device=predicate.device) for each in (left, right)]
    chosen = torch.where(predicate, *numbers)
    if not capture.begin(chosen):
        return None
    number = chosen.item()
    capture.end()
    return number


def _is_same(left: Any, right: Any) -> bool:
    """Can no one tell the two values apart?"""
    kind = type(left)
    if kind is not type(right) or kind is tuple:  # Dynamo cannot tell whether two tuples are one
        return False
    if kind is float and in_trace() and (_is_symbol(left) or _is_symbol(right)):
        return _are_one(left, right)
    if kind is float:
        return str(left) == str(right)  # of -0.0 and 0.0, which are equal, the sign can be seen
    if kind is str and in_trace() and not (traced_sides.is_spelled_out(left) and traced_sides.is_spelled_out(right)):
        return False
    if kind is int or kind is bool or kind is str:
        return bool(left == right)
    return left is None or left is right


@question(otherwise=False)
def _is_symbol(_trace: Trace, number: Variable) -> bool:
    return _is_symbol_of(number)


def _is_symbol_of(number: Variable) -> bool:
    return isinstance(getattr(number.realize(), "sym_num", None), torch.SymFloat)


@question(otherwise=False)
def _are_one(_trace: Trace, left: Variable, right: Variable) -> bool:
    """Is it the same node of the graph that gives both?"""
    return (
        _is_symbol_of(left)
        and _is_symbol_of(right)
        and left.realize().as_proxy().node is right.realize().as_proxy().node
    )


def never(_line: int) -> bool:
    """No: what an exit asks whose loop is not mended, at that line.  The loop asks `may_leave` in its place."""
    return False


def truth_like(test: Any, done: torch.Tensor) -> torch.Tensor:
    """The truth of a test as a tensor, also of one that Python decides; `done` is another such tensor."""
    if undecided(test) and has_truth(test):
        return truth(test)
    if isinstance(test, torch.Tensor):
        raise Unspeculable(INNER_BRANCH)
    return torch.ones_like(done) if test else torch.zeros_like(done)


@question(otherwise=False)
def may_leave(trace: Trace, iterated: Variable, first: int) -> bool:
    """May a loop go on for the trace although data has ended it?

    iterated: what it goes over, which is to have no state of its own: an iterator would tell how far it was asked.
    first: the line of the first exit of the loop, at which its steps are judged.
    """
    is_repeatable = (_is_repeatable(stepped(trace, each) or each) for each in iterated.realize().items)
    if traced_sides.is_harmful(trace, first) or not all(is_repeatable):
        record_here(HARMFUL)
        return False
    if trace.is_in_a_body:
        return False
    trace.compilation.of(Regions).steps.add(trace.line)
    return True


def _is_repeatable(iterated: Variable) -> bool:
    kind = type_of(iterated)
    if issubclass(kind, _MODULES):
        return any(getattr(kind, "__iter__", None) is each.__iter__ for each in _MODULES)
    return kind in _CONTAINERS


def expect_step(outcome: tuple[Any, ...] | None) -> None:
    """A step of such a loop has to be mended: if it cannot be, the frame is traced anew, with the exit as written."""
    if outcome is None:
        _leave_exit()


@question(otherwise=None)
def _leave_exit(trace: Trace) -> None:
    trace.compilation.without(STEP.at(trace.line), reason="a step behind an exit that data decides is not mended")


@question(otherwise=False)
def is_dropped(trace: Trace) -> bool:
    """Does nobody use what the function gives that holds the statement?"""
    return gives_for_nothing(trace, {_selected.__code__, _nested.__code__})


def _conditional(predicate: torch.Tensor, taken: list[Effect], untaken: list[Effect]) -> list[Effect]:
    """The effects of both sides, each under the condition that its side is taken."""
    found: list[Effect] = []
    for side, effects in ((predicate, taken), (~predicate if len(untaken) > 0 else predicate, untaken)):
        for inner, *rest in effects:
            found.append((side if inner is None else side & inner, *rest))
    return found
