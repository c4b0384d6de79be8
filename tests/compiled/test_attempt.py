"""The ledger of bets: for how long one is dropped, and that each retreat gives up something more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._dynamo.exc import UnspecializeRestartAnalysis

from graphmend_hook.engine.attempt import refusals, retreats
from graphmend_hook.engine.attempt.attempt import Feature, Lifetime, UselessRetreatError
from graphmend_hook.engine.attempt.compilation import Attempts, Compilation, FrameMemory
from graphmend_hook.engine.door.question import question
from graphmend_hook.engine.door.tracer import Trace

DRAWS, LINES = Feature("draws wait"), Feature("lines are mended", Lifetime.CODE)
CALLS = Feature("lines are mended in the frames that are called", Lifetime.CALLS)
EVERYWHERE = Feature("lines are mended in each frame", Lifetime.EVERYWHERE)
BY_LIFETIME = {feature.lifetime.name: feature for feature in (DRAWS, LINES, CALLS, EVERYWHERE)}
LINE, OTHER = ("module.py", 3), ("module.py", 4)


def attempt_with(attempts: Attempts, memory: FrameMemory) -> Compilation:
    made = Compilation.__new__(Compilation)
    made.attempts, made.memory = attempts, memory
    return made


@pytest.fixture
def attempt() -> Compilation:
    return attempt_with(Attempts(), FrameMemory())


def test_what_is_dropped_is_so_at_its_site(attempt: Compilation) -> None:
    attempt.drop(LINES.at(LINE))
    assert attempt.allows(LINES)
    assert attempt.allows(LINES, OTHER)
    assert not attempt.allows(LINES, LINE)
    attempt.drop(LINES.at())
    assert not attempt.allows(LINES)
    assert not attempt.allows(LINES, OTHER)
    assert attempt.allows(DRAWS)


def test_a_retreat_begins_the_trace_anew_and_tells_its_codes(attempt: Compilation) -> None:
    bet = LINES.at(LINE, "GM100-T02", "x.n", (*LINE, "forward"))
    with pytest.raises(UnspecializeRestartAnalysis) as raised:
        attempt.without(bet, DRAWS.at(), reason="a test")
    assert raised.value.restart_reason == "graphmend_hook: a test"
    assert not attempt.allows(LINES, LINE)
    assert not attempt.allows(DRAWS)
    assert attempt.dropped(LINES, LINE) == bet
    assert refusals.seen == {("GM100-T02", *LINE, "forward"): "x.n"}


def test_one_that_gives_up_nothing_more_is_a_defect(attempt: Compilation) -> None:
    for expected in (UnspecializeRestartAnalysis, UselessRetreatError):
        with pytest.raises(expected):
            attempt.without(DRAWS.at(), reason="a test")


def test_how_long_a_bet_is_dropped(attempt: Compilation) -> None:
    attempt.drop(DRAWS.at())
    attempt.drop(LINES.at(LINE))
    assert not attempt_with(attempt.attempts, FrameMemory()).allows(DRAWS)
    later = attempt_with(Attempts(), attempt.memory)
    assert later.allows(DRAWS)
    assert not later.allows(LINES, LINE)
    assert attempt_with(Attempts(), FrameMemory()).allows(LINES, LINE)


_asked: list[bool] = []


@question(otherwise=False)
def is_mended(trace: Trace, lifetime: str) -> bool:
    """Is the line mended?  If it is, not from here on."""
    _asked.append(trace.compilation.allows(BY_LIFETIME[lifetime], LINE))
    if _asked[-1]:
        trace.compilation.without(BY_LIFETIME[lifetime].at(LINE), reason="a test")
    return _asked[-1]


def asked(function: Callable[..., Any], x: torch.Tensor, lifetime: str) -> list[bool]:
    """Whether the line was mended in each attempt to trace the function for `x`."""
    _asked.clear()
    torch.compile(function, backend="eager", dynamic=False)(x, lifetime)
    return [*_asked]


@pytest.mark.parametrize("lifetime", ["COMPILATION", "CODE", "CALLS", "EVERYWHERE"])
def test_reset_forgets_it(lifetime: str) -> None:
    def one(x: torch.Tensor, lifetime: str) -> tuple[torch.Tensor, bool]:
        return x + 1, is_mended(lifetime)

    def other(x: torch.Tensor, lifetime: str) -> tuple[torch.Tensor, bool]:
        return x + 2, is_mended(lifetime)

    for _ in range(2):
        assert asked(one, torch.ones(2), lifetime) == [True, False]
        assert asked(one, torch.ones(3), lifetime) == ([True, False] if lifetime == "COMPILATION" else [False])
        assert asked(other, torch.ones(2), lifetime) == ([False] if lifetime == "EVERYWHERE" else [True, False])
        torch._dynamo.reset()


@pytest.mark.parametrize("lifetime", ["CODE", "CALLS"])
def test_where_a_frame_breaks_those_that_it_calls_know_what_was_dropped(lifetime: str) -> None:
    def inner(x: torch.Tensor, lifetime: str) -> torch.Tensor:
        is_mended(lifetime)
        torch._dynamo.graph_break()
        return x + 1

    def outer(x: torch.Tensor, lifetime: str) -> torch.Tensor:
        return inner(x, lifetime) * 2

    in_outer = [True, False]
    in_inner = [True, False, False] if lifetime == "CODE" else [False, False]  # the last one ends at the break
    for _ in range(2):
        assert asked(outer, torch.ones(2), lifetime) == in_outer + in_inner
        torch._dynamo.reset()


def test_the_order_of_retreats_is_one_table() -> None:
    """In words in `docs/design.md`; here, so that no other order slips in."""
    assert [step.__name__.strip("_") for step in retreats.OF_NUMBERS] == [
        *(
            "let_fail",
            "nothing_in_what_is_large",
            "nothing_for_the_backend",
            "not_negative",
            "above_one",
            "by_contents",
        ),
        *("by_example", "without_example", "fewer_captures"),
    ]


def test_each_retreat_says_what_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "graphmend_hook.trace"):
        torch.compile(lambda x: (x + 1, is_mended("CODE")), backend="eager")(torch.ones(2))
    assert "traced anew, where it was so that lines are mended: a test" in caplog.text
