"""What traced code does is as the hooks say that are installed while it is traced."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

LIBRARY = """
import torch

def f(x):
    if x.sum() > 100:
        raise ValueError("too big")
    return x + 1
"""
PROGRAM = """
import graphmend_hook
hook = graphmend_hook.install("lib", guards="async")
import lib, torch

def backend(module, inputs):
    print("asserted" if "_assert_async" in module.code else "delivered")
    return module

compiled = torch.compile(lib.f, backend=backend, fullgraph=True)
compiled(torch.ones(3))
hook.uninstall()
compiled(torch.ones(3))
graphmend_hook.install("other", guards="async")
compiled(torch.ones(3))
"""


@pytest.mark.slow
def test_another_choice_compiles_anew(python: Any, write: Any) -> None:
    """Also of what was compiled before: Dynamo guards on the setting."""
    write("lib.py", LIBRARY)
    ran = python("-c", PROGRAM)
    assert ran.stdout.splitlines() == ["asserted", "delivered"], ran.stderr
