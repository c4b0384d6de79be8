"""The bytecode edits on code of the shape that Dynamo generates, on every Python that this suite runs on."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from bytecode import Bytecode, Instr

from graphmend_hook.dynamo import bytecode as edit
from graphmend_hook.dynamo import queue

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
    for name in ("graphmend_sink", "graphmend_failed", "graphmend_drain"):
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


def test_items_that_cannot_be_built_twice_are_reported_as_lost(slots: Delivered) -> None:
    code = edit.redirect_replay(reads_a_temporary.__code__)
    assert code is not None
    assert function(code, lambda x: x)(1) == 1
    with pytest.raises(ZeroDivisionError):
        function(code, lambda x: 1 // 0)(1)
    assert slots == [("graphmend_sink", [("make", "log", [1])]), ("graphmend_failed", None)]


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


def appends(x: Any) -> Any:
    owner.queue.graphmend_pending.extend([x])  # type: ignore[name-defined]  # noqa: F821
    return x


def test_another_form_of_replay_is_not_understood() -> None:
    with pytest.raises(edit.NotUnderstoodError):
        edit.redirect_replay(appends.__code__)


def test_drained_before_every_return(slots: Delivered) -> None:
    def code(x: Any) -> Any:
        owner.queue.graphmend_pending.extend([x])  # type: ignore[name-defined]  # noqa: F821
        if x:
            return "true"
        return "false" + str(x)

    drained = edit.drain_on_return(code.__code__)
    assert [function(drained, None)(x) for x in (0, 1)] == ["false0", "true"]
    assert slots == [("graphmend_drain", None)] * 2


def test_code_of_others_is_not_touched() -> None:
    assert edit.redirect_replay(function.__code__) is None


def test_the_slice_forms_of_all_versions() -> None:
    assert edit._takes_whole_slice(Bytecode([Instr("LOAD_CONST", slice(None, None))]), 0)
    bounds = [Instr("LOAD_CONST", None), Instr("LOAD_CONST", None)]
    assert edit._takes_whole_slice(Bytecode([*bounds, Instr("BUILD_SLICE", 2)]), 0)
    assert not edit._takes_whole_slice(Bytecode([Instr("LOAD_CONST", 0), *bounds]), 0)


class Again(edit.Rerun):
    """Notes what it is asked for; `value` is what the frame gives."""

    def __init__(self, code: types.CodeType, draws: tuple[str, ...], value: Any) -> None:
        super().__init__(code, draws)
        self.value, self.asked = value, []

    def __getitem__(self, given: Any) -> Any:
        frame = sys._getframe(1)
        self.asked.append((given, sys.exc_info()[0], dict(frame.f_locals)))
        if isinstance(self.value, Exception):
            raise self.value
        return "states" if given is None else self.value


def closure(kept: Any) -> types.FunctionType:
    def inner(x: Any) -> Any:
        graph_out_0 = __compiled_fn_1(x)  # type: ignore[name-defined]  # noqa: F821
        return graph_out_0[0], kept

    return inner  # type: ignore[return-value]


def fails(*_: Any) -> Any:
    raise IndexError("in the graph")


@pytest.mark.parametrize("draws", [(), ("cpu",)])
def test_a_frame_is_run_again(slots: Delivered, draws: tuple[str, ...]) -> None:
    again = Again(generated.__code__, draws, "again")
    code = edit.redirect_replay(generated.__code__, again)
    assert code is not None
    assert function(code, fails)(1) == "again"
    assert sys.exc_info() == (None, None, None)
    *states, (given, kind, found) = again.asked
    assert given == ([("make", "log", (queue.MISSING, "text")), ("make", "log", (1,))], ())
    assert kind is IndexError
    assert found == {"x": 1, edit.RANDOM: "states"} if draws else {"x": 1}
    assert [(given, kind) for given, kind, _ in states] == ([(None, None)] if draws else [])
    again.asked.clear()
    assert function(code, lambda x: (10 * x, 20 * x))(1) == 10
    assert len(again.asked) == len(draws)
    assert slots == [("graphmend_sink", ITEMS)]


def test_a_frame_without_items_and_with_a_closure() -> None:
    original = closure(3)
    again = Again(original.__code__, (), "again")
    code = edit.redirect_replay(original.__code__, again)
    assert code is not None
    names = {"__compiled_fn_1": fails}
    assert types.FunctionType(code, names, closure=original.__closure__)(1) == "again"
    assert again.asked[0][0] == ([], original.__closure__)
    names = {"__compiled_fn_1": lambda x: (2 * x,)}
    assert types.FunctionType(code, names, closure=original.__closure__)(1) == (2, 3)


def test_what_the_frame_raises_when_it_is_run_again() -> None:
    original = closure(3)
    code = edit.redirect_replay(original.__code__, Again(original.__code__, (), ValueError("its own")))
    assert code is not None
    with pytest.raises(ValueError, match="its own"):
        types.FunctionType(code, {"__compiled_fn_1": fails}, closure=original.__closure__)(1)
    assert sys.exc_info() == (None, None, None)
