"""PyTorch calculates with constants while it traces, and takes NaN for a float that is a symbol."""

from __future__ import annotations

import pytest
import torch
from observing import both

PLAIN, MENDED = both("symbolic_constant_cases")


def test_a_coefficient_behind_a_break_is_a_number() -> None:
    expected, compiled = PLAIN.Penalised(), torch.compile(MENDED.Penalised(), backend="aot_eager")
    for call in range(6):
        torch.manual_seed(call)
        x = torch.rand(4)
        assert compiled(x) == expected(x)


@pytest.mark.parametrize("name", PLAIN.NAMES)
def test_a_constant_and_a_symbol_give_what_eager_gives(name: str) -> None:
    """Without the hook the first two are NaN from the second call on."""
    expected, compiled = PLAIN.Scaled(), torch.compile(MENDED.Scaled(), backend="aot_eager")
    for _ in range(4):
        x = torch.ones(2)
        torch.testing.assert_close(compiled(x, name), expected(x, name), rtol=0, atol=0)
