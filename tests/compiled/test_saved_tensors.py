"""What is read of a buffer stays what was read, for gradients and for other buffers, though it is written to later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import on
from programs import Programs, of
from programs import trained as rising

SAVED, WRITTEN_LATER = Programs("saved_tensor_cases"), Programs("written_later_cases")
PLAIN, MENDED = SAVED.plain, SAVED.mended
RIGHT = (
    "Read",
    "Moved",
    "Momentum",
    "Crossed",
    "Again",
    "Written",
    "Weight",
    "Inside",
    "Mixed",
    "Difference",
    "Normed",
)
ON_INDUCTOR = ("Momentum", "Crossed", "Weight", "Inside", "Mixed", "Normed")
Compile = Callable[[Any], Any]


class Graphs:
    """Compiles by another backend, and keeps the names of what each graph calls."""

    def __init__(self, backend: str) -> None:
        self.called: list[list[str]] = []
        self._backend = torch._dynamo.lookup_backend(backend)

    def __call__(self, module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        self.called.append([getattr(node.target, "__name__", str(node.target)) for node in module.graph.nodes])
        return self._backend(module, inputs)

    @property
    def copies(self) -> list[int]:
        """How many copies of ours each graph makes."""
        return [names.count("kept.default") for names in self.called]


def trained(step: int, rows: int = len(PLAIN.READS)) -> torch.Tensor:
    return (torch.arange(16.0 * rows).reshape(rows, 4, 4) + step).sin().add(1.1).requires_grad_()


def seen(module: Any, kind: str, compile: Compile, steps: int = 3) -> dict[str, Any]:
    """What some steps of training give and leave."""
    torch._dynamo.reset()
    model = getattr(module, kind)()
    called, found = compile(model), {}
    for step in range(steps):
        q = trained(step)
        model.zero_grad()
        loss = called(q)
        if loss.requires_grad:
            loss.backward()
            found[f"{step} gradient of the weight"] = model.weight.grad
            for row, name in enumerate(PLAIN.READS):
                found[f"{step} gradient of {name}"] = q.grad[row]
        found[f"{step} loss"] = loss.detach()
        found |= {f"{step} {name}": each.detach().clone() for name, each in model.state_dict().items()}
    return found


def check(kind: str, backend: str, graphs: int = 1, copies: int | None = None) -> None:
    expected, compiled = seen(PLAIN, kind, lambda model: model), Graphs(backend)
    found = seen(MENDED, kind, lambda model: torch.compile(model, backend=compiled))
    wrong = [name for name in expected if not is_same(found[name], expected[name], backend)]
    assert wrong == []
    assert len(compiled.called) == graphs
    assert copies is None or sum(compiled.copies) == copies


def is_same(one: torch.Tensor | None, other: torch.Tensor | None, backend: str) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one, other) if backend != "inductor" else torch.allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "backend"), [pair for pair in on(RIGHT, ON_INDUCTOR) if pair[1] != "eager"])
def test_a_buffer_that_is_read_and_then_written_to(kind: str, backend: str) -> None:
    check(kind, backend)


@pytest.mark.parametrize(
    ("kind", "copies"), [("Momentum", 2), ("Difference", 1), ("Normed", 0), ("Mixed", 3), ("Queue", 1)]
)
def test_copies_are_made_of_what_gradients_rest_on(kind: str, copies: int) -> None:
    check(kind, "eager", copies=copies)


@pytest.mark.parametrize("kind", ["Read", "Momentum", "Crossed", "Mixed", "Queue"])
def test_without_gradients_nothing_is_copied(kind: str) -> None:
    compiled = Graphs("eager")
    with torch.no_grad():
        torch.compile(getattr(MENDED, kind)(), backend=compiled)(trained(0))
    assert compiled.copies == [2 if kind == "Crossed" else 0]  # what a buffer hands to the other


def test_a_gradient_that_needs_the_buffer_itself_fails_as_in_eager() -> None:
    for compile in (lambda model: model, lambda model: torch.compile(model, backend="aot_eager")):
        loss = compile(MENDED.Itself())(trained(0))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_buffer_of_which_the_program_has_a_copy_is_written_to_after_the_call(backend: str) -> None:
    model, q = MENDED.Queue(), trained(0)
    held = model.b0.clone()
    loss = torch.compile(model, backend=backend)(q)
    model.b0.zero_()
    loss.backward()
    assert q.grad is not None
    assert torch.equal(q.grad[0], held)


def test_a_backward_pass_that_saves_inputs_only_gives_way() -> None:
    with torch._functorch.config.patch(activation_memory_budget=0.0):
        check("Difference", "inductor", graphs=2, copies=0)


@pytest.mark.parametrize("kind", ["Counted", "Mixed"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_what_is_computed_of_a_buffer_that_is_written_to(kind: str, backend: str) -> None:
    """Its gradient is eager's; compiled as it is written it is not, where no break stands between."""
    gradients = []
    for module, compile in (
        (WRITTEN_LATER.plain, lambda model: model),
        (WRITTEN_LATER.mended, lambda model: torch.compile(model, backend=backend)),
    ):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, y = getattr(module, kind)(), rising(3)
        called = compile(model)
        for _ in range(2):
            (called(of(1), y) * of(2)).sum().backward()
        gradients.append((y.grad, model.n))
    torch.testing.assert_close(gradients[1], gradients[0])
