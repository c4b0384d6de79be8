"""What effects show is that of their moment, whatever it is in each call, and one compilation will do for all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both
from outcomes import differences, fresh, run
from torch._dynamo.variables.base import VariableTracker

from graphmend_hook.engine.epilogue import queue

PLAIN, MENDED = both("effect_argument_cases")
LOGGER = "effect_argument_cases"
UP, LARGE, BAD = torch.ones(2, 3), torch.full((2, 3), 9.0), torch.tensor([1.0, float("nan")])
CALLS = (UP, LARGE, UP, BAD[0].expand(2, 3).clone(), LARGE - 20, LARGE, torch.full((2, 3), float("nan")), LARGE)


TRAINED = (
    "Guard",
    "GuardWithoutGradients",
    "LogOfANestedSide",
    "InContainers",
    "Checkpointed",
    "Stored",
    "NotDeferrable",
)


@pytest.mark.parametrize(
    ("name", "train"), [*((name, False) for name in PLAIN.SHOWN), *((name, True) for name in TRAINED)]
)
def test_shown_as_in_eager_without_a_guard(name: str, train: bool) -> None:
    torch._dynamo.reset()
    plain, mended = fresh(getattr(PLAIN, name)), fresh(getattr(MENDED, name))
    counting = Counting("eager")
    compiled = torch.compile(mended, backend=counting)
    for i, x in enumerate(CALLS):
        plain.change(i)
        mended.change(i)
        expected = run(plain, (x,), train, LOGGER, plain)
        got = run(compiled, (x,), train, LOGGER, mended)
        assert not differences(got, expected), (i, x)
    assert counting.graphs <= PLAIN.SHOWN[name]
    assert queue.graphmend_pending == []


def test_twelve_modules_compiled_one_by_one_are_one_compilation() -> None:
    torch._dynamo.reset()
    counting = Counting("eager")
    modules = [fresh(MENDED.LogOfASide) for _ in range(12)]
    for i, module in enumerate(modules):
        module.change(i)
        module.compile(backend=counting)
        module(UP)
    assert counting.graphs == 1 and counting.runs == 12


def test_nothing_is_compiled_anew_where_that_is_forbidden() -> None:
    torch._dynamo.reset()
    module = fresh(MENDED.Guard)
    compiled = torch.compile(module, backend="eager")
    compiled(UP)
    with torch.compiler.set_stance("fail_on_recompile"):
        for i in range(3):
            module.change(i)
            assert torch.equal(compiled(UP), UP * 2)


def test_looking_for_changes_takes_no_longer_behind_many_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time to the first result would grow with the square of their number."""

    def looked_at(count: int) -> int:
        torch._dynamo.reset()
        looks.clear()
        model = torch.nn.Sequential(*[fresh(MENDED.Peak) for _ in range(count)])
        torch.compile(model, backend="eager", fullgraph=True)(UP)
        return len(looks)

    looks: list[object] = []
    visit = VariableTracker.visit.__func__

    def counted(cls: type, *given: Any, **named: Any) -> None:
        looks.append(None)
        visit(cls, *given, **named)

    looked_at(2)
    monkeypatch.setattr(VariableTracker, "visit", classmethod(counted))
    few, many = looked_at(12), looked_at(24)
    assert many < 3 * few
