"""[Where] against eager: values to the bit, gradients, effects, state, random numbers; or declined for the reason given."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch
from expectations import Cases
from observing import import_mended

from graphmend_hook.engine.attempt import refusals

KINDS = (
    "",
    "_attribute",
    "_call",
    "_exit",
    "_gradient",
    "_merge",
    "_identity",
    "_effect",
    "_loop",
    "_state",
    "_number",
    "_write",
)
CASES = Cases(*(f"branch{kind}_cases" for kind in KINDS))
EXPECT, PLAIN, MENDED = CASES.expect, CASES.plain, CASES.mended
HELPERS = {"h14_a_generator": "halves"}


def compare(name: str, backend: str, train: bool) -> None:
    CASES.compare(name, backend, train, HELPERS.get(name, ""))


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


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_was_saved_before_the_graph_is_not_spoilt_by_a_write_that_is_not_made(backend: str) -> None:
    """H: autograd counts a write, though it writes what is there, and refuses the gradient of an earlier call."""
    _, model = CASES.pair("parameters_are_clipped")
    with torch.no_grad():
        model.first.weight.mul_(0.01)
    counts = model.first.weight._version
    compiled, x = torch.compile(model, backend=backend, fullgraph=True), torch.ones(4, 8, requires_grad=True)
    compiled(compiled(x)).sum().backward()
    assert model.first.weight._version == counts
    with torch.no_grad():
        model.first.weight.mul_(1000)
    compiled(x)
    assert model.first.weight._version > counts + 1


@pytest.mark.parametrize("name", EXPECT)
def test_eager_is_untouched(name: str) -> None:
    CASES.compare_uncompiled(name)


@pytest.mark.parametrize("name", [name for name, expect in EXPECT.items() if not expect.declined and expect.breaks])
@pytest.mark.slow
def test_the_case_breaks_without_the_hook(name: str) -> None:
    expect = EXPECT[name]
    compiled = torch.compile(CASES.pair(name)[0], backend="eager", fullgraph=True)
    outcomes: list[Any] = [CASES.run(name, compiled, inputs).error for inputs in expect.inputs]
    assert any(error and issubclass(error[0], torch._dynamo.exc.TorchDynamoException) for error in outcomes)


def test_a_branch_of_many_layers_is_given_up_in_two_attempts(caplog: pytest.LogCaptureFixture) -> None:
    """Each further attempt traces the whole frame."""
    compiled = torch.compile(MENDED.what_may_fail_in_each_of_many_layers, backend="eager", fullgraph=True)
    with caplog.at_level(logging.DEBUG, "graphmend_hook.trace"), pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(torch.ones(3))
    assert caplog.text.count("a region is given up: GM102-T04") == 2


def test_a_loop_that_cannot_be_mended_is_tried_once_for_all_frames_that_lead_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the loop breaks a frame, Dynamo compiles the functions that the frame calls, down to that of the loop."""
    path = tmp_path / "gm_keeping.py"
    path.write_text(
        "import torch\n\n"
        "def steps(x, seen):\n    for _ in range(4):\n        x = x * 2\n        seen.insert(0, x)\n"
        "        if x.norm() > 10:\n            break\n    return torch.stack(seen)\n\n"
        "def middle(x):\n    return steps(x + 1, []).sum()\n\n"
        "def outer(x):\n    return middle(x) * 2\n"
    )
    mended = import_mended(path, "gm_keeping")
    compiled, x = torch.compile(mended.outer, backend="eager"), torch.ones(3)
    with caplog.at_level(logging.DEBUG, "graphmend_hook.trace"):
        assert torch.equal(compiled(x), mended.outer(x))
    assert caplog.text.count("traced anew") == 1


def test_a_refusal_names_the_operation_or_the_tensor() -> None:
    for name, about in (("h1_singular_with_gaps", "exp"), ("h2_an_input_of_one_side", "y")):
        compare(name, "eager", True)
        assert any(about in operation for operation in refusals.seen.values()), name


def test_a_hook_on_what_one_side_alone_uses_is_heard() -> None:
    """It is registered when the function is compiled: the gate would call it with no gradient."""
    _, model = CASES.pair("a_module")
    compiled, heard = torch.compile(model, backend="eager"), []
    x = EXPECT["a_module"].inputs[1][0]
    compiled(x).sum().backward()
    model.norm.weight.register_hook(heard.append)
    for _ in range(3):
        compiled(x).sum().backward()
    assert len(heard) == 3
