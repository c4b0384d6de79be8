"""Everything that is not torch.compile sees the original code: jit, fx, export, func transforms, stances."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import HERE, both, import_mended, observe
from torch.fx.experimental.proxy_tensor import make_fx

PLAIN, MENDED = both("effects_module")
X = torch.ones(2, 4)


def jit_trace(module: Any) -> Any:
    return torch.jit.trace(module.sized, (X,))(X)


def symbolic_trace(module: Any) -> Any:
    return torch.fx.symbolic_trace(module.say)(X)


def traced_by_make_fx(module: Any) -> Any:
    return make_fx(module.sized)(X)(X)


def strict_export(module: Any) -> Any:
    return torch.export.export(_Wrapped(module.sized), (X,), strict=True).module()(X)


def non_strict_export(module: Any) -> Any:
    return torch.export.export(_Wrapped(module.sized), (X,), strict=False).module()(X)


def vmap_in_eager(module: Any) -> Any:
    return torch.func.vmap(module.tagged, in_dims=(0, None))(X, 1)


def force_eager(module: Any) -> Any:
    compiled = torch.compile(module.sized, backend="eager")
    with torch.compiler.set_stance("force_eager"):
        return compiled(X)


def disabled(module: Any) -> Any:
    return torch.compiler.disable(module.sized)(X)


def autocast(module: Any) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return module.sized(X @ X.T)


def inference_mode(module: Any) -> Any:
    with torch.inference_mode():
        return module.tagged(X, 1)


class _Wrapped(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    "use",
    [
        jit_trace,
        symbolic_trace,
        traced_by_make_fx,
        strict_export,
        non_strict_export,
        vmap_in_eager,
        force_eager,
        disabled,
        autocast,
        inference_mode,
    ],
    ids=lambda use: use.__name__,
)
def test_as_without_the_hook(use: Any) -> None:
    assert observe(lambda: use(MENDED), "effects_module") == observe(lambda: use(PLAIN), "effects_module")


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("context", [torch.inference_mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16)])
def test_compiled_under_a_mode(context: Any, grad: bool) -> None:
    compiled = torch.compile(MENDED.sized, backend="aot_eager", fullgraph=True)

    def run(function: Any) -> Any:
        with context():
            return function(torch.ones(2, 4, requires_grad=grad))

    assert observe(lambda: run(compiled), "effects_module") == observe(lambda: run(PLAIN.sized), "effects_module")


def test_jit_script_reads_the_original_source() -> None:
    function = import_mended(HERE / "scripted_module.py", "scripted_module_mended").scripted
    assert torch.jit.script(function)(X).equal(function(X))
