"""Generated code that is not understood: said once, nothing lost, and declined from then on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from observing import Counting, Stream, both, observe

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import bytecode, deferral, queue

PLAIN, MENDED = both("effects_module")


def effects(call: Any) -> list[tuple[object, ...]]:
    return observe(call, "effects_module").effects


@pytest.fixture
def _not_understood(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generated code looks as another torch would write it: the replay is a form that the edit does not know."""
    monkeypatch.setattr(bytecode, "_takes_whole_slice", lambda code, index: False)
    yield
    queue.understood = True


@pytest.mark.usefixtures("_not_understood")
def test_code_that_is_not_understood_is_said_once_and_does_not_run(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.ones(2)
    expected = effects(lambda: PLAIN.tagged(x, 3))
    compiled = torch.compile(MENDED.tagged, backend="eager")
    for _ in range(3):
        assert effects(lambda: compiled(x, 3)) == expected
    other = torch.compile(MENDED.say, backend="eager")
    for _ in range(2):
        assert effects(lambda: other(x)) == effects(lambda: PLAIN.say(x))
    assert caplog.text.count("GM005") == 1
    assert queue.graphmend_pending == []


FAILING = {
    "guarded_look_up": [(torch.ones(3), torch.tensor([1])), (-torch.ones(3), torch.tensor([7]))],
    "look_up": [(torch.ones(3), torch.tensor([1])), (torch.ones(3), torch.tensor([7]))],
    "selected": [(torch.arange(5.0), torch.ones(3)), (torch.tensor([0.0, 7.0]), torch.ones(3))],
}


@pytest.mark.usefixtures("call_not_understood")
@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("first", [0, 1])
def test_a_graph_whose_call_is_not_understood(name: str, first: int, caplog: pytest.LogCaptureFixture) -> None:
    """H: a record or a guard is lost, or a valid program fails, where nothing handles the failure of its graph."""
    plain, compiled = getattr(PLAIN, name), torch.compile(getattr(MENDED, name), backend="eager")
    for given in (FAILING[name][first], *FAILING[name], *FAILING[name]):
        seen = [observe(lambda call=call, given=given: call(*given), "effects_module") for call in (plain, compiled)]
        for observed in seen:  # without the hook, what follows a break is in a function of Dynamo's
            observed.effects = [effect[:2] for effect in observed.effects]
        assert seen[1] == seen[0]
    assert caplog.text.count("GM005") == 1


@pytest.mark.usefixtures("call_not_understood")
@pytest.mark.parametrize("name", FAILING)
def test_a_frame_that_was_not_understood_is_compiled_as_without_the_hook(name: str) -> None:
    """H: worse than without: what ran as it was written would do so for ever."""
    given = FAILING[name][0]
    graphs = []
    for module, again in ((PLAIN, 1), (MENDED, 2)):
        counting = Counting("eager")
        compiled = torch.compile(getattr(module, name), backend=counting)
        for _ in range(again):
            counting.graphs = 0
            observe(lambda compiled=compiled: compiled(*given), "effects_module")
        graphs.append(counting.graphs)
    assert graphs[0] == graphs[1] > 0


def test_what_follows_a_break_is_not_run_again() -> None:
    """H: the handler of the graph before the break, which has captured a size, took what failed after it for its own."""
    for module in (PLAIN, MENDED):
        compiled = torch.compile(module.selected_then_fails, backend="eager")
        for calls in (1, 2):
            with pytest.raises(ValueError, match="after the break"):
                compiled(torch.arange(5.0))
            assert len(module.CALLS) == calls


@pytest.mark.usefixtures("_not_understood")
def test_threads_lose_nothing_when_code_is_not_understood() -> None:
    # Prints, not logs: in the path without the hook Dynamo compiles frames of `logging` while their locks are held, and
    # torch 2.13 deadlocks with itself when two threads do that.
    written: list[tuple[object, ...]] = []
    compiled = torch.compile(MENDED.shout, backend="eager")
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        for index in range(20):
            compiled(torch.tensor([float(index)]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    with contextlib.redirect_stdout(Stream("stdout", written)):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
    texts = sorted(str(text) for _, text in written if text != "\n")
    assert texts == sorted(4 * [f"{torch.tensor([float(i)])}" for i in range(20)])


def test_a_tracer_that_cannot_be_asked_declines(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another torch may name things otherwise; that must end neither the trace nor the record, and is said once."""
    monkeypatch.setattr(deferral, "_is_redirected", lambda trace: trace.no_such_attribute)
    monkeypatch.delenv("_GRAPHMEND_DEFECTS")
    x = torch.ones(2)
    compiled = torch.compile(MENDED.say, backend="eager")
    assert effects(lambda: compiled(x)) == effects(lambda: PLAIN.say(x))
    assert {code for code, *_ in refusals.seen} == {"GM100-T01"}
    assert caplog.text.count("GM010: the question 'why_not_deferrable' of the tracer failed") == 1
