"""A module that counts its calls is compiled once, for a thousand calls."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import torch
from observing import Counting, both

from graphmend_hook.engine.door.counters import added_to

PLAIN, MENDED = both("counter_cases")
COUNTING = ("Counts", "WarmsUp", "CountsInAPart", "CountsBehindAGuard")


def seen(module: Any, calls: int, backend: Counting | None = None) -> Any:
    torch._dynamo.reset()
    called = module if backend is None else torch.compile(module, backend=backend)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        results = [called(torch.arange(4.0) + call).tolist() for call in range(calls)]
    return (
        results,
        {name: value for part in module.modules() for name, value in vars(part).items() if name == "calls"},
        printed.getvalue(),
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", COUNTING)
def test_a_counter_is_a_symbol_from_the_first_call_on(name: str, backend: str) -> None:
    counting, calls = Counting(backend), 1000 if backend == "eager" else 20
    assert seen(getattr(MENDED, name)(), calls, counting) == seen(getattr(PLAIN, name)(), calls)
    assert counting.graphs == 1
    assert counting.runs == calls


def test_a_period_is_a_guard_on_the_symbol() -> None:
    counting = Counting("eager")
    assert seen(MENDED.SpeaksNowAndThen(), 200, counting) == seen(PLAIN.SpeaksNowAndThen(), 200)
    assert counting.graphs <= 3
    assert counting.runs == 200


def test_an_argument_that_is_asked_for_a_period_is_a_symbol_from_the_first_call_on() -> None:
    counting, printed = Counting("eager"), []
    for called in (torch.compile(MENDED.SpeaksOfItsArgument(), backend=counting), PLAIN.SpeaksOfItsArgument()):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            assert all(torch.equal(called(torch.ones(4), step), torch.full((4,), 2.0)) for step in range(50))
        printed.append(text.getvalue())
    assert printed[0] == printed[1]
    assert (counting.graphs, counting.runs) == (2, 50)


def test_a_module_that_is_not_mended_is_compiled_as_without_the_hook() -> None:
    counting = Counting("eager")
    seen(PLAIN.Counts(), 12, counting)
    assert counting.graphs == torch._dynamo.config.recompile_limit


def test_what_needs_the_number_itself_is_compiled_as_without_the_hook() -> None:
    counting, original = Counting("eager"), Counting("eager")
    found = [
        torch.compile(module, backend=backend)
        for module, backend in ((MENDED.LooksItsNumberUp(), counting), (PLAIN.LooksItsNumberUp(), original))
    ]
    for _ in range(12):
        mended, plain = (compiled(torch.ones(4)) for compiled in found)
        assert mended[1] == plain[1] and torch.equal(mended[0], plain[0])
    assert (counting.graphs, counting.runs) == (original.graphs, original.runs)


def test_a_text_of_the_number_is_made_behind_the_graph() -> None:
    mended, plain = (
        torch.compile(MENDED.SaysItsNumber(), backend=(counting := Counting("eager"))),
        PLAIN.SaysItsNumber(),
    )
    for _ in range(12):
        assert mended(torch.ones(4))[1] == plain(torch.ones(4))[1]
    assert (counting.graphs, counting.runs) == (1, 12)


@pytest.mark.parametrize("name", ["TakesARemainder", "TakesTheLarger", "TakesTheLargerFloat"])
def test_a_float_that_a_counter_makes_is_what_it_is_in_eager(name: str) -> None:
    mended, plain = torch.compile(getattr(MENDED, name)(), backend="eager"), getattr(PLAIN, name)()
    for _ in range(12):
        assert repr(mended(torch.ones(4))) == repr(plain(torch.ones(4)))


def test_a_number_that_nothing_adds_to_stays_a_constant() -> None:
    module, counting = MENDED.HasASize(), Counting("eager")
    for calls in range(3):
        module.calls = calls
        torch.compile(module, backend=counting)(torch.ones(4))
    assert counting.graphs == 3


def test_a_number_of_the_same_name_stays_a_constant() -> None:
    module, counting = MENDED.CountsInOnePart(), Counting("eager")
    assert torch.compile(module, backend=counting)(torch.ones(4)).shape == (3,)
    module.sized.calls, module.counting.calls = 5, 0
    assert torch.compile(module, backend=counting)(torch.ones(4)).shape == (5,)
    assert counting.graphs == 2


def test_a_local_name_may_stand_between_the_sum_and_the_attribute() -> None:
    """Since Python 3.13 one instruction loads two names, or stores two."""

    def adds(self: Any, x: Any) -> Any:
        total = self.calls + 1
        self.calls = total
        return x * total

    assert added_to(adds.__code__) == {("self", "calls")}


def test_an_argument_that_cannot_be_a_symbol_is_a_constant_again() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(MENDED.rounds_and_asks_for_a_period, backend="eager")
    for number in (2, 2, 3):
        result, *numbers = compiled(torch.ones(4), number)
        expected, *others = PLAIN.rounds_and_asks_for_a_period(torch.ones(4), number)
        assert torch.equal(result, expected)
        assert repr(numbers) == repr(others)
