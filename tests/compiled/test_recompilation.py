"""What changes from call to call behind a freed break costs no more than without the hook: compilations and graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Kept, both

from graphmend_hook.diagnostics import CODES
from graphmend_hook.engine.attempt import refusals

PLAIN, MENDED = both("recompilation_cases")
CALLS = 12
COUNTERS = ["CountsAtTheEnd", "CountsBehindAGuard", "CountsBehindALog", "CountsBehindABranch", "CountsBetweenGuards"]
COUNTERS += ["CountsInATry", "HalvesEachFourth", "Writes", "Holds"]


class Counted:
    """A backend that counts graphs, and how many of them run."""

    def __init__(self) -> None:
        self.compiled = self.ran = 0

    def __call__(self, module: torch.fx.GraphModule, _inputs: Any) -> Callable[..., Any]:
        self.compiled += 1

        def run(*inputs: Any) -> Any:
            self.ran += 1
            return module.forward(*inputs)

        return run


def built(cases: Any, name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    module: torch.nn.Module = getattr(cases, name)()
    return module


def seen(module: torch.nn.Module, call: Callable[..., Any], rows: Callable[[int], int]) -> list[Any]:
    """What each of the calls gives, and leaves behind."""
    kept = Kept()
    PLAIN.log.addHandler(kept)
    found = []
    for number in range(CALLS):
        x = torch.randn(rows(number), 4, generator=torch.Generator().manual_seed(number)) * 3
        output = call(x)
        state = [repr(vars(part)) for part in module.modules() if not hasattr(part, "weight")]
        found.append((output.detach().tolist(), [line.split("_modules")[0] for line in state], [*kept.texts]))
    PLAIN.log.removeHandler(kept)
    return found


def run(cases: Any, name: str, rows: Callable[[int], int] = lambda _: 3, **options: Any) -> tuple[int, int]:
    """Graphs compiled in all calls, and graphs that the last one runs, where each call is eager's."""
    torch._dynamo.reset()
    backend, module, last = Counted(), built(cases, name), 0
    compiled = torch.compile(module, backend=backend, **options)

    def call(x: torch.Tensor) -> Any:
        nonlocal last
        before = backend.ran
        output = compiled(x)
        last = backend.ran - before
        return output

    plain = built(PLAIN, name)
    assert seen(module, call, rows) == seen(plain, plain, rows)
    return backend.compiled, last


def longer(number: int) -> int:
    return 3 + number


@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("rows", [lambda _: 3, pytest.param(longer, marks=pytest.mark.slow)], ids=["fixed", "longer"])
def test_what_a_frame_adds_to_costs_nothing(name: str, rows: Callable[[int], int]) -> None:
    compiled, last = run(MENDED, name, rows)
    without, last_without = run(PLAIN, name, rows)
    if without:
        assert compiled <= without
        assert (last > 0) == (last_without > 0) and last <= last_without
    else:  # a frame that is left to eager without the hook
        assert compiled <= len({rows(number) for number in range(2)}) and last == 1


@pytest.mark.parametrize("name", ["Grows", "Collects", "FixesItsLength", "DecidesByItsLength"])
def test_the_third_compilation_breaks_again(name: str) -> None:
    compiled, last = run(MENDED, name, longer)
    reasons = [code for code, *_ in refusals.seen]
    without, last_without = run(PLAIN, name, longer)
    assert compiled <= without + 2 and last == last_without
    assert "GM100-T02" in reasons


def test_four_guards_of_a_function_that_is_called_have_it_break_again() -> None:
    compiled, last = run(MENDED, "GrowsInACall", longer)
    without, last_without = run(PLAIN, "GrowsInACall", longer)
    assert compiled <= without + 2
    assert last >= last_without > 0  # in stock a part of it is in eager by then


def test_guards_that_fail_once_each_give_nothing_up() -> None:
    compiled, last = run(MENDED, "ChangesTwice")
    assert (compiled, last) == (5, 1)
    assert "GM100-T02" not in [code for code, *_ in refusals.seen]


def test_the_report_has_the_guard() -> None:
    run(MENDED, "Writes")
    (found,) = [known for known in refusals.seen if known[0] == "GM100-T02"]
    assert "it breaks again" in CODES["GM100-T02"].sentence
    assert refusals.about(found) == " (self.note)" and found[3] == "forward"


def test_it_breaks_for_good_and_only_until_a_reset() -> None:
    backend = Counted()
    module = built(MENDED, "Grows")
    compiled = torch.compile(module, backend=backend)
    for _ in range(CALLS):
        compiled(torch.ones(3, 4))
    count = backend.compiled
    compiled(torch.ones(3, 4))
    assert backend.compiled == count
    torch._dynamo.reset()
    module.history.clear()
    compiled(torch.ones(3, 4))
    assert backend.compiled == count + 1  # one graph


@pytest.mark.parametrize("name", ["CountsAtTheEnd", "CountsInATry"])
def test_what_forbids_to_compile_anew_forbids_no_counter(name: str) -> None:
    module = built(MENDED, name)
    compiled = torch.compile(module, backend="eager")
    compiled(torch.ones(3, 4))
    with torch.compiler.set_stance("fail_on_recompile"):
        for _ in range(3):
            compiled(torch.ones(3, 4))
    assert module.calls == 4


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("AnnealsAFloat", 2),
        ("DecidesOnABuffer", 2),
        ("ReadsAFloatOfABuffer", 3),
        ("ReadsThenCounts", 3),
    ],
)
def test_what_need_not_be_compiled_for_each_number(name: str, most: int) -> None:
    compiled, last = run(MENDED, name)
    without, last_without = run(PLAIN, name)
    assert compiled <= min(most, without) and last <= last_without


def test_what_an_assignment_makes_of_a_number_is_a_counter() -> None:
    assert run(MENDED, "CountsRows") == (1, 1)


def test_one_graph_is_asked_for_all_the_same() -> None:
    module = built(MENDED, "ReadsAFloatOfABuffer")
    plain = copy.deepcopy(module)
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    assert torch.equal(compiled(torch.ones(3, 4)), plain(torch.ones(3, 4)))


def test_a_frame_that_may_compute_nothing_is_one_graph() -> None:
    assert run(MENDED, "ReturnsOrComputes") == (1, 1)
