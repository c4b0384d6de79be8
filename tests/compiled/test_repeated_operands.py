"""A tensor that a function of autograd is given twice: what `test_program_cases` shows on one backend more; and the stock break."""

from __future__ import annotations

import pytest
import torch
from programs import Programs

FILE = Programs("repeated_operand_cases")
FREED = ["plain", "in_a_loop", "without_gradients"]


@pytest.mark.parametrize("name", FREED)
@pytest.mark.slow
def test_one_graph_of_inductors(name: str) -> None:
    FILE.check(name, "inductor")


@pytest.mark.parametrize("name", FREED[:2])
def test_it_breaks_without_the_hook(name: str) -> None:
    with pytest.raises(Exception, match="duplicate tensor input"):
        torch.compile(getattr(FILE.plain, name), backend="eager", fullgraph=True)(
            torch.ones(2), torch.ones(2, requires_grad=True)
        )
