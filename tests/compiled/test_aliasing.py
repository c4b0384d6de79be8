"""Inputs that share memory, and writes that no version counts: equal to eager, whatever was compiled before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from observing import Counting
from programs import Programs, of

FILE = Programs("aliasing_cases")
PLAIN, MENDED = FILE.plain, FILE.mended
SHARED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a view": lambda x: x.view(2, 2),
    "detached": lambda x: x.detach(),
    "the data": lambda x: x.data,
    "of numpy": lambda x: torch.from_numpy(x.numpy()),
    "of a storage": lambda x: torch.empty(0).set_(x.untyped_storage(), 0, (4,), (1,)),
    "a part": lambda x: x.detach()[:1],
}
NAMES = ["branch", "number"]


def apart(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


def outcome(function: Callable[..., torch.Tensor], share: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    x = torch.full((4,), 2.0)
    other = share(x)
    return [function(x, other), x, other]


def assert_equal(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert [value.tolist() for value in found] == [value.tolist() for value in expected]


@pytest.mark.parametrize("inference", [False, True], ids=["no_grad", "inference"])
@pytest.mark.parametrize("share", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("name", NAMES)
def test_inputs_that_share_memory(name: str, share: Callable[[torch.Tensor], torch.Tensor], inference: bool) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend="eager", dynamic=False)
    with torch.inference_mode(inference), torch.no_grad():
        assert_equal(outcome(compiled, share), outcome(getattr(PLAIN, name), share))


@pytest.mark.parametrize("name", NAMES)
def test_inputs_that_come_to_share_memory(name: str) -> None:
    counting = Counting("eager")
    compiled = torch.compile(getattr(MENDED, name), backend=counting, dynamic=False)
    with torch.no_grad():
        graphs = []
        for share in (apart, apart, SHARED["detached"], apart):
            assert_equal(outcome(compiled, share), outcome(getattr(PLAIN, name), share))
            graphs.append(counting.graphs)
    assert graphs[0] == graphs[1] == 1 < graphs[2] == graphs[3]


@pytest.mark.parametrize("inference", [False, True], ids=["no_grad", "inference"])
def test_a_write_that_no_version_counts(inference: bool) -> None:
    compiled = torch.compile(MENDED.branch_behind_autograd, backend="eager", dynamic=False)
    with torch.inference_mode(inference), torch.no_grad():
        assert_equal(outcome(compiled, apart), outcome(PLAIN.branch_behind_autograd, apart))


@pytest.mark.parametrize(("name", "graphs"), [("branch_behind_writes", 1), ("branch_behind_a_transposed_write", 2)])
def test_a_write_before_the_branch(name: str, graphs: int) -> None:
    """AOTAutograd gives what was written as a transposed tensor other strides; a write to a part keeps them."""
    counting = Counting("aot_eager")
    compiled = torch.compile(getattr(MENDED, name), backend=counting)
    for value in (-2.0, 2.0):
        with torch.no_grad():
            found, expected = (f(torch.full((2, 3), value), torch.ones(2, 3)) for f in (compiled, getattr(PLAIN, name)))
        assert_equal([found], [expected])
    assert counting.graphs == graphs


def test_a_caller_that_stands_in_no_file() -> None:
    """A cell of a notebook, `python -c`: also there a broken caller may write to what a helper has given it."""
    text = (
        "def caller(x):\n    kept = x\n    for _ in range(2):\n        torch._dynamo.graph_break()\n"
        "        y = at_least_zero(x)\n        y.add_(1)\n    return kept * 1\n"
    )
    names = {"torch": torch, "at_least_zero": MENDED.at_least_zero}
    exec(compile(text, "<string>", "exec"), names)
    compiled = torch.compile(names["caller"], backend="eager")
    for value in (1.0, -1.0, 2.0):
        assert torch.equal(compiled(of(value)), names["caller"](of(value)))
