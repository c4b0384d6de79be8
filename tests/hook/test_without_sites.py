"""A module in which no statement is rewritten: what the tracer does for numbers that count calls holds for it too."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.testing import CompileCounter

from graphmend_hook.product.report.ledger import Status, ledger

MODULE = """
import math
import torch

class Annealed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x):
        self.step += 1
        return x * (1 - math.exp(-self.step / 200))
"""


@pytest.mark.parametrize("opens", ["", "# graphmend: off"])
def test_a_counter_is_no_constant(install: Callable, write: Callable, opens: str) -> None:
    """But where the module is switched off: then it is as without the hook, a compilation for each number."""
    write("gm_without_sites.py", opens + MODULE)
    install("gm_without_sites")
    made = importlib.import_module("gm_without_sites").Annealed
    assert ledger.modules["gm_without_sites"].status is Status.UNCHANGED
    torch._dynamo.reset()
    counting, plain = CompileCounter(), made()
    compiled = torch.compile(made(), backend=counting)
    for _ in range(4):
        assert torch.equal(compiled(torch.ones(3)), plain(torch.ones(3)))
    assert counting.frame_count == (4 if opens else 1)
