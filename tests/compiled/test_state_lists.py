"""Lists of the state that grow with each call: what is made of them is made behind the graph, and is that of eager."""

from __future__ import annotations

import contextlib
import io
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("state_list_cases")
CALLS = 12
KEPT = ("history", "other", "average", "best", "recent", "one", "none", "open", "by_name")


def readable(value: Any) -> Any:
    """Of tensors the numbers, and of all else the text, in which NaN is equal to NaN."""
    return value.tolist() if isinstance(value, torch.Tensor) else repr(value)


def kept_by(module: Any) -> list[str]:
    return [repr(getattr(module, name)) for name in KEPT]


def seen(kind: Any, backend: Counting | None, change: Callable[[Any, int], None] | None = None) -> list[Any]:
    """What each call gives, leaves in the module, and prints; change: what is done to the module before a call."""
    torch._dynamo.reset()
    module, found = kind(), []
    called = module if backend is None else torch.compile(module, backend=backend)
    for call in range(CALLS):
        if change is not None:
            change(module, call)
        x = torch.arange(-2.0, 4.0) * (call % 4) / 3 + call % 3
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                results = called(x)
                results = results if isinstance(results, tuple) else (results,)
                result: Any = [readable(each) for each in results]
            except Exception as error:
                result = repr(error)
        found.append([result, kept_by(module), printed.getvalue()])
    return found


def name_of(kind: type) -> str:
    return kind.__name__


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [*map(name_of, (*PLAIN.ONE_GRAPH, *PLAIN.TWO_GRAPHS))])
def test_a_list_that_grows_is_not_guarded(name: str, backend: str) -> None:
    counting = Counting(backend)
    assert seen(getattr(MENDED, name), counting) == seen(getattr(PLAIN, name), None)
    assert counting.graphs == (1 if name in map(name_of, PLAIN.ONE_GRAPH) else 2)
    assert counting.runs == CALLS


@pytest.mark.parametrize("name", [*map(name_of, PLAIN.OTHERS)])
def test_what_looks_into_the_list_is_that_of_eager(name: str) -> None:
    expected = seen(getattr(PLAIN, name), None)
    assert seen(getattr(MENDED, name), None) == expected
    assert seen(getattr(MENDED, name), Counting("eager")) == expected


def _empties(module: Any, call: int) -> None:
    if call % 5 == 4:
        module.history.clear()
        module.recent.clear()


def _holds_others(module: Any, call: int) -> None:
    if call == 3:
        module.history.append(2)
    if call == 6:
        module.history[:] = [True, 1.5]
    if call == 9:
        module.history[:] = [1.5]


def _is_another(module: Any, call: int) -> None:
    kinds = (list, deque, lambda given: deque(given, 2), list, type("Own", (list,), {}))
    module.history = kinds[call % 5](module.history)


def _are_one(module: Any, call: int) -> None:
    module.other = module.history if call % 3 == 1 else [*module.history]


@pytest.mark.parametrize("change", [_empties, _holds_others, _is_another, _are_one])
@pytest.mark.parametrize(
    "name", ["Means", "TwoByTwo", "ShowsBetween", "Twins", "Windows", "Medians", "LooksAtTheOther"]
)
def test_a_list_that_the_program_changes_between_calls(name: str, change: Callable[[Any, int], None]) -> None:
    expected = seen(getattr(PLAIN, name), None, change)
    assert seen(getattr(MENDED, name), Counting("eager"), change) == expected


@pytest.mark.parametrize("name", ["Averages", "Shortens", "Medians"])
def test_one_graph_is_what_dynamo_captures_by_itself(name: str) -> None:
    expected = seen(getattr(PLAIN, name), None)
    torch._dynamo.reset()
    module = getattr(MENDED, name)()
    called = torch.compile(module, backend="eager", fullgraph=True)
    for call in range(3):
        with contextlib.redirect_stdout(io.StringIO()):
            found = called(torch.arange(-2.0, 4.0) * (call % 4) / 3 + call % 3)
        assert [*map(readable, found)] == expected[call][0]
