"""A tensor that a function of autograd is given twice, against eager: one graph where nobody can tell the two apart."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended

PATH = HERE / "twice_cases.py"
PLAIN = import_file(PATH, "twice_cases_plain")
MENDED = import_mended(PATH, "twice_cases_mended")
CASES = [name for name in vars(PLAIN) if name.startswith("case_")]
FREED = ["case_plain", "case_in_a_loop", "case_without_gradients"]


def seen(function: Any) -> list[Any]:
    """What two calls give, with the gradients, and what becomes of what they are given; or how they fail."""
    found: list[Any] = []
    for call in range(2):
        m = torch.arange(6.0).reshape(2, 3) + call
        q = (m * 2 - 1).requires_grad_()
        try:
            given = function(m, q)
            results = given if isinstance(given, tuple) else (given,)
            tensors = [each for each in results if isinstance(each, torch.Tensor)]
            if tensors[0].requires_grad:
                tensors[0].sum().backward()
        except RuntimeError as error:
            found.append(type(error).__name__)
            continue
        told = [(each.tolist(), each.stride(), each.requires_grad) for each in tensors]
        others = [each for each in results if not isinstance(each, torch.Tensor)]
        found.append([told, others, None if q.grad is None else q.grad.tolist(), m.tolist()])
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CASES)
def test_equal_to_eager(name: str, backend: str) -> None:
    counting = Counting(backend)
    compiled = torch.compile(getattr(MENDED, name), backend=counting)
    assert seen(compiled) == seen(getattr(PLAIN, name))
    if name in FREED:
        assert counting.graphs == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FREED)
def test_one_graph(name: str, backend: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend=backend, fullgraph=True)
    assert seen(compiled) == seen(getattr(PLAIN, name))


@pytest.mark.parametrize("name", [name for name in FREED if name != "case_without_gradients"])
def test_it_breaks_without_the_hook(name: str) -> None:
    with pytest.raises(Exception, match="duplicate tensor input"):
        torch.compile(getattr(PLAIN, name), backend="eager", fullgraph=True)(
            torch.ones(2), torch.ones(2, requires_grad=True)
        )
