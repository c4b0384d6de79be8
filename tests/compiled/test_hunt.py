"""The hunt itself (tests/hunt): what it takes of a library, and what it says."""

from __future__ import annotations

import builtins
import dis
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from hunt import checking, devices, mutants, reach
from hunt.checking import arguments, check, module_of
from hunt.grammar import PRELUDE, Program, program_of
from hunt.spices import SPICES

Python = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]

LIBRARY = """
import os
import torch

DOUBLE = 2


def scaled(t: torch.Tensor, by: float, *, mean: bool = True):
    if mean:
        t = t - t.mean()
    return t * by * DOUBLE


def untold(t):
    return t + DOUBLE


def address(t: torch.Tensor):
    return t.data_ptr()


def unordered(t: torch.Tensor, order: "Ordering"):
    return t


def numbers(n: int):
    return n


def rows(t: torch.Tensor):
    yield t
"""


def test_programs_find_every_name() -> None:
    """One that ends with a NameError tries nothing."""
    known: dict[str, Any] = {"__name__": __name__}
    exec(PRELUDE, known)
    known.update(vars(builtins), **dict.fromkeys("abc"))  # locals, bound or not
    for seed in range(3000):
        assert {*_globals_of(compile(program_of(seed).source, "program", "exec"))} <= {*known}


def _globals_of(code: CodeType) -> Iterator[str]:
    yield from (item.argval for item in dis.get_instructions(code) if item.opname == "LOAD_GLOBAL")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"hunted_library_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_functions_that_can_be_called_and_return_the_same_are_taken(library: str) -> None:
    found = mutants.functions([library])
    assert [(function.text.split("(")[0], function.tensors) for function in found] == [("def real", ("t",))] * 2
    assert all(function.calls for function in found)


@pytest.mark.slow
def test_a_mutant_finds_the_names_of_its_library(library: str, tmp_path: Path) -> None:
    programs = mutants.programs_of(mutants.functions([library]), 0, 20)
    assert f"import_module({library!r})" in module_of(programs)
    assert len({program.source for program in programs}) > 10
    assert check(programs, tmp_path) == []


def test_programs_have_the_hazards_that_were_asked_for() -> None:
    programs = [program_of(seed, ["private"]) for seed in range(20)]
    assert any("self.private" in program.source for program in programs)
    assert not any("self.meter.scale" in program.source for program in programs)


def test_every_hazard_can_be_drawn_and_is_python() -> None:
    for name in SPICES:
        for seed in range(40):
            compile(program_of(seed, [name]).source, name, "exec")


@pytest.mark.slow
def test_the_command_counts_what_it_ran(python: Python, tmp_path: Path) -> None:
    out = tmp_path / "reach.json"
    options = ("--batches", "1", "--backend", "inductor", "--spices", "effects", "--reach", str(out))
    done = python("-m", "tests.hunt", *options, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("seed 0, batches 0 to 0: 5 programs (5 on inductor), 0 found\n")
    seen = json.loads(out.read_text())
    assert seen["rules/defer/rewrite.py"]["reached"]
    assert seen["rules/defer/traced.py"]["reached"]
    assert list(reach.lines([str(out)]))[-1].endswith("statements were reached")


def test_an_unknown_hazard_is_an_error_that_names_them(python: Python) -> None:
    done = python("-m", "tests.hunt", "--spices", "sugar", cwd=ROOT)
    assert done.returncode == 2
    assert "--spices: no hazard sugar; there are alias" in done.stderr


def test_a_device_that_is_not_there_is_an_error(python: Python) -> None:
    done = python("-m", "tests.hunt", "--device", "xla", cwd=ROOT)
    assert done.returncode == 2
    assert "--device: xla is not at hand: " in done.stderr


@pytest.mark.parametrize(("body", "ran"), [("return x[n * 10]", 0), ("raise ValueError(n)", 1), ("return x[0]", 1)])
def test_what_would_end_a_device_is_left_out(
    body: str, ran: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H: an index out of bounds ended the hunt on a GPU, in eager too."""
    made: list[torch.device] = []
    monkeypatch.setattr(devices, "where", torch.device("cpu", 0))  # as good as another one
    monkeypatch.setattr(checking, "arguments", lambda *given: made.append(devices.where) or arguments(*given))
    program = Program(f"def f(self, x, y, n, flag):\n    {body}\n", n=2)
    assert check([program], tmp_path, backend="uncompiled") == []
    assert bool(made.count(torch.device("cpu", 0))) == ran
