"""Programs behind which no epilogue runs: guards become assertions of them, which is said once, and records are declined."""

from __future__ import annotations

import importlib
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import graphmend_hook
from graphmend_hook import diagnostics
from graphmend_hook.engine.attempt import refusals

LIBRARY = """
import logging
import torch

log = logging.getLogger("ahead")


class Guarded(torch.nn.Module):
    def forward(self, x):
        if x.min() < -100:
            raise ValueError("too small")
        return x + 1


class Logging(torch.nn.Module):
    def forward(self, x):
        log.warning("seen")
        return x + 1


def region(x):
    if x.min() < -100:
        raise ValueError("too small")
    return x * 2


once = getattr(torch.compiler, "nested_compile_region", lambda function: function)(region)


def twice(x):
    return once(x) + once(x + 1)
"""
GOOD, BAD = torch.ones(2, 3), torch.full((2, 3), -200.0)


@pytest.fixture
def library(fresh_imports: Path, write, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    monkeypatch.setattr(diagnostics, "_said", set())
    write("gm_ahead.py", LIBRARY)
    torch._dynamo.reset()
    refusals.seen.clear()
    graphmend_hook.install("gm_ahead", cache_dir=fresh_imports / "cache")
    yield importlib.import_module("gm_ahead")
    torch._dynamo.reset()


def check(program, caplog: pytest.LogCaptureFixture, *arguments: object) -> None:
    """The program gives what eager gives, and raises where the guard would; what became of the guard is said once."""
    assert torch.equal(program(*arguments, GOOD), GOOD + 1)
    with pytest.raises(RuntimeError, match="too small"):
        program(*arguments, BAD)
    assert [record.getMessage()[:5] for record in caplog.records if "GM0" in record.getMessage()] == ["GM017"]


@pytest.mark.parametrize("strict", [True, False])
def test_export(strict: bool, library: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    program = torch.export.export(library.Guarded(), (GOOD,), strict=strict).module()
    check(program, caplog)
    torch.export.export(library.Guarded(), (GOOD,), strict=strict)
    assert caplog.text.count("GM017") == 1


@pytest.mark.slow
def test_onnx_drops_guards(library: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """As GM017 says: what is left is what the model computes.  Without the hook there is no program at all."""
    pytest.importorskip("onnxscript")
    program = torch.onnx.export(library.Guarded(), (GOOD,), dynamo=True, verbose=False)
    assert [node.op_type for node in program.model.graph] == ["Add"]
    assert [record.getMessage()[:5] for record in caplog.records if "GM0" in record.getMessage()] == ["GM017"]


@pytest.mark.slow
def test_compiled_ahead_of_time(library: types.ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    model = library.Guarded()
    compiled = torch.compile(model, fullgraph=True).forward
    if not hasattr(compiled, "aot_compile"):
        pytest.skip("this torch compiles nothing ahead of time")
    with torch.no_grad():
        check(compiled.aot_compile(((GOOD,), {})), caplog, model)


def test_records_are_declined_ahead_of_time(library: types.ModuleType) -> None:
    compiled = torch.compile(library.Logging(), fullgraph=True, backend="eager").forward
    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled.aot_compile(((GOOD,), {}))
    assert {code for code, *_ in refusals.seen} == {"GM101-T09"}


@pytest.mark.parametrize("fullgraph", [True, False])
def test_region_that_is_compiled_once(fullgraph: bool, library: types.ModuleType, caplog) -> None:
    """A guard in it that is left as it was written leaves no program at all, without ``fullgraph`` too."""
    compiled = torch.compile(library.twice, fullgraph=fullgraph, backend="aot_eager")
    assert torch.equal(compiled(GOOD), 4 * GOOD + 2)
    with pytest.raises((RuntimeError, ValueError), match="too small"):
        compiled(BAD)
    assert caplog.text.count("GM017") == 1
