"""The epilogue: what is delivered behind the graph, to whom, in which order, and when it is not."""

from __future__ import annotations

import logging
import threading
import warnings
from typing import Any

import pytest
import torch
from observing import Counting, PerThread, both, observe

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import deferral, delivery, queue
from graphmend_hook.rules.defer import traced

PLAIN, MENDED = both("effects_module")


def effects(call: Any) -> list[tuple[object, ...]]:
    return observe(call, "effects_module").effects


def test_four_threads_get_their_own_records() -> None:
    calls = 500
    counting = Counting("eager")
    compiled = torch.compile(MENDED.tagged, backend=counting, fullgraph=True, dynamic=False)
    handler = PerThread()
    logger = MENDED.logger
    logger.addHandler(handler)
    logger.propagate = False
    compiled(torch.zeros(2), 0)
    handler.seen.clear()
    results: dict[int, list[float]] = {}
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        mine = results.setdefault(threading.get_ident(), [])
        for index in range(calls):
            mine.append(float(number * calls + index))
            compiled(torch.tensor([mine[-1], 0.0]), 0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        logger.removeHandler(handler)
    expected = {ident: [f"tag 0 of {torch.tensor(value)!s}" for value in values] for ident, values in results.items()}
    assert handler.seen == expected
    assert counting.graphs == 1, "recompiled"
    assert queue.graphmend_pending == []


def test_a_frame_that_dynamo_gives_up_has_the_graphs_that_it_has_without_us() -> None:
    graphs = []
    for module in (PLAIN, MENDED):
        torch._dynamo.reset()
        counting = Counting("eager")
        compiled = torch.compile(module.collected, backend=counting)
        assert effects(lambda compiled=compiled: compiled(torch.ones(2), []))
        graphs.append(counting.graphs)
    assert graphs[0] == graphs[1] > 0


def test_dynamo_does_not_compile_the_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    generated: list[str] = []
    handle = torch._dynamo.convert_frame.register_bytecode_hook(lambda old, new: generated.append(old.co_filename))
    compiled = torch.compile(MENDED.tagged, backend="eager")
    for _ in range(2):
        compiled(torch.ones(2), 1)
    handle.remove()
    assert set(generated) == {MENDED.__file__}


def test_sizes_of_dynamic_shapes_are_those_of_the_call() -> None:
    counting = Counting("eager")
    compiled = torch.compile(MENDED.sized, backend=counting, fullgraph=True, dynamic=True)
    for rows in (3, 5, 8):
        x = torch.zeros(rows, 2)
        assert effects(lambda x=x: compiled(x)) == effects(lambda x=x: PLAIN.sized(x))
    assert counting.graphs == 1


@pytest.mark.parametrize("function", ["named", "announced"])
def test_text_that_differs_from_call_to_call_does_not_recompile(function: str) -> None:
    counting = Counting("eager")
    plain, compiled = (
        getattr(PLAIN, function),
        torch.compile(getattr(MENDED, function), backend=counting, fullgraph=True),
    )
    x = torch.ones(2)
    for number in range(12):
        name = f"file {number}"
        assert effects(lambda name=name: compiled(x, name)) == effects(lambda name=name: plain(x, name))
    assert counting.graphs == 1


def test_what_was_a_text_may_be_something_else() -> None:
    """H: a text that is not looked at is not guarded; a tensor in its place would be shown as it is later."""
    x = torch.ones(2)
    compiled = torch.compile(MENDED.announced, backend="eager")
    for name in ("text", torch.zeros(2), ["in a list"], "text"):
        assert effects(lambda name=name: compiled(x, name)) == effects(lambda name=name: PLAIN.announced(x, name))
    shown = torch.zeros(2)
    compiled = torch.compile(MENDED.announced_and_written, backend="eager")
    for name in ("text", shown):
        text = f"{name}"
        assert effects(lambda name=name: compiled(x, shown, name))[0] == ("stdout", text)
        assert text != f"{shown}"


def test_a_growing_table_does_not_recompile() -> None:
    models = PLAIN.Remembering(), MENDED.Remembering()
    counting = Counting("eager")
    compiled = torch.compile(models[1], backend=counting)
    x = torch.ones(2)
    for number in range(12):
        assert effects(lambda: compiled(x)) == effects(lambda: models[0](x))
        for model in models:
            model.shapes[number] = number
    assert counting.graphs == 2


class Interfering(logging.Handler):
    """Looks at the model's state, changes it, and may fail."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.seen, self.fail = model, [], False

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(self.model.calls)
        if record.getMessage() == "after":
            if self.fail:
                raise RuntimeError("handler")
            self.model.calls += 100


def test_handlers_run_when_the_state_of_the_call_is_complete() -> None:
    model = MENDED.Stateful()
    compiled = torch.compile(model, backend="eager")
    handler = Interfering(model)
    MENDED.logger.addHandler(handler)
    try:
        compiled(torch.ones(2))
        assert (handler.seen, model.calls) == ([1, 1], 101), "what the handler changes is not overwritten"
        handler.fail = True
        with pytest.raises(RuntimeError, match="handler"):
            compiled(torch.ones(2))
        assert model.calls == 102, "as in eager, the call has counted before its handler failed"
    finally:
        MENDED.logger.removeHandler(handler)


def test_handlers_see_what_was_counted_before_the_first_log() -> None:
    """H: torch 2.12 makes up an `id` of its own in traced code, and the list was replayed before the model's counter."""
    model = MENDED.CountsFirst()
    handler = Interfering(model)
    MENDED.logger.addHandler(handler)
    try:
        torch.compile(model, backend="eager")(torch.ones(2))
    finally:
        MENDED.logger.removeHandler(handler)
    assert (handler.seen, model.calls) == ([1], 101)


def test_aot_compile_has_no_epilogue_and_so_nothing_is_deferred() -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(MENDED.tagged, fullgraph=True, backend="eager").aot_compile(((torch.ones(1), 1), {}))
    assert queue.graphmend_pending == []
    assert queue.understood


@pytest.mark.parametrize(
    "setting", [{"replay_side_effects": False}, {"side_effect_replay_policy": "error"}, {"caching_precompile": True}]
)
def test_settings_under_which_nothing_is_deferred(setting: dict[str, Any]) -> None:
    x = torch.ones(2)
    refusals.seen.clear()
    with torch._dynamo.config.patch(**setting):
        compiled = torch.compile(MENDED.say, backend="eager")
        assert effects(lambda: compiled(x)) == effects(lambda: PLAIN.say(x))
    assert {code for code, *_ in refusals.seen} == {"GM101-T09"}


def test_a_warning_that_a_called_function_hushes_is_not_shown() -> None:
    assert observe(lambda: torch.compile(MENDED.hushed, backend="eager")(torch.ones(2)), "effects_module").effects == []


def test_a_warning_that_is_an_error_is_raised_where_it_stands() -> None:
    x = torch.ones(2)
    compiled = torch.compile(MENDED.warn, backend="eager")
    refusals.seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful"):
            compiled(x)
    assert [code for code, *_ in refusals.seen] == ["GM101-T07"]


def test_a_warning_that_becomes_an_error_leaves_the_call() -> None:
    compiled = torch.compile(MENDED.warn, backend="eager", fullgraph=True)
    assert len(effects(lambda: compiled(torch.ones(2)))) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful"):
            compiled(torch.ones(2))


def test_warnings_follow_the_once_per_location_registry() -> None:
    compiled = torch.compile(MENDED.warn, backend="eager", fullgraph=True)
    MENDED.__dict__.pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        compiled(torch.ones(2))
        compiled(torch.ones(2))
    assert [str(item.message) for item in seen] == ["careful"]
    assert "__warningregistry__" in MENDED.__dict__


def test_an_error_of_our_own_is_fatal_in_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferral, "_is_redirected", lambda trace: trace.no_such_attribute)
    with pytest.raises(Exception, match=r"'why_not_deferrable' of the tracer failed at .*deferral\.py"):
        torch.compile(MENDED.say, backend="eager")(torch.ones(2))


def test_a_deferral_that_is_made_for_real_is_delivered_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    traced.defer(lambda target, values: target(*values), print, "", ("at once",))
    assert capsys.readouterr().out == "at once\n"
    assert queue.graphmend_pending == []


def test_what_is_left_in_the_list_is_delivered_at_last(capsys: pytest.CaptureFixture[str]) -> None:
    queue.graphmend_pending.append((queue.ITEM, lambda target, values: target(*values), print, "left behind"))
    delivery.drain()
    assert capsys.readouterr().out == "left behind\n"
    assert queue.graphmend_pending == []
