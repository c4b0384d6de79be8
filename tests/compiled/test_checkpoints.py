"""Effects in activation checkpoints: once in the forward pass, in order, and with the gradients of eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both, observe

from graphmend_hook.engine.attempt import refusals

PLAIN, MENDED = both("effects_module")


def effects(call: Any) -> list[tuple[object, ...]]:
    return observe(call, "effects_module").effects


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


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_checkpoints_inside_checkpoints(backend: str) -> None:
    x = torch.ones(2)
    compiled = torch.compile(MENDED.nested_checkpoints, backend=backend)
    with torch.no_grad():
        expected = observe(lambda: PLAIN.nested_checkpoints(x), "effects_module")
        assert observe(lambda: compiled(x), "effects_module") == expected


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
