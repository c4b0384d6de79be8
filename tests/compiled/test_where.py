"""[Where] against eager: values to the bit, gradients, effects, state, random numbers; or declined for the reason given."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended
from outcomes import differences, fresh, run

from graphmend_hook.diagnostics import Outcome as SiteOutcome
from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES

PATH = HERE / "branch_cases.py"
PLAIN = import_file(PATH, "branch_cases_plain")
MENDED = import_mended(PATH, "branch_cases_mended")
SITES = rewrite(PATH.read_bytes(), str(PATH), active_rules(RULE_NAMES)).sites
EXPECT = PLAIN.EXPECT
HELPERS = {"h14_a_generator": "halves"}
LOGGER = "branch_cases"


def static_refusals(name: str) -> set[str]:
    functions = (name, HELPERS.get(name, name))
    return {
        site.code for site in SITES if site.outcome is SiteOutcome.DECLINED and site.function.split(".")[0] in functions
    }


def graphs_without_the_hook(name: str) -> int:
    torch._dynamo.reset()
    counting = Counting("eager")
    run(torch.compile(fresh(getattr(PLAIN, name)), backend=counting), EXPECT[name].inputs[0], False, LOGGER)
    return counting.graphs


def compare(name: str, backend: str, train: bool) -> None:
    expect = EXPECT[name]
    declined = expect.train if train else expect.declined
    plain, mended = fresh(getattr(PLAIN, name)), fresh(getattr(MENDED, name))
    counting = Counting(backend)
    refusals.seen.clear()
    compiled = torch.compile(mended, backend=counting, fullgraph=not declined, dynamic=False)
    shapes = {tuple(getattr(value, "shape", None) for value in inputs) for inputs in expect.inputs}
    for inputs in expect.inputs:
        expected = run(plain, inputs, train, LOGGER, plain)
        got = run(compiled, inputs, train, LOGGER, mended)
        assert not differences(got, expected, exact=expect.exact or backend != "inductor"), (inputs, backend, train)
    seen = {code for code, *_ in refusals.seen}
    if declined == "-":
        # Since torch 2.15 Dynamo traces the look-up of a name that does not exist, as an exception.
        assert counting.graphs != 1 or not seen.isdisjoint({"GM102-T05", "GM102-T13"})
    elif declined:
        assert counting.graphs or not graphs_without_the_hook(name), "the frame is skipped because of the hook"
        assert declined in seen | static_refusals(name)
    else:
        assert not seen
        assert counting.graphs <= len(shapes) + (name == "register_buffer_on_both_sides")
    assert queue.graphmend_pending == []


@pytest.mark.parametrize(
    ("backend", "train"), [("eager", False), ("aot_eager", True)], ids=["eager-inference", "aot_eager-training"]
)
@pytest.mark.parametrize("name", EXPECT)
def test_equal_to_eager(name: str, backend: str, train: bool) -> None:
    compare(name, backend, train)


@pytest.mark.parametrize("name", [name for name, expect in EXPECT.items() if expect.inductor])
@pytest.mark.slow
def test_equal_to_eager_on_inductor(name: str) -> None:
    compare(name, "inductor", False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["if_else", "without_else"])
@pytest.mark.slow
def test_half_precision_is_rounded_as_inductor_rounds_it(name: str, dtype: torch.dtype) -> None:
    """H: a kernel computes in float32 and rounds at its end; sides are merged in one that rounds where each did."""
    plain, mended = (
        torch.compile(getattr(module, name), backend="inductor", dynamic=False) for module in (PLAIN, MENDED)
    )
    for sign in (1, -1):
        x = (sign * torch.linspace(-0.3, 2.3, 37)).to(dtype)
        with torch.no_grad():
            found = mended(x)
            assert torch.equal(found, plain(x))  # its branch is a break, and each side one kernel
            torch.testing.assert_close(found, getattr(PLAIN, name)(x), rtol=0, atol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("name", EXPECT)
def test_eager_is_untouched(name: str) -> None:
    plain, mended = fresh(getattr(PLAIN, name)), fresh(getattr(MENDED, name))
    for inputs in EXPECT[name].inputs:
        expected = run(plain, inputs, True, LOGGER, plain)
        assert not differences(run(mended, inputs, True, LOGGER, mended), expected)


@pytest.mark.parametrize("name", [name for name, expect in EXPECT.items() if not expect.declined and expect.breaks])
@pytest.mark.slow
def test_the_case_breaks_without_the_hook(name: str) -> None:
    expect = EXPECT[name]
    compiled = torch.compile(fresh(getattr(PLAIN, name)), backend="eager", fullgraph=True)
    outcomes: list[Any] = [run(compiled, inputs, False, LOGGER).error for inputs in expect.inputs]
    assert any(error and issubclass(error[0], torch._dynamo.exc.TorchDynamoException) for error in outcomes)


def test_a_refusal_names_the_operation_or_the_tensor() -> None:
    for name, about in (("h1_singular_with_gaps", "exp"), ("h2_an_input_of_one_side", "y")):
        compare(name, "eager", True)
        assert any(about in operation for operation in refusals.seen.values()), name
