"""What only looks like torch's is left alone: each case gives what it gives in eager, with the same effects."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended

PATH = HERE / "evidence_cases.py"
PLAIN = import_file(PATH, "evidence_cases_plain")
MENDED = import_mended(PATH, "evidence_cases_mended")
CASES = [name for name, value in vars(PLAIN).items() if callable(value) and value.__module__ == PLAIN.__name__]
CASES.remove("Backend")
X = torch.arange(6.0)


def seen(value: Any) -> Any:
    """What can be told of a result: types, and of tensors dtype, shape and elements."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [seen(part) for part in value]
    return type(value).__name__, value


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", CASES)
def test_equal_to_eager(name: str, backend: str) -> None:
    plain, mended = (getattr(module, name) for module in (PLAIN, MENDED))
    plain, mended = (case() if isinstance(case, type) else case for case in (plain, mended))
    compiled = torch.compile(mended, backend=Counting(backend), dynamic=False)
    with torch.no_grad():
        for x in (X, X + 1, X * 50):
            expected = seen(plain(x.clone()))
            assert seen(copy.deepcopy(mended)(x.clone())) == expected
            assert seen(compiled(x.clone())) == expected
