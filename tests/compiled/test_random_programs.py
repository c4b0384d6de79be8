"""Property: a mended random program does what the original does, in eager and compiled (tests/hunt).

Hypothesis draws the seeds of batches, `hunt.grammar.program_of` makes each program from an integer seed with Python's own
`random`: so a module of many programs is written, mended and imported at once, all failures of a run are found, and one
integer repeats one of them.  Hypothesis could only shrink that integer: `hunt.reducing` shrinks the program instead, by
leaving out statements as long as the same observation differs.

    RANDOM_PROGRAMS=50000 pytest tests/compiled/test_random_programs.py      more programs than the 120 of CI
    python -m tests.hunt --help                                              other backends, real functions, hours
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest
from hunt.checking import CALLS, Failure, Load, check, module_of, outcome, suits_aot
from hunt.grammar import PRELUDE, Program, program_of
from hunt.kept import KEPT
from hunt.reducing import reduced, report
from hypothesis import strategies as st
from observing import import_file

from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES

PROGRAMS = int(os.environ.get("RANDOM_PROGRAMS", "120"))
PARTS = 8  # so that pytest-xdist can share the work
BATCH = 50


def expect_none(failures: list[Failure], directory: Path) -> None:
    if failures:
        pytest.fail(report(failures, directory), pytrace=False)


# --- the property ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int, tmp_path: Path) -> None:
    failures: list[Failure] = []
    share = max(1, PROGRAMS // PARTS)
    size = min(BATCH, share)
    batches = -(-share // size)

    @hypothesis.seed(part)
    @hypothesis.settings(max_examples=batches, phases=[hypothesis.Phase.generate], deadline=None, database=None)
    @hypothesis.given(st.integers(part << 20, ((part + 1) << 20) - 1))
    def batch(number: int) -> None:
        failures.extend(check([program_of(number * BATCH + index) for index in range(size)], tmp_path))

    batch()
    expect_none(failures, tmp_path)


@pytest.mark.parametrize("name", KEPT)
def test_kept_programs(name: str, tmp_path: Path) -> None:
    expect_none(check([KEPT[name]], tmp_path), tmp_path)


@pytest.mark.parametrize("name", [name for name, program in KEPT.items() if suits_aot(program.source)])
@pytest.mark.slow
def test_kept_programs_behind_aotautograd(name: str, tmp_path: Path) -> None:
    expect_none(check([KEPT[name]], tmp_path, backend="aot_eager"), tmp_path)


# --- that the property can fail --------------------------------------------------------------------------------------

WRONG = [
    (
        "the gradient of the untaken side is not a number",
        "    if (x > 0).all():\n        a = x.log()\n    else:\n        a = x * 2\n",
        "    a = torch.where((x > 0).all(), x.log(), x * 2)\n",
        "grads",
    ),
    (
        "a parameter of the untaken side has no gradient",
        "x * self.w if x.sum() > 0 else x * self.v",
        "torch.where(x.sum() > 0, x * self.w, x * self.v)",
        "grads",
    ),
    ("the result of a branch is changed in place", "a = x\n", "a = x.clone()\n", "inputs"),
    ("a default that one side replaces", "scale = 2.5", "scale = torch.tensor(2.5)", "value"),
    ("a default that one side replaces", "return x * scale", "self.last = x\n    return x * scale", "state"),
    ("unbound unless taken", "if x.sum() > 0:\n        a = x * 2", "if True:\n        a = x * 2", "error"),
    (
        "the generator moves on one side only",
        "x + torch.rand(x.shape) if x.sum() > 0 else x",
        "torch.where(x.sum() > 0, x + torch.rand(x.shape), x)",
        "rng",
    ),
    ("a guard protects an index", "raise IndexError(f", "raise KeyError(f", "error"),
    (
        "a guard in a loop, in a helper and in a branch",
        'logger.info("log %d", i)',
        'logger.info("log %d", n)',
        "effects",
    ),
    ("state on both ends of a guard", "self.k += 1", "self.k += 2", "state"),
    ("minus zero and one side of another layout", "-x * 0 if x.sum() > 0 else x * 0", "x * 0", "value"),
    ("minus zero and one side of another layout", "torch.stack([a, a], -1)[..., 0]", "a + 0", "value"),
    ("a copy stays a copy", "x.clone()", "x", "identity"),
    (
        "a property of one side counts how often it is read",
        "* self.meter.scale",
        "* max(self.meter.scale, self.meter.scale)",
        "state",
    ),
    ("a property of one side draws", "* self.meter.drawn", "* 2 + 0 * self.meter.drawn", "value"),
    ("a private name, and an answer for every other", "self.private.gained(x)", "self.private.stored(x)", "value"),
    (
        "a guard where a mode is on",
        "    with torch.no_grad():\n",
        "    torch.set_grad_enabled(False)\n    if True:\n",
        "modes",
    ),
    ("a list that was longer before the branch", "self.items.pop()", "self.items.append(n)", "state"),
]


def wrongly(old: str, new: str) -> Load:
    """Loads a module with `new` in place of `old`, as a rule might that has an error."""

    def load(path: Path, name: str) -> ModuleType:
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = str(path)
        exec(compile(path.read_text().replace(old, new), str(path), "exec"), vars(module))
        return module

    return load


@pytest.mark.parametrize(("name", "old", "new", "seen_in"), WRONG)
def test_a_wrong_mending_is_found(name: str, old: str, new: str, seen_in: str, tmp_path: Path) -> None:
    assert old in KEPT[name].source
    failures = check([KEPT[name]], tmp_path, wrongly(old, new))
    assert [failure.arm for failure in failures] == ["eager", "compiled"]
    assert all(seen_in in failure.names for failure in failures)


def test_a_program_is_reduced_to_what_fails(tmp_path: Path) -> None:
    load = wrongly("+= 1", "+= 2")
    source = """\
def f(self, x, y, n, flag):
    a = x + y
    if x.sum() > 0 or n < 9:
        a = a.abs()
        self.k += 1
    return a
"""
    failure = check([Program(source, dtype="int64")], tmp_path, load)[0]
    found = reduced(failure, tmp_path, load).program
    assert found == Program("def f(self, x, y, n, flag):\n    self.k += 1\n")


@pytest.mark.slow
def test_the_programs_reach_every_rule() -> None:
    text = module_of([program_of(seed) for seed in range(600)])
    sites = rewrite(text.encode(), "programs.py", active_rules(RULE_NAMES)).sites
    seen = {(site.rule, site.outcome) for site in sites if re.match(r"f\d", site.function)}
    # For what these decline, a program needs two rare spices.
    rare = set(itertools.product(("defer", "grad", "value", "sweep", "trap"), [Outcome.DECLINED]))
    before_tracing = [outcome for outcome in Outcome if outcome is not Outcome.LEFT]  # what the rewriter says
    assert seen | rare == set(itertools.product(RULE_NAMES, before_tracing))


def test_most_calls_return(tmp_path: Path) -> None:
    programs = [program_of(seed) for seed in range(100)]
    path = tmp_path / "programs_that_return.py"
    path.write_text(PRELUDE)
    module = import_file(path, "programs_that_return")
    returned = 0
    for program, call in itertools.product(programs, range(CALLS)):
        exec(program.source, vars(module))
        returned += not outcome(module.f, module, program, call)["error"]
    assert 0.7 < returned / (len(programs) * CALLS) < 0.98
