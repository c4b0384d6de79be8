"""Dynamo never compiles a function of this package as a frame of its own: it inlines them, or does not see them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both
from torch._dynamo import convert_frame

from graphmend_hook.engine.door.own_code import OWN_FILES
from graphmend_hook.rules.shared import traced_conditions
from graphmend_hook.rules.value import traced_numbers

plain, MENDED = both("own_frames_cases")
ONE_GRAPH = ["SelectsByAMaskAndAPlace", "WritesByAMaskAndAPlace", "SelectsByAPlace"]


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of the frames that Dynamo tries to compile."""
    found: list[str] = []
    original = convert_frame.trace_frame

    def trace_frame(code: Any, *arguments: Any, **options: Any) -> Any:
        found.append(code.co_filename)
        return original(code, *arguments, **options)

    monkeypatch.setattr(convert_frame, "trace_frame", trace_frame)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*ONE_GRAPH, "gives_tuples_of_other_lengths", "is_given_up"])
def test_no_frame_is_ours(name: str, backend: str, frames: list[str]) -> None:
    def called(module: Any) -> Any:
        found = getattr(module, name)
        return found() if isinstance(found, type) else found

    counting = Counting(backend)
    compiled = torch.compile(called(MENDED), backend=counting)
    for call in range(3):
        x = torch.arange(9.0).reshape(3, 3) * (1 - call)
        torch.testing.assert_close(compiled(x.clone()), called(plain)(x.clone()), rtol=0, atol=0)
    assert frames
    assert OWN_FILES.isdisjoint(frames)
    if name in ONE_GRAPH:
        assert counting.graphs == 1


LARGE = torch.tensor(2**53 + 1)


@pytest.mark.parametrize("left", [0.0, 2.0])
@pytest.mark.parametrize("right", [0.0, 3.0, True, False])
def test_a_break_in_one_runs_it_as_python(left: float, right: float | bool) -> None:
    one, other = torch.tensor(left), right if isinstance(right, bool) else torch.tensor(right)
    assert traced_conditions.both(one, other) is (one and other)
    assert traced_conditions.either(one, other) is (one or other)
    assert traced_conditions.early(traced_conditions.both, one, pytest.fail, ()) is None
    assert bool(traced_conditions.every(torch.tensor([left, 1.0]))) is bool(left)
    assert bool(traced_conditions.negate(one)) is (not one)


@pytest.mark.parametrize("turned", [False, True])
def test_a_break_in_a_comparison_compares_numbers(turned: bool) -> None:
    operands, numbers = (float(2**53), LARGE), (False, True)
    if not turned:
        operands, numbers = operands[::-1], numbers[::-1]
    assert traced_numbers.compare("ne", *operands, numbers) is True


def test_a_frame_without_operations_has_no_graph() -> None:
    """H: what asks whether it is traced made Dynamo compile a graph that gives its input."""
    counting = Counting("eager")
    assert torch.compile(MENDED.scales, backend=counting)(x := torch.ones(2)) is x
    assert counting.graphs == 0
