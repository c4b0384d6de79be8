"""A recurrent layer in a mended module is an operator of the graph, which gives what eager gives, to the bit."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, Kept, assert_calls_alike, assert_left, both

from graphmend_hook.engine.door import recurrent_operator

PLAIN, MENDED = both("recurrent_cases")
BACKENDS = ("eager", "aot_eager", "inductor")
EXACTLY = {"rtol": 0.0, "atol": 0.0}
DRAWS = frozenset({"Drops"})  # Inductor draws other numbers


def seen(module: ModuleType, kind: Any, backend: Any, steps: int = 5) -> Iterator[list[Any]]:
    """What each of four calls gives, the gradients, the random stream behind it, and the records."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    made, records = kind(), Kept()
    called = made if backend is None else torch.compile(made, backend=backend)
    dtype = next(made.parameters()).dtype
    module.log.addHandler(records)
    module.log.setLevel("INFO")
    try:
        for call in range(4):
            torch.manual_seed(call)
            x = torch.randn(3, steps, 4, requires_grad=call > 1)
            made.zero_grad()
            found = called(x)
            tensors = [each for each in torch.utils._pytree.tree_leaves(found) if isinstance(each, torch.Tensor)]
            if any(each.requires_grad for each in tensors):
                sum(each.to(dtype).cos().sum() for each in tensors).backward()
            strides = [each.stride() for each in tensors]
            gradients = [x.grad, *(each.grad for each in made.parameters())]
            yield [*(each.detach() for each in tensors), *gradients, strides, torch.rand(1), [*records.texts]]
    finally:
        module.log.removeHandler(records)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", sorted(PLAIN.CASES))
def test_is_one_graph_and_as_in_eager(name: str, backend: str) -> None:
    if backend == "inductor" and name in DRAWS:
        pytest.skip("Inductor draws other numbers")
    counting = Counting(backend)
    expected = seen(PLAIN, PLAIN.CASES[name], None)
    tolerance = EXACTLY if backend != "inductor" else {"rtol": 1e-4, "atol": 1e-4}
    assert_calls_alike(seen(MENDED, MENDED.CASES[name], counting), expected, **tolerance)
    assert counting.graphs <= 3 and counting.runs == 4


@pytest.mark.parametrize("name", ["OneGRU", "BothWays", "CalledByName"])
def test_other_lengths_are_compiled_once(name: str) -> None:
    torch._dynamo.reset()
    counting, made = Counting("aot_eager"), MENDED.CASES[name]()
    compiled = torch.compile(made, backend=counting)
    for steps in (3, 5, 7, 60, 2):
        x = torch.randn(2, steps, 4)
        for one, other in zip(compiled(x), made(x), strict=True):
            assert torch.equal(one, other)
    assert counting.graphs == 2


@pytest.mark.parametrize("name", sorted(PLAIN.LEFT))
def test_what_may_be_told_is_left_as_without_the_hook(name: str) -> None:
    assert_left(seen, (PLAIN, MENDED), name, **EXACTLY)


@pytest.mark.parametrize("backend", BACKENDS)
def test_under_fullgraph(backend: str) -> None:
    torch._dynamo.reset()
    model = MENDED.OneLSTM()
    x = torch.randn(3, 5, 4)
    torch.testing.assert_close(torch.compile(model, backend=backend, fullgraph=True)(x), model(x))


def test_what_autograd_has_recorded_lives_no_longer_than_the_graph() -> None:
    torch._dynamo.reset()
    model = MENDED.OneGRU()
    compiled = torch.compile(model, backend="aot_eager")
    gc.collect()
    before = len(recurrent_operator._kept)
    found = compiled(torch.randn(3, 5, 4))
    assert len(recurrent_operator._kept) == before + 1
    found[0].sum().backward(retain_graph=True)
    found[0].sum().backward()
    del found
    gc.collect()
    assert len(recurrent_operator._kept) == before


@pytest.mark.parametrize("name", ["OneGRU", "OneLSTM", "BothWays"])
def test_gradients_of_gradients(name: str) -> None:
    torch._dynamo.reset()
    model, found = MENDED.CASES[name](), []
    for called in (model, torch.compile(model, backend="eager")):
        model.zero_grad()
        x = torch.linspace(-1, 1, 60).reshape(3, 5, 4).requires_grad_()
        y = called(x)[0]
        (gradient,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (y.sum() + gradient.pow(2).sum()).backward()
        found.append([x.grad, *(each.grad for each in model.parameters())])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", ["OneGRU", "OneLSTM"])
def test_many_gradients_at_once(name: str) -> None:
    torch._dynamo.reset()
    model, found = MENDED.CASES[name](), []
    for called in (model, torch.compile(model, backend="eager")):
        x = torch.linspace(-1, 1, 60).reshape(3, 5, 4).requires_grad_()
        y = called(x)[0].sum((1, 2))
        found.append(torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)[0])
    torch.testing.assert_close(*found)


def moved(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone()


@pytest.mark.parametrize("name", ["OneGRU", "BothWays"])
def test_a_ticket_that_was_moved(name: str) -> None:
    """A hook of the program's gives the backward pass a copy of all that autograd has saved."""
    torch._dynamo.reset()
    model, x, gradients = MENDED.CASES[name](), torch.randn(3, 5, 4), []
    compiled = torch.compile(model, backend="aot_eager")
    for called in (model, compiled):
        model.zero_grad()
        with torch.autograd.graph.saved_tensors_hooks(moved, lambda tensor: tensor):
            y = called(x)[0]
        y.sum().backward()
        gradients.append([each.grad for each in model.parameters()])
    assert all(map(torch.equal, *gradients))


def test_a_ticket_that_was_moved_of_a_layer_that_draws_says_so() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(MENDED.Drops(), backend="aot_eager")
    with torch.autograd.graph.saved_tensors_hooks(moved, lambda tensor: tensor):
        y = compiled(torch.randn(3, 5, 4))[0]
    with pytest.raises(RuntimeError, match="set dropout to 0"):
        y.sum().backward()


def test_the_program_s_own_setting_stays() -> None:
    settings: list[bool] = []

    def backend(module: torch.fx.GraphModule, _inputs: Any) -> Any:
        settings.append(torch._dynamo.config.allow_rnn)
        return module.forward

    torch._dynamo.reset()
    torch.compile(MENDED.OneLSTM(), backend=backend)(torch.randn(3, 5, 4))
    assert settings == [False]


@pytest.mark.parametrize("draws", [False, True])
def test_the_operators_are_what_they_say(draws: bool) -> None:
    """Schema, fake kernel and gradients, by PyTorch's own checks."""
    weights = [torch.randn(12, 4), torch.randn(12, 4), torch.randn(12), torch.randn(12)]
    given = ("gru", True, 1, 0.0, True, False, True, True)
    flags = [True, False, *(True for _ in weights)]
    operands = [torch.randn(3, 5, 4, requires_grad=True), None, [torch.zeros(1, 3, 4)]]
    operands += [[each.requires_grad_() for each in weights], *given, flags, [False] * 6, int(draws)]
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(recurrent_operator.operator_for(draws=draws), tuple(operands), test_utils=tests)
