"""What a module gives and keeps in some calls, whose data is drawn from one seed."""

from __future__ import annotations

from typing import Any

import torch
from observing import Counting

CALLS = 8


def seen(kind: type[torch.nn.Module], backend: Counting | None) -> list[Any]:
    """For each call with floats of 3 by 4 and three numbers of 0, 1 and 2: its result, and what the module keeps then."""
    torch._dynamo.reset()
    module = kind()
    called = module if backend is None else torch.compile(module, backend=backend)
    draws = torch.Generator().manual_seed(0)
    found = []
    for _ in range(CALLS):
        given = torch.randn(3, 4, generator=draws), torch.randint(3, (3,), generator=draws)
        result = _readable(called(*given))
        kept = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        ordered = {name: sorted(value) if isinstance(value, set) else value for name, value in kept.items()}
        found.append((result, repr(ordered)))
    return found


def _readable(value: Any) -> Any:
    """Of a tensor the digits that Inductor gives, too."""
    if isinstance(value, tuple):
        return [*map(_readable, value)]
    if not isinstance(value, torch.Tensor):
        return repr(value)
    return str(value.dtype), value.double().mul(9973).round().tolist()
