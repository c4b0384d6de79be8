"""What is known of a random draw: each fact measured, and what it decides against eager, the random stream too."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Counting, both, on

from graphmend_hook.engine.facts import ranges
from graphmend_hook.engine.facts.whole_ranges import whole_range

PLAIN, MENDED = both("range_cases")
DECIDED = ["below_zero", "at_least_one", "kept_for_certain", "scaled", "of_many", "joined", "negated", "spread"]
DECIDED += ["never", "whole", "layer_dropped", "layer_that_may_fail", "drawn_by_python", "drawn_one_after_the_other"]
UNDECIDED = [
    "rewritten",
    "rewritten_through_a_view",
    "of_an_input",
    "not_a_number",
    "of_nothing",
    "with_a_chance",
    "not_of_a_number",
]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
ODD = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, 65504.0, -65504.0]


def seen(function: Any, call: int) -> tuple[torch.Tensor, torch.Tensor | None, int, float]:
    """What it gives, the gradient, and the state of the random streams, torch's and Python's."""
    torch.manual_seed(call)
    random.seed(call)
    x = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
    given = function(x, 0.5)
    given.sum().backward()
    return given.detach(), x.grad, hash(torch.get_rng_state().numpy().tobytes()), random.random()


@pytest.mark.parametrize(("name", "backend"), on(DECIDED, ("of_many", "layer_dropped")))
def test_a_range_decides(name: str, backend: str) -> None:
    counting = Counting(backend)
    with torch._inductor.config.patch(fallback_random=True):
        compiled = torch.compile(getattr(MENDED, name), backend=counting, fullgraph=True)
        for call in range(3):
            expected, found = seen(getattr(PLAIN, name), call), seen(compiled, call)
            torch.testing.assert_close(found[:2], expected[:2])
            assert found[2:] == expected[2:]
    assert counting.graphs == 1


@pytest.mark.parametrize("name", ["uniform", "squashed", "drawn_from_another", "drawn_with_a_chance"])
def test_another_test_may_break(name: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend="eager")
    for call in range(3):
        torch.testing.assert_close(seen(compiled, call), seen(getattr(PLAIN, name), call))


@pytest.mark.parametrize("name", UNDECIDED)
def test_no_range_decides(name: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend=(counting := Counting("eager")))
    for call in range(6):
        torch.manual_seed(call)
        random.seed(call)
        x = torch.tensor([0.5, -1.0, math.nan if call % 2 else 2.0])
        given = compiled(x.clone(), 0.5)
        torch.manual_seed(call)
        random.seed(call)
        torch.testing.assert_close(given, getattr(PLAIN, name)(x.clone(), 0.5), equal_nan=True)
    assert counting.graphs > 1


def test_the_setting_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmend_hook.engine.epilogue.queue.specialise", False)
    compiled = torch.compile(MENDED.layer_that_may_fail, backend=Counting("eager"), fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        seen(compiled, 0)


def node_of(function: Callable[..., Any], *values: Any) -> torch.fx.Node:
    """A node of a graph, with an example, that makes such a call."""
    graph = torch.fx.Graph()
    operands = [
        graph.placeholder(f"x{index}") if isinstance(value, torch.Tensor) else value
        for index, value in enumerate(values)
    ]
    for operand, value in zip(operands, values, strict=True):
        if isinstance(operand, torch.fx.Node):
            operand.meta["example_value"] = value
    node = graph.call_function(function, tuple(operands))
    node.meta["example_value"] = function(*values)
    return node


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ranges._OF_ANYTHING)
def test_ranges_of_anything(name: str, dtype: torch.dtype) -> None:
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    x = torch.cat([torch.tensor(ODD, dtype=dtype), torch.randn(4096).mul(20).to(dtype)])
    given = function(x, -1) if name == "softmax" else function(x[:, None], dim=1) if name == "norm" else function(x)
    low, high = ranges._OF_ANYTHING[name]
    assert ((given.isnan()) | ((given >= low) & (given <= high))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_ranges_of_draws(dtype: torch.dtype) -> None:
    many = 2**16
    draws: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (torch.rand_like, (torch.empty(many, dtype=dtype),)),
        (torch.Tensor.uniform_, (torch.empty(many, dtype=dtype), 0.1, 0.7)),
        (torch.Tensor.uniform_, (torch.empty(many, dtype=dtype), -1e-3, 1.0)),
        (torch.Tensor.bernoulli_, (torch.empty(many, dtype=dtype), 0.5)),
        (torch.Tensor.bernoulli_, (torch.empty(many, dtype=dtype), 0.0)),
        (torch.Tensor.bernoulli_, (torch.empty(many, dtype=dtype), 1.0)),
        (torch.bernoulli, (torch.full((many,), 0.5, dtype=dtype),)),
    ]
    for function, values in draws:
        node = node_of(function, *values)
        bounds = ranges._DRAWS[function.__name__](node, dtype)
        assert bounds is not None
        low, high = (torch.tensor(bound, dtype=dtype) for bound in bounds)
        given = node.meta["example_value"]
        assert (given >= low).all() and (given <= high).all(), (function, values)


def test_ranges_of_whole_draws() -> None:
    for arguments in ((5, (99,)), (-2, 3, (99,)), (2**62, 2**63 - 1, (9,))):
        node = node_of(torch.randint, *arguments)
        bounds = ranges._DRAWS["randint"](node, torch.int64)
        assert bounds is not None
        assert bounds == (0 if len(arguments) == 2 else arguments[0], arguments[-2] - 1)
        given = node.meta["example_value"]
        assert (given >= bounds[0]).all() and (given <= bounds[1]).all()


def test_ranges_of_pythons_draws() -> None:
    given = [(0, 1), (-3, 2), (1e-3, 1.0), (2.0, -5.0), (0.1, 0.3)]
    for arguments in given:
        found = ranges._of_python(random.uniform, arguments, {})
        assert found is not None
        assert all(found.low <= random.uniform(*arguments) <= found.high for _ in range(2**14)), arguments
    assert ranges._of_python(random.randint, (2, 4), {}) == ranges.Range(2, 4)
    assert ranges._of_python(random.uniform, (0, True), {}) is None
    assert ranges._of_python(random.Random(0).uniform, (0, 1), {}) is None
    assert ranges._of_python(random.gauss, (0, 1), {}) is None


def known(operand: Any) -> tuple[int, int] | None:
    """The range of a number or of a tensor that is an operand."""
    if not isinstance(operand, torch.fx.Node):
        return (operand, operand) if type(operand) is int else None
    value = operand.meta["example_value"]
    return int(value.min()), int(value.max())


NINE = torch.arange(10)
BYTES = NINE.to(torch.uint8)


@pytest.mark.parametrize(
    ("is_known", "call"),
    [
        (True, (torch.where, NINE > 4, NINE, 3)),
        (True, (torch.Tensor.where, NINE, NINE > 20, torch.tensor(9))),
        (True, (torch.add, NINE, 5)),
        (True, (torch.sub, 5, NINE)),
        (True, (torch.mul, NINE, -3)),
        (True, (torch.maximum, NINE, torch.tensor(-1))),
        (False, (torch.maximum, BYTES, torch.tensor(-1))),  # which is 255 there
        (False, (torch.minimum, BYTES, torch.tensor(300))),
        (False, (torch.Tensor.clamp_min, BYTES, -1)),
        (False, (torch.add, BYTES, 250)),
        (True, (torch.cumsum, NINE, 0)),
        (True, (torch.sum, NINE)),
        (True, (torch.full, (2,), 7)),
        (True, (torch.full_like, NINE, 7)),
        (True, (torch.tensor, [[1, 5], [2, 3]])),
        (True, (torch.arange, 2, 9, 3)),
        (True, (torch.arange, 9, 2, -3)),
        (True, (torch.arange, 3)),
        (False, (torch.repeat_interleave, NINE)),  # of places
        (True, (torch.flip, NINE, (0,))),
        (True, (torch.Tensor.masked_fill, NINE, NINE > 3, 40)),
    ],
)
def test_ranges_of_whole_numbers(is_known: bool, call: tuple[Any, ...]) -> None:
    node = node_of(*call)
    given = node.meta["example_value"]
    found = whole_range(node, given, known)
    assert (found is not None) is is_known
    assert found is None or (found[0] <= given.min() and given.max() <= found[1])
