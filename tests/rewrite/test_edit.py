"""The bytecode edits on code of the shape that Dynamo generates, on every Python that this suite runs on."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from bytecode import Bytecode, Instr

from graphmend_hook.engine.epilogue import bytecode as edit
from graphmend_hook.engine.epilogue import queue

OWNER = types.SimpleNamespace(queue=queue)


class Slot:
    def __init__(self, receive: Any) -> None:
        self.receive = receive

    def __setitem__(self, key: object, value: Any) -> None:
        self.receive(value)


class Delivered(list[Any]):
    """What each slot was given, in order."""


@pytest.fixture
def slots(monkeypatch: pytest.MonkeyPatch) -> Iterator[Delivered]:
    seen = Delivered()
    for name in ("graphmend_sink", "graphmend_failed"):
        monkeypatch.setattr(queue, name, Slot(lambda value, name=name: seen.append((name, value))))
    yield seen
    queue.graphmend_pending.clear()


def generated(x: Any) -> Any:
    """Dynamo's output, as Python would compile it: graph, items, replay, result."""
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [(make, log, (graph_out_0[1], "text")), (make, log, (x,))]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0[0]


def function(code: types.CodeType, graph: Any) -> Any:
    names = {"__compiled_fn_1": graph, "owner": OWNER, "make": "make", "log": "log", "__builtins__": __builtins__}
    return types.FunctionType(code, names)


def edited() -> types.CodeType:
    code = edit.redirect_replay(generated.__code__)
    assert code is not None
    return code


ITEMS = [("make", "log", (20, "text")), ("make", "log", (1,))]


def test_the_replay_goes_to_the_sink(slots: Delivered) -> None:
    assert function(edited(), lambda x: (10 * x, 20 * x))(1) == 10
    assert slots == [("graphmend_sink", ITEMS)]
    assert queue.graphmend_pending == []


def test_a_graph_that_raises_hands_over_what_can_be_built(slots: Delivered) -> None:
    def graph(x: Any) -> Any:
        raise IndexError("out of bounds")

    with pytest.raises(IndexError, match="out of bounds") as caught:
        function(edited(), graph)(1)
    assert slots == [("graphmend_failed", [("make", "log", (queue.MISSING, "text")), ("make", "log", (1,))])]
    assert caught.value.__context__ is None
    assert sys.exc_info() == (None, None, None)


