"""A recurrent layer of a few steps, or an LSTM that is not trained, is in the graph; others break it as in stock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Counting, both
from torch import nn

from graphmend_hook.engine.door import recurrent

_, MENDED = both("recurrent_cases")
LAYERS = {
    "one": {},
    "two": {"num_layers": 2, "dropout": 0.3},
    "both ways": {"bidirectional": True, "num_layers": 2},
    "no bias": {"bias": False},
}
OTHERS = {
    "GRU": lambda: nn.GRU(8, 16, batch_first=True),
    "RNN": lambda: nn.RNN(8, 16, batch_first=True),
    "projections": lambda: nn.LSTM(8, 16, proj_size=4, batch_first=True),
    "double": lambda: nn.LSTM(8, 16, batch_first=True).double(),
}


def results(called: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    found = []
    for x in inputs:
        y, state = called(x)
        again = called(x, state) if isinstance(state, tuple) else (y, state)
        found += torch.utils._pytree.tree_leaves((y, state, again))
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", LAYERS)
def test_an_lstm_without_gradients_is_in_the_graph(name: str, backend: str) -> None:
    model = MENDED.Recurrent(nn.LSTM(8, 16, batch_first=True, **LAYERS[name])).eval()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    inputs = [torch.randn(3, steps, 8) for steps in (5, 5, 7, 200)]
    with torch.no_grad():
        assert all(map(torch.equal, results(compiled, inputs), results(model, inputs)))


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
def test_a_few_steps_are_in_the_graph_and_are_trained(kind: Any) -> None:
    model = MENDED.Recurrent(kind(8, 16, batch_first=True))
    torch._dynamo.reset()
    compiled, found = torch.compile(model, backend="aot_eager", fullgraph=True), []
    for called in (compiled, model):
        model.zero_grad()
        results, _ = called(torch.ones(3, 4, 8))
        results.sum().backward()
        found.append([results, *(each.grad for each in model.parameters())])
    torch.testing.assert_close(*found)


def graphs(model: nn.Module, backend: str = "aot_eager", train: bool = False, **made: Any) -> tuple[int, int, bool]:
    """Graphs and runs of two calls, and whether they are equal to eager's."""
    torch._dynamo.reset()
    counting, x = Counting(backend), torch.randn(3, 5, 8, dtype=model.before.weight.dtype, **made)
    compiled = torch.compile(model, backend=counting)
    with torch.set_grad_enabled(train):
        equal = all(map(torch.equal, results(compiled, [x]), results(model, [x])))
    return counting.graphs, counting.runs, equal


@pytest.fixture
def is_left(monkeypatch: pytest.MonkeyPatch) -> Callable[..., bool]:
    """Is a model equal to eager, and compiled as if the recurrent layer were never let through?"""

    def judge(model: nn.Module, **how: Any) -> bool:
        found = graphs(model, **how)
        monkeypatch.setattr(recurrent, "_is_asked_for", lambda frame: False)
        return found[2] and found == graphs(model, **how)

    return judge


@pytest.mark.parametrize("name", OTHERS)
def test_what_would_be_unrolled_is_left(name: str, is_left: Callable[..., bool]) -> None:
    layer = OTHERS[name]()
    assert is_left(MENDED.Recurrent(layer).to(next(layer.parameters()).dtype).eval())


@pytest.mark.parametrize("kind", ["Recurrent", "TrainsBehind"])
def test_a_layer_that_is_trained_is_left(kind: str, is_left: Callable[..., bool]) -> None:
    assert is_left(getattr(MENDED, kind)(nn.LSTM(8, 16, batch_first=True)), train=True)


def test_an_input_that_requires_a_gradient_is_left(is_left: Callable[..., bool]) -> None:
    assert is_left(MENDED.Straight(nn.LSTM(8, 16, batch_first=True)), requires_grad=True)


def test_a_frame_with_a_break_that_stays_is_as_without_the_hook(is_left: Callable[..., bool]) -> None:
    assert is_left(MENDED.Breaks(nn.LSTM(8, 16, batch_first=True)).eval())


def test_the_setting_is_as_the_program_has_it() -> None:
    settings: list[bool] = []

    def backend(module: torch.fx.GraphModule, _inputs: Any) -> Any:
        settings.append(torch._dynamo.config.allow_rnn)
        return module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(MENDED.Recurrent(nn.LSTM(8, 16)).eval(), backend=backend)(torch.randn(3, 5, 8))
    assert settings == [False]
