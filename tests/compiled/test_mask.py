"""[Mask] against eager: equal to the bit, gradients too, in one graph without symbols; or the statement as it was."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended

from graphmend_hook.dynamo import refusals

PATH = HERE / "mask_cases.py"
PLAIN = import_file(PATH, "mask_cases_plain")
MENDED = import_mended(PATH, "mask_cases_mended")
BACKENDS = ["eager", "aot_eager", "inductor"]
MOVES = ["moved", "complement", "added", "subtracted", "its_own", "handed_over"]
NAN = float("nan")


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    refusals.seen.clear()
    torch._dynamo.reset()
    yield
    refusals.seen.clear()


def inputs(dims: int = 2, dtype: torch.dtype = torch.float32) -> list[tuple[torch.Tensor, ...]]:
    """Both tensors and a mask: of some elements, of none, of all, with values that are no numbers among them."""
    torch.manual_seed(0)
    x, y = (torch.randn(4, 6) * 9).to(dtype), (torch.randn(4, 6) * 9).to(dtype)
    if dtype.is_floating_point:
        x[0, 0], y[0, 1], y[1, 1], x[2, 2] = NAN, NAN, float("inf"), -0.0
    masks = [torch.rand(4, 6) > 0.5, torch.zeros(4, 6, dtype=torch.bool), torch.ones(4, 6, dtype=torch.bool)]
    return [(x, y, mask if dims == 2 else mask[:, 0]) for mask in masks]


def compare(name: str, backend: str, calls: list[tuple[torch.Tensor, ...]], fullgraph: bool = True) -> int:
    """Compares each call with eager, and what it writes to its arguments; the number of graphs."""
    counting = Counting(backend)
    compiled = torch.compile(getattr(MENDED, name), backend=counting, dynamic=False, fullgraph=fullgraph)
    for given in calls:
        own, theirs = copy.deepcopy(given), copy.deepcopy(given)
        expected, found = getattr(PLAIN, name)(*own), compiled(*theirs)
        for one, other in zip((found, *theirs), (expected, *own), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
            assert torch.equal(one.signbit(), other.signbit())
    return counting.graphs


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MOVES)
def test_one_graph(name: str, backend: str) -> None:
    assert compare(name, backend, inputs()) == 1
    assert not refusals.seen


@pytest.mark.parametrize("name", ["moved", "added"])
def test_a_mask_of_rows_other_types_and_a_comparison(name: str) -> None:
    assert compare(name, "inductor", inputs(dims=1)) == 1
    for dtype in (torch.float16, torch.int64):
        assert compare(name, "eager", inputs(dtype=dtype)) == 1
    assert compare("compared", "eager", [(x, y, x) for x, y, _ in inputs()]) == 1


@pytest.mark.parametrize("name", MOVES[:4])
def test_without_the_hook_it_breaks(name: str) -> None:
    counting = Counting("eager")
    torch.compile(getattr(PLAIN, name), backend=counting, dynamic=False)(*inputs()[0])
    assert counting.graphs > 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MOVES[:4])
def test_gradients(name: str, backend: str) -> None:
    """H: what is not selected gives zeros, not the product of 0 and infinity."""
    compiled = torch.compile(getattr(MENDED, name), backend=backend, fullgraph=True)
    for x, y, mask in inputs():
        grads = []
        for function in (getattr(PLAIN, name), compiled):
            left, right = x.clone().requires_grad_(), y.clone().requires_grad_()
            function(left, right, mask).nan_to_num().square().sum().backward()
            grads.append((left.grad, right.grad))
        for one, other in zip(*grads, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def refused(name: str, *given: torch.Tensor) -> set[str]:
    compare(name, "eager", [given], fullgraph=False)
    return {code for code, *_ in refusals.seen}


def test_what_is_no_merge() -> None:
    """H: a shape that is spread; overlapping memory; numbers, which are no mask."""
    x, y, mask = inputs()[0]
    assert "GM106-T01" in refused("moved", x[..., None].expand(4, 6, 2), y[..., None], mask)
    refusals.seen.clear()
    assert "GM106-T01" in refused("repeated", x, y, mask)
    refusals.seen.clear()
    assert refused("chosen_by_numbers", x, y, torch.tensor([2, 0])) == set()


def test_what_eager_refuses() -> None:
    """H: an error that the merge would not have."""
    x, y, mask = inputs()[0]
    for function in (PLAIN.moved, torch.compile(MENDED.moved, backend="eager")):
        with pytest.raises(RuntimeError, match="dtypes match"):
            function(x, y.double(), mask)
    assert "GM106-T01" in {code for code, *_ in refusals.seen}


@pytest.mark.parametrize("name", MOVES)
def test_eager_is_untouched(name: str) -> None:
    for given in inputs():
        own, theirs = copy.deepcopy(given), copy.deepcopy(given)
        torch.testing.assert_close(getattr(MENDED, name)(*own), getattr(PLAIN, name)(*theirs), equal_nan=True)
        torch.testing.assert_close(own, theirs, rtol=0, atol=0, equal_nan=True)