def test_a_failing_delivery_keeps_the_first_exception_as_context(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(value: Any) -> None:
        raise RuntimeError("handler")

    monkeypatch.setattr(queue, "graphmend_failed", Slot(fail))

    def graph(x: Any) -> Any:
        raise IndexError

    with pytest.raises(RuntimeError, match="handler") as caught:
        function(edited(), graph)(1)
    assert isinstance(caught.value.__context__, IndexError)


def drops_a_temporary(x: Any) -> Any:
    tmp_1 = x
    graph_out_0 = __compiled_fn_1(tmp_1)  # type: ignore[name-defined]  # noqa: F821
    del tmp_1
    owner.queue.graphmend_pending[:] = [(make, log, (graph_out_0[1], "text")), (make, log, (x,))]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0[0]


def test_temporaries_are_dropped_before_the_output_is_stored(slots: Delivered) -> None:
    edited = Bytecode.from_code(drops_a_temporary.__code__)
    names = [getattr(item, "name", "") for item in edited]
    store = next(index for index, item in enumerate(edited) if getattr(item, "arg", "") == "graph_out_0")
    assert names[store : store + 2] == ["STORE_FAST", "DELETE_FAST"]
    edited[store : store + 2] = [edited[store + 1], edited[store]]  # as torch has it up to 2.14
    code = edit.redirect_replay(edited.to_code())
    assert code is not None
    assert function(code, lambda x: (10 * x, 20 * x))(1) == 10
    with pytest.raises(IndexError):
        function(code, fails)(1)
    lost = [("make", "log", (queue.MISSING, "text")), ("make", "log", (1,))]
    assert slots == [("graphmend_sink", ITEMS), ("graphmend_failed", lost)]


def test_nothing_is_edited_twice() -> None:
    assert edit.redirect_replay(edited()) is None
    again = Again(goes_on.__code__, False, "again")
    code = edit.redirect_replay(goes_on.__code__, again)
    assert code is not None
    assert edit.redirect_replay(code, again, has_graph=True) is None


def without_outputs(x: Any) -> Any:
    __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [(make, log, (x,))]  # type: ignore[name-defined]  # noqa: F821


def test_a_graph_without_outputs(slots: Delivered) -> None:
    code = edit.redirect_replay(without_outputs.__code__)
    assert code is not None
    function(code, lambda x: None)(1)
    with pytest.raises(ZeroDivisionError):
        function(code, lambda x: 1 // 0)(2)
    assert slots == [("graphmend_sink", [("make", "log", (1,))]), ("graphmend_failed", [("make", "log", (2,))])]


def reads_a_temporary(x: Any) -> Any:
    tmp_1 = [x]
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [(make, log, tmp_1)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0


def test_what_was_made_before_the_graph_is_read_again(slots: Delivered) -> None:
    code = edit.redirect_replay(reads_a_temporary.__code__)
    assert code is not None
    assert function(code, lambda x: x)(1) == 1
    with pytest.raises(ZeroDivisionError):
        function(code, lambda x: 1 // 0)(1)
    items = [("make", "log", [1])]
    assert slots == [("graphmend_sink", items), ("graphmend_failed", items)]


def changes_what_is_made_after_the_graph(x: Any) -> Any:
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    tmp_1 = [graph_out_0]
    tmp_1.append(x)
    owner.queue.graphmend_pending[:] = [(make, log, tmp_1)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0


def changes_an_argument_that_is_kept(x: Any) -> Any:
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    x = [graph_out_0]
    tmp_1 = x
    tmp_1.append(1)
    owner.queue.graphmend_pending[:] = [(make, log, tmp_1)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0


def reads_what_is_made_after_the_graph(x: Any) -> Any:
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    tmp_1 = [graph_out_0, owner.queue.size_of]  # type: ignore[name-defined]  # noqa: F821
    tmp_2 = owner.queue  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [(make, log, tmp_1, tmp_1, tmp_2)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0, tmp_1


def test_what_is_made_after_the_graph_is_made_again_once(slots: Delivered) -> None:
    code = edit.redirect_replay(reads_what_is_made_after_the_graph.__code__)
    assert code is not None
    with pytest.raises(IndexError):
        function(code, fails)(1)
    [(_, [(_, _, first, second, third)])] = slots
    assert first is second
    assert (first, third) == ([queue.MISSING, queue.size_of], queue)


def decides(x: Any) -> Any:
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [(make, log, not x)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0


@pytest.mark.parametrize("original", [changes_what_is_made_after_the_graph, changes_an_argument_that_is_kept, decides])
def test_items_that_cannot_be_built_twice_are_not_understood(original: Any) -> None:
    """H: a graph that fails would lose all of them."""
    with pytest.raises(edit.NotUnderstoodError):
        edit.redirect_replay(original.__code__)


def reads_a_looked_up_temporary(x: Any) -> Any:
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    tmp_1 = owner.queue  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [(make, log, tmp_1)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0


def test_what_was_looked_up_after_the_graph_is_looked_up_again(slots: Delivered) -> None:
    code = edit.redirect_replay(reads_a_looked_up_temporary.__code__)
    assert code is not None
    with pytest.raises(ZeroDivisionError):
        function(code, lambda x: 1 // 0)(1)
    assert slots == [("graphmend_failed", [("make", "log", queue)])]


def keeps_an_argument(x: Any) -> Any:
    graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    tmp_1 = x
    done = [tmp_1.update]
    owner.queue.graphmend_pending[:] = [(make, log, tmp_1.size)]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0, done


def test_an_argument_that_is_kept_under_another_name_is_looked_up_again(slots: Delivered) -> None:
    """H: a method that resumes behind a break reads attributes of ``self`` first, and nothing more was mended."""
    code = edit.redirect_replay(keeps_an_argument.__code__)
    assert code is not None
    with pytest.raises(IndexError):
        function(code, fails)(types.SimpleNamespace(update=None, size=16))
    assert slots == [("graphmend_failed", [("make", "log", 16)])]


def appends(x: Any) -> Any:
    owner.queue.graphmend_pending.extend([x])  # type: ignore[name-defined]  # noqa: F821
    return x


def test_another_form_of_replay_is_not_understood() -> None:
    with pytest.raises(edit.NotUnderstoodError):
        edit.redirect_replay(appends.__code__)


def profiled(x: Any) -> Any:
    """As torch 2.15 has it: branches before and among the arguments of the graph."""
    graph_out_0 = __compiled_fn_1(  # type: ignore[name-defined]  # noqa: F821
        owner.begin() if owner.is_profiled else None,  # type: ignore[name-defined]  # noqa: F821
        (x and x + 1) or 2,
        x if x is not None else 0,
    )
    owner.queue.graphmend_pending[:] = [(make, log, (graph_out_0[1], "text")), (make, log, (x,))]  # type: ignore[name-defined]  # noqa: F821
    return graph_out_0[0]


@pytest.mark.parametrize("is_profiled", [False, True])
def test_branches_among_the_arguments_of_the_graph(
    slots: Delivered, monkeypatch: pytest.MonkeyPatch, is_profiled: bool
) -> None:
    """H: nothing handled the failure of a graph of torch 2.15."""
    monkeypatch.setattr(OWNER, "is_profiled", is_profiled, raising=False)
    monkeypatch.setattr(OWNER, "begin", lambda: "profile", raising=False)
    code = edit.redirect_replay(profiled.__code__)
    assert code is not None
    profile = "profile" if is_profiled else None
    assert function(code, lambda begun, more, x: ((begun, more), 20 * x))(1) == (profile, 2)
    with pytest.raises(IndexError):
        function(code, fails)(1)
    lost = [("make", "log", (queue.MISSING, "text")), ("make", "log", (1,))]
    assert slots == [("graphmend_sink", ITEMS), ("graphmend_failed", lost)]
    again = Again(profiled.__code__, False, "again")
    code = edit.redirect_replay(profiled.__code__, again)
    assert code is not None
    assert function(code, fails)(1) == "again"
    assert again.asked[0][0] == (lost, ())


def unpacked(x: Any) -> Any:
    return __compiled_fn_1(*((x,) if x else ()), x=0)  # type: ignore[name-defined]  # noqa: F821


def test_arguments_that_are_unpacked() -> None:
    def graph(*args: Any, **kwargs: Any) -> Any:
        assert (args, kwargs) == ((1,), {"x": 0})
        raise IndexError

    code = edit.redirect_replay(unpacked.__code__, Again(unpacked.__code__, False, "again"))
    assert code is not None
    assert function(code, graph)(1) == "again"


def goes_on(x: Any) -> Any:
    return __compiled_fn_1(x).resume()  # type: ignore[name-defined]  # noqa: F821


def test_what_follows_the_graph_is_not_in_its_handler() -> None:
    """H: what fails after the graph, and after a part of the frame has run, would run all of it again."""
    again = Again(goes_on.__code__, False, "again")
    code = edit.redirect_replay(goes_on.__code__, again)
    assert code is not None
    with pytest.raises(IndexError, match="in the graph"):
        function(code, lambda x: types.SimpleNamespace(resume=fails))(1)
    assert again.asked == []
    assert function(code, fails)(1) == "again"


def without_graph(x: Any) -> Any:
    owner.queue.graphmend_pending[:] = [(make, log, (x,))]  # type: ignore[name-defined]  # noqa: F821
    return x


def test_code_without_a_graph(slots: Delivered) -> None:
    code = edit.redirect_replay(without_graph.__code__)
    assert code is not None
    assert function(code, None)(1) == 1
    assert slots == [("graphmend_sink", [("make", "log", (1,))])]
    with pytest.raises(edit.NotUnderstoodError):  # there is one, then
        edit.redirect_replay(without_graph.__code__, Again(without_graph.__code__, False, None))
    with pytest.raises(edit.NotUnderstoodError):
        edit.redirect_replay(without_graph.__code__, has_graph=True)


def in_a_handler(x: Any) -> Any:
    try:
        return __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
    except ValueError:
        return None


def passed_on(x: Any) -> Any:
    return owner.call(__compiled_fn_1, x)  # type: ignore[name-defined]  # noqa: F821


def kept_for_later(x: Any) -> Any:
    graph = __compiled_fn_1  # type: ignore[name-defined]  # noqa: F821
    return graph(x)


def called_by_another(x: Any) -> Any:
    return [__compiled_fn_1][0](x)  # type: ignore[name-defined]  # noqa: F821


def called_twice(x: Any) -> Any:
    return __compiled_fn_1(__compiled_fn_1(x))  # type: ignore[name-defined]  # noqa: F821


def one_of_two(x: Any) -> Any:
    return (__compiled_fn_1 if x else owner.other)([x, x], [x, x], [x, x]).sum().item()  # type: ignore[name-defined]  # noqa: F821


def with_a_handler_among_its_arguments(x: Any) -> Any:
    return __compiled_fn_1([y for y in x])  # type: ignore[name-defined]  # noqa: F821


UNKNOWN = [in_a_handler, passed_on, kept_for_later, called_by_another, called_twice, one_of_two]
if sys.version_info >= (3, 12):  # a comprehension is inlined, with a handler of its own
    UNKNOWN.append(with_a_handler_among_its_arguments)


@pytest.mark.parametrize("original", UNKNOWN)
def test_another_form_of_call_is_not_understood(original: Any) -> None:
    """H: a graph that needed a handler had none, and nothing said so."""
    with pytest.raises(edit.NotUnderstoodError):
        edit.redirect_replay(original.__code__, Again(original.__code__, False, None))


def a_handler_elsewhere(x: Any) -> Any:
    if owner is None:  # type: ignore[name-defined]  # noqa: F821
        try:
            y = x + 1
        finally:
            y = 0
        print(y)
    return __compiled_fn_1([x, x], [x, x], [x, x])  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 it cannot be told where a handler ends")
def test_a_handler_elsewhere_is_none_around_the_call() -> None:
    code = edit.redirect_replay(a_handler_elsewhere.__code__, Again(a_handler_elsewhere.__code__, False, "again"))
    assert code is not None
    assert function(code, fails)(1) == "again"


def assigns_twice(x: Any) -> Any:
    owner.queue.graphmend_pending[:] = []  # type: ignore[name-defined]  # noqa: F821
    owner.queue.graphmend_pending[:] = [x]  # type: ignore[name-defined]  # noqa: F821


def assigns_a_part(x: Any) -> Any:
    owner.queue.graphmend_pending[1:] = [x]  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("original", [assigns_twice, assigns_a_part])
def test_other_assignments_are_not_understood(original: Any) -> None:
    with pytest.raises(edit.NotUnderstoodError):
        edit.redirect_replay(original.__code__)


def changes_its_argument(x: Any) -> Any:
    x = x + 1
    return __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821


def drops_its_argument(x: Any) -> Any:
    y = x
    del x
    return __compiled_fn_1(y)  # type: ignore[name-defined]  # noqa: F821


def changes_its_shared_argument(x: Any) -> Any:
    x = x + 1
    return __compiled_fn_1(x), lambda: x  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("original", [changes_its_argument, drops_its_argument, changes_its_shared_argument])
def test_arguments_that_are_not_what_they_were_are_not_understood(original: Any) -> None:
    """H: what runs again would begin with other arguments."""
    with pytest.raises(edit.NotUnderstoodError, match="argument"):
        edit.redirect_replay(original.__code__, Again(original.__code__, False, None))


def test_a_closure_that_is_gone_is_not_understood() -> None:
    with pytest.raises(edit.NotUnderstoodError, match="closure"):
        edit.redirect_replay(generated.__code__, Again(closure(3).__code__, False, None))


def as_written(x: Any) -> Any:
    try:
        return [y / 0 for y in (x,)]
    except ZeroDivisionError:
        return "divided"


def test_code_that_announces_itself(slots: Delivered) -> None:
    code = edit.announced(as_written.__code__, queue.graphmend_failed)
    assert types.FunctionType(code, {})(1) == "divided"
    assert slots == [("graphmend_failed", None)]
    assert (code.co_varnames, code.co_cellvars) == (as_written.__code__.co_varnames, as_written.__code__.co_cellvars)


def test_code_of_others_is_not_touched() -> None:
    assert edit.redirect_replay(function.__code__) is None


def test_the_slice_forms_of_all_versions() -> None:
    assert edit._takes_whole_slice(Bytecode([Instr("LOAD_CONST", slice(None, None))]), 0)
    bounds = [Instr("LOAD_CONST", None), Instr("LOAD_CONST", None)]
    assert edit._takes_whole_slice(Bytecode([*bounds, Instr("BUILD_SLICE", 2)]), 0)
    assert not edit._takes_whole_slice(Bytecode([Instr("LOAD_CONST", 0), *bounds]), 0)


class Again(edit.Rerun):
    """Notes what it is asked for; `value` is what the frame gives."""

    def __init__(self, code: types.CodeType, changes: bool, value: Any) -> None:
        super().__init__(code, changes)
        self.value, self.asked = value, []

    def __getitem__(self, given: Any) -> Any:
        frame = sys._getframe(1)
        self.asked.append((given, sys.exc_info()[0], dict(frame.f_locals)))
        return "states" if given is None else Run(self.value)


class Run:
    """The frame that is run again: gives the value, or raises it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, key: None) -> Any:
        assert sys.exc_info() == (None, None, None)  # as eager runs
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def closure(kept: Any) -> types.FunctionType:
    def inner(x: Any) -> Any:
        graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
        return graph_out_0[0], kept

    return inner  # type: ignore[return-value]


def fails(*_: Any) -> Any:
    raise IndexError("in the graph")


@pytest.mark.parametrize("changes", [False, True])
def test_a_frame_is_run_again(slots: Delivered, changes: bool) -> None:
    again = Again(generated.__code__, changes, "again")
    code = edit.redirect_replay(generated.__code__, again)
    assert code is not None
    assert function(code, fails)(1) == "again"
    assert sys.exc_info() == (None, None, None)
    *states, (given, kind, found) = again.asked
    assert given == ([("make", "log", (queue.MISSING, "text")), ("make", "log", (1,))], ())
    assert kind is IndexError
    assert found == {"x": 1, edit.BEFORE: "states"} if changes else {"x": 1}
    assert [(given, kind) for given, kind, _ in states] == ([(None, None)] if changes else [])
    again.asked.clear()
    assert function(code, lambda x: (10 * x, 20 * x))(1) == 10
    assert len(again.asked) == changes
    assert slots == [("graphmend_sink", ITEMS)]


class Looks:
    """Looks at the items right behind the graph; gives what takes them, or raises."""

    def __init__(self, seen: Delivered, error: Exception | None = None) -> None:
        self.seen, self.error = seen, error

    def __getitem__(self, items: Any) -> Any:
        self.seen.append(("looked at", items))
        if self.error is not None:
            raise self.error
        return Slot(lambda value: self.seen.append(("taken", value)))


def test_guards_are_looked_at_before_anything_is_replayed(slots: Delivered) -> None:
    code = edit.redirect_replay(generated.__code__, guards=Looks(slots))
    assert code is not None
    assert function(code, lambda x: (10 * x, 20 * x))(1) == 10
    assert slots == [("looked at", ITEMS), ("taken", ITEMS)]
    assert edit.redirect_replay(code, guards=Looks(slots)) is None


@pytest.mark.parametrize("runs_again", [False, True])
def test_a_guard_that_has_failed(slots: Delivered, runs_again: bool) -> None:
    again = Again(generated.__code__, True, "again") if runs_again else None
    code = edit.redirect_replay(generated.__code__, again, guards=Looks(slots, ValueError("failed")))
    assert code is not None
    if again is None:
        with pytest.raises(ValueError, match="failed"):
            function(code, lambda x: (10 * x, 20 * x))(1)
    else:
        assert function(code, lambda x: (10 * x, 20 * x))(1) == "again"
        assert [kind for _, kind, _ in again.asked] == [None, ValueError]
    assert slots == [("looked at", ITEMS)]  # nothing is delivered, nor is the graph said to have failed
    assert sys.exc_info() == (None, None, None)


def test_a_frame_without_items_and_with_a_closure() -> None:
    original = closure(3)
    again = Again(original.__code__, False, "again")
    code = edit.redirect_replay(original.__code__, again)
    assert code is not None
    names = {"__compiled_fn_1": fails}
    assert types.FunctionType(code, names, closure=original.__closure__)(1) == "again"
    assert again.asked[0][0] == ([], original.__closure__)
    names = {"__compiled_fn_1": lambda x: (2 * x,)}
    assert types.FunctionType(code, names, closure=original.__closure__)(1) == (2, 3)


def test_what_the_frame_raises_when_it_is_run_again() -> None:
    original = closure(3)
    code = edit.redirect_replay(original.__code__, Again(original.__code__, False, ValueError("its own")))
    assert code is not None
    with pytest.raises(ValueError, match="its own"):
        types.FunctionType(code, {"__compiled_fn_1": fails}, closure=original.__closure__)(1)
    assert sys.exc_info() == (None, None, None)
