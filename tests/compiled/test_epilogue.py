"""The epilogue: threads, checkpoints, graphs that raise, generated code that is not understood."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from observing import HERE, Counting, PerThread, Stream, import_file, import_mended, observe

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.attempt.compilation import NotTracingError
from graphmend_hook.engine.epilogue import bytecode, deferral, delivery, queue
from graphmend_hook.rules.defer import traced

PLAIN = import_file(HERE / "effects_module.py", "effects_module_plain")
MENDED = import_mended(HERE / "effects_module.py", "effects_module_mended")


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


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_without_gradients(backend: str, reentrant: bool) -> None:
    x = torch.randn(2, 4)

    def run(model: Any) -> Any:
        with torch.no_grad():
            return model(x)

    expected = effects(lambda: run(PLAIN.Model(True, reentrant)))
    compiled = torch.compile(MENDED.Model(True, reentrant), backend=backend, fullgraph=True)
    assert effects(lambda: run(compiled)) == expected
    assert effects(lambda: run(compiled)) == expected


def train(model: Any) -> Any:
    model(torch.ones(2, 4, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_in_training_records_the_forward_once(backend: str, fullgraph: bool, reentrant: bool) -> None:
    # torch.compile recomputes inside its backward graph, where no Python runs: PyTorch's own switch for side effects
    # in checkpoints (skip_fwd_side_effects_in_bwd_under_checkpoint) draws the same line.
    forward = effects(lambda: PLAIN.Model(True, reentrant)(torch.ones(2, 4, requires_grad=True)))
    assert effects(lambda: train(PLAIN.Model(True, reentrant)))[:2] == forward
    assert len(effects(lambda: train(PLAIN.Model(True, reentrant)))) == 4, "two blocks, each run again in backward"
    refusals.seen.clear()
    counting = Counting(backend)
    compiled = torch.compile(MENDED.Model(True, reentrant), backend=counting, fullgraph=fullgraph)
    assert effects(lambda: train(compiled)) == forward
    assert effects(lambda: train(compiled)) == forward
    assert counting.graphs == 1
    assert {code for code, *_ in refusals.seen} == {"GM101-T14"}


def test_checkpoint_trains_the_same() -> None:
    grads = []
    for module, wrap in ((PLAIN, lambda model: model), (MENDED, lambda model: torch.compile(model, fullgraph=True))):
        torch.manual_seed(0)
        model = module.Model(True)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
        effects(lambda model=model, wrap=wrap: train(wrap(model)))
        grads.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["look_up", "draw_and_look_up", "look_up_in_a_closure"])
def test_a_graph_that_raises_does_what_eager_does(name: str, backend: str) -> None:
    """H: effects of eager before the operation that fails, none after it, random numbers that are drawn again."""
    plain, mended = getattr(PLAIN, name), getattr(MENDED, name)
    compiled = torch.compile(mended, backend=backend, fullgraph=True)
    x = torch.arange(3.0)
    for index in (1, 7, 2, 7):
        seen = []
        for call in (plain, compiled):
            torch.manual_seed(index)
            given = (x, torch.tensor([index]))
            seen.append(observe(lambda call=call, given=given: call(*given), "effects_module"))
        if "draw" not in name or backend != "inductor":  # which draws numbers of its own
            assert seen[1] == seen[0]
        assert bool(seen[1].error) is (index == 7)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_graph_that_has_written_to_its_input_is_not_run_again(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    """H: nothing executes twice, and nothing is lost silently."""
    compiled = torch.compile(MENDED.count_and_look_up, backend=backend, fullgraph=True)
    x = torch.arange(3.0)
    compiled(x, torch.tensor([1]))
    seen = observe(lambda: compiled(x, torch.tensor([7])), "effects_module")
    assert seen.error is not None and "out of bounds" in seen.error[1]
    assert [effect[1] for effect in seen.effects] == ["before", "after"]
    assert "GM006" in caplog.text and "1 depended on the graph" in caplog.text
    assert x[0] in (1.0, 2.0)


@pytest.mark.parametrize("name", ["normed_and_looked_up", "renormed_and_looked_up"])
def test_a_graph_that_has_updated_a_buffer_is_not_run_again(name: str) -> None:
    """H: batch_norm and embedding write to what their names do not say."""
    plain, mended = getattr(PLAIN, name), getattr(MENDED, name)
    compiled = torch.compile(mended, backend="eager", fullgraph=True)
    state, expected = torch.full((3, 3), 2.0), torch.full((3, 3), 2.0)
    for index in (1, 7):
        for call, kept in ((plain, expected), (compiled, state)):
            given = (torch.ones(2, 3), kept, torch.tensor([index]))
            observe(lambda call=call, given=given: call(*given), "effects_module")
        assert torch.equal(state, expected)


def test_an_interrupt_runs_nothing_again(caplog: pytest.LogCaptureFixture) -> None:
    def interrupted(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        def run(*args: Any) -> Any:
            raise KeyboardInterrupt

        return run

    compiled = torch.compile(MENDED.look_up, backend=interrupted, fullgraph=True)
    with pytest.raises(KeyboardInterrupt):
        observe(lambda: compiled(torch.arange(3.0), torch.tensor([1])), "effects_module")
    assert "GM006" in caplog.text


def test_what_eager_can_do_is_done(caplog: pytest.LogCaptureFixture) -> None:
    """A backend that fails at run time; the function says so, once for each call."""

    def failing(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        def run(*args: Any) -> Any:
            raise RuntimeError("a fault of the backend")

        return run

    compiled = torch.compile(MENDED.look_up, backend=failing, fullgraph=True)
    x, index = torch.arange(3.0), torch.tensor([1])
    expected = observe(lambda: PLAIN.look_up(x, index), "effects_module")
    assert observe(lambda: compiled(x, index), "effects_module") == expected
    assert "GM009" in caplog.text and "a fault of the backend" in caplog.text


def test_a_size_that_is_missing_does_not_replace_the_exception(caplog: pytest.LogCaptureFixture) -> None:
    compiled = torch.compile(MENDED.sized_and_looked_up, backend="eager")
    for length, index in ((3, 0), (4, 0), (5, 99)):
        x, at = torch.ones(length), torch.tensor([index])
        expected = observe(lambda x=x, at=at: PLAIN.sized_and_looked_up(x.clone(), at), "effects_module")
        seen = observe(lambda x=x, at=at: compiled(x, at), "effects_module")
        assert seen.error == expected.error
    assert expected.error is not None
    assert "1 depended on the graph" in caplog.text  # the size is an output of the graph


def test_a_guard_shows_sizes_of_a_graph_that_raised() -> None:
    compiled = torch.compile(MENDED.guarded_by_size, backend="eager", dynamic=True)
    x, bad = torch.ones(6), torch.tensor([-9])
    assert compiled(x, torch.tensor([1])) == 1
    with pytest.raises(ValueError, match="negative") as caught:
        compiled(x, bad)
    assert caught.value.args == ("negative", 6, 12)


def test_a_guard_on_random_numbers_is_decided_by_the_same() -> None:
    x, bad = torch.ones(3), torch.tensor([99])
    compiled = torch.compile(MENDED.drawn, backend="eager")
    raised = []
    for seed in range(8):
        for call in (PLAIN.drawn, compiled):
            torch.manual_seed(seed)
            with pytest.raises((IndexError, ValueError)) as caught:
                call(x, bad)
            raised.append((caught.type, str(caught.value), torch.get_rng_state().tolist()))
    assert raised[::2] == raised[1::2]
    assert {kind for kind, *_ in raised} == {IndexError, ValueError}


def test_what_runs_again_is_that_of_the_compilation_at_hand() -> None:
    def failing(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        raise NotImplementedError

    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(MENDED.drawn, backend=failing, fullgraph=True)(torch.ones(3), torch.tensor([1]))
    with pytest.raises(NotTracingError):
        delivery.prepared(MENDED.drawn.__code__)


def test_a_graph_that_raises_leaves_no_exception_behind() -> None:
    compiled = torch.compile(MENDED.look_up, backend="eager", fullgraph=True)
    with pytest.raises(IndexError):
        compiled(torch.arange(3.0), torch.tensor([7]))
    assert sys.exc_info() == (None, None, None)
    with pytest.raises(IndexError) as caught:
        compiled(torch.arange(3.0), torch.tensor([7]))
    assert caught.value.__context__ is None


def test_an_operation_that_cannot_be_traced_loses_nothing() -> None:
    compiled = torch.compile(MENDED.multiplied, backend="eager")
    seen = observe(lambda: compiled(torch.ones(2, 3), torch.ones(2, 3)), "effects_module")
    assert seen.error is not None
    assert [effect[1] for effect in seen.effects] == ["multiplying"]
    counting = Counting("eager")
    torch.compile(MENDED.multiplied, backend=counting)(torch.ones(2, 3), torch.ones(3, 2))
    assert counting.graphs == 1  # what could not be traced then says nothing of now


def test_a_backend_that_fails_on_the_larger_graph_gets_the_smaller_ones() -> None:
    accepted: list[torch.fx.GraphModule] = []

    def limited(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        if len(graph.graph.nodes) > 3:
            raise ValueError("too many operations")
        accepted.append(graph)
        return graph

    x = torch.ones(3)
    expected = observe(lambda: PLAIN.announced(x, "one"), "effects_module")
    compiled = torch.compile(MENDED.announced, backend=limited)
    for _ in range(2):
        assert observe(lambda: compiled(x, "one"), "effects_module") == expected
    assert len(accepted) == 2
    torch._dynamo.reset()
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="too many operations"):
        torch.compile(MENDED.announced, backend=limited, fullgraph=True)(x, "one")


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


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_checkpoints_inside_checkpoints(backend: str) -> None:
    x = torch.ones(2)
    compiled = torch.compile(MENDED.nested_checkpoints, backend=backend)
    with torch.no_grad():
        expected = observe(lambda: PLAIN.nested_checkpoints(x), "effects_module")
        assert observe(lambda: compiled(x), "effects_module") == expected


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


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["look_up_positive", "branch"])
def test_inside_an_activation_checkpoint(name: str, backend: str) -> None:
    """H: a checkpoint ends the recomputed graph by an exception, and counts what is saved, while tracing too."""
    torch._dynamo.reset()
    compiled = torch.compile(getattr(MENDED, name), backend=backend)
    for numbers in ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 0.0, 4.0], [1.0, -2.0, 3.0, -4.0]):
        gradients = []
        for called in (getattr(PLAIN, name), compiled):
            x, y = torch.tensor(numbers, requires_grad=True), torch.tensor(2.0, requires_grad=True)
            torch.utils.checkpoint.checkpoint(called, x, y, use_reentrant=False).sum().backward()
            gradients.append([x.grad, y.grad])
        torch.testing.assert_close(gradients[1], gradients[0])
