"""[Defer] through wrappers, against eager: the same effects in the same order, with the callers that eager shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
import wrapper_cases as NAMES
from observing import HERE, Counting, Observed, import_file, import_mended, observe

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue

FILE = str(HERE / "wrapper_cases.py")


def modules() -> tuple[ModuleType, ModuleType]:
    """The cases as they are, and mended: new ones, whose caches are empty."""
    path = HERE / "wrapper_cases.py"
    return import_file(path, "wrapper_cases_plain"), import_mended(path, "wrapper_cases_mended")


def call(function: Any) -> Observed:
    def run() -> torch.Tensor:
        with torch.no_grad():
            return function(torch.arange(3.0))

    return observe(run, "wrapper_cases")


@pytest.mark.parametrize("name", NAMES.EXPECT)
def test_equal_to_eager(name: str) -> None:
    expect, (plain, mended) = NAMES.EXPECT[name], modules()
    reference = getattr(plain, name)
    if name in NAMES.AS_STOCK:
        reference = torch.compile(reference, backend="aot_eager")
    expected = [call(reference) for _ in range(3)]
    refusals.seen.clear()
    counting = Counting("aot_eager")
    compiled = torch.compile(getattr(mended, name), backend=counting, fullgraph=expect.fullgraph)
    assert [call(compiled) for _ in range(3)] == expected
    assert counting.graphs == expect.graphs
    assert {code for code, *_ in refusals.seen} == expect.refusals
    assert queue.graphmend_pending == []


@pytest.mark.parametrize("name", NAMES.EXPECT)
def test_eager_is_untouched(name: str) -> None:
    plain, mended = modules()
    assert [call(getattr(mended, name)) for _ in range(2)] == [call(getattr(plain, name)) for _ in range(2)]


def test_a_rank_that_changes() -> None:
    _plain, mended = modules()
    compiled = torch.compile(mended.through_a_rank_zero_wrapper, backend="eager", fullgraph=True)
    counts = []
    for rank in (0, 1, 0):
        mended.rank_zero_only.rank = rank
        counts.append(len(call(compiled).effects))
    assert counts == [3, 0, 3]


def test_a_cache_that_is_cleared() -> None:
    """Eager runs the function once more then; so does the compiled one, for real, and its result is kept."""
    plain, mended = modules()
    compiled = torch.compile(mended.behind_a_cache_that_is_full, backend="eager")
    seen = []
    for module, function in ((plain, plain.behind_a_cache_that_is_full), (mended, compiled)):
        effects = [call(function).effects]
        module.is_detected.cache_clear()
        seen.append([*effects, call(function).effects, call(function).effects])
    assert seen[0] == seen[1]
    assert [len(effects) > 0 for effects in seen[0]] == [False, True, False]


def test_a_warning_is_shown_once_where_its_caller_is() -> None:
    """By default a warning is shown once for each place; the module of the caller keeps which ones were."""
    plain, mended = modules()
    compiled = torch.compile(mended.a_warning_that_shows_its_caller, backend="eager", fullgraph=True)
    shown = []
    for function in (plain.a_warning_that_shows_its_caller, compiled):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(2):
                function(torch.ones(2))
        shown.append([(str(each.message), each.filename, each.lineno) for each in caught if each.filename == FILE])
    assert shown[0] == shown[1] and len(shown[0]) == 3
    assert set(mended.__warningregistry__) == set(plain.__warningregistry__)


def test_a_warning_that_a_filter_raises() -> None:
    _plain, mended = modules()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        refusals.seen.clear()
        compiled = torch.compile(mended.a_partial_of_a_function, backend="eager")
        with pytest.raises(FutureWarning, match="soon"):
            compiled(torch.ones(2))
    assert "GM101-T07" in {code for code, *_ in refusals.seen}


@pytest.mark.parametrize("name", ["a_text_that_fails_in_a_try", "a_text_that_fails_in_a_try_of_the_caller"])
def test_a_text_that_cannot_be_made_is_not_passed_over(name: str) -> None:
    """Up to torch 2.14 Dynamo cannot trace one, with or without the hook; that the logger is off must not hide it."""
    plain, mended = modules()
    for module in (plain, mended):
        given = outcome_of(torch.compile(getattr(module, name), backend="eager"))
        if isinstance(given, Exception):
            assert "Unknown format code" in str(given)
        else:
            assert torch.equal(given, getattr(plain, name)(torch.ones(2)))


def outcome_of(function: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor | Exception:
    try:
        return function(torch.ones(2))
    except Exception as error:
        return error


def test_a_level_that_is_symbolic() -> None:
    _plain, mended = modules()
    refusals.seen.clear()
    torch.compile(mended.a_level_by_a_size, backend="eager", dynamic=True)(torch.ones(3))
    assert {code for code, *_ in refusals.seen} == {"GM101-T16"}
