"""A graph that raises, a backend that fails, an operation that cannot be traced: what eager does is done, and nothing twice."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from observing import Counting, both, observe

from graphmend_hook.engine.attempt.compilation import NotTracingError
from graphmend_hook.engine.epilogue import delivery

PLAIN, MENDED = both("effects_module")


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
