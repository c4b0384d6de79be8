"""What is taken for granted of a size that the data decides is asserted of data: AOTAutograd folds what PyTorch asserts."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended
from torch.utils._pytree import tree_leaves

PATH = HERE / "asserted_cases.py"
PLAIN = import_file(PATH, "asserted_cases_plain")
MENDED = import_mended(PATH, "asserted_cases_mended")
NAMES = [name for name, value in vars(PLAIN).items() if isinstance(value, FunctionType)]
# Four of four, one, two, none.
GIVEN = ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.5, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0])


def outcome(function: Any, numbers: list[float], trained: bool) -> Any:
    x = torch.tensor(numbers, requires_grad=trained)
    try:
        given = function(x, torch.arange(1.0, 5.0))
    except (AssertionError, IndexError, RuntimeError):
        return "raised"
    found = [leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.Tensor)]
    if trained and any(leaf.requires_grad for leaf in found):
        torch.stack([leaf.sum() for leaf in found if leaf.requires_grad]).sum().backward()
    numbers_given = [leaf for leaf in tree_leaves(given) if not isinstance(leaf, torch.Tensor)]
    return [leaf.detach() for leaf in found], numbers_given, x.grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_eager(name: str, trained: bool, backend: str) -> None:
    """H: a size of 1 is spread, and what was computed of the size is that of another call."""
    for first in range(len(GIVEN)):
        torch._dynamo.reset()
        compiled = torch.compile(getattr(MENDED, name), backend=Counting(backend))
        for numbers in GIVEN[first:] + GIVEN[:first]:
            expected = outcome(getattr(PLAIN, name), numbers, trained)
            found = outcome(compiled, numbers, trained)
            if "raised" in (expected, found):
                assert found == expected, numbers
            else:
                torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["divides_by_the_size", "moves_pieces", "of_a_number", "of_rows"])
def test_one_graph(name: str) -> None:
    if name == "moves_pieces" and torch.__version__ < "2.13":
        pytest.skip("this torch does not capture where a slice begins")
    torch._dynamo.utils.counters.clear()
    counting = Counting("aot_eager")
    compiled = torch.compile(getattr(MENDED, name), backend=counting)
    torch.testing.assert_close(outcome(compiled, GIVEN[0], False), outcome(getattr(PLAIN, name), GIVEN[0], False))
    assert counting.graphs == 1
    assert torch._dynamo.utils.counters["frames"] == {"total": 1, "ok": 1}  # none was given up
