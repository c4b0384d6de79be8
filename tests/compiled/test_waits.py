"""A compiled program waits for a device no more often than the program in eager."""

from __future__ import annotations

from types import FunctionType
from typing import Any
from unittest import mock

import pytest
import torch
from observing import Counting, both
from waits import compiled_waits, eager_waits

from graphmend_hook.engine.numbers import runtime_asserts

PLAIN, MENDED = both("waits_cases")
NAMES = [name for name, value in vars(PLAIN).items() if isinstance(value, FunctionType)]
X = torch.tensor([[1.0, 2.0], [-1.0, 3.0], [4.0, -2.0], [5.0, 6.0], [-7.0, 1.0]])
Y = torch.arange(21.0).reshape(7, 3)
needs_a_device = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="this build of torch knows nothing of a device"
)


@needs_a_device
@pytest.mark.parametrize("name", NAMES)
def test_no_more_waits_than_eager(name: str) -> None:
    assert compiled_waits(getattr(MENDED, name), X, Y) <= eager_waits(getattr(PLAIN, name), X, Y)


@needs_a_device
@pytest.mark.parametrize("name", ["splits_by_a_list", "splits_by_a_list_twice", "takes_rows", "guards"])
def test_what_is_read_together_is_waited_for_once(name: str) -> None:
    assert compiled_waits(getattr(MENDED, name), X, Y) == 1


@needs_a_device
def test_jetmoe_waits_as_often_as_eager() -> None:
    """A list of numbers for each router, of which each number is a size, and asserted about."""
    transformers = pytest.importorskip("transformers")
    import graphmend_hook

    sizes = dict.fromkeys(("hidden_size", "intermediate_size"), 16)
    config = transformers.JetMoeConfig(
        vocab_size=20, num_hidden_layers=1, num_key_value_heads=2, kv_channels=4, num_local_experts=4, **sizes
    )
    model = transformers.JetMoeForCausalLM(config).eval()
    tokens = torch.arange(3, 9)[None]
    expected = eager_waits(lambda model, tokens: model(tokens, use_cache=False).logits, model, tokens)
    mended = graphmend_hook.mend(model)
    assert compiled_waits(lambda model, tokens: model(tokens, use_cache=False).logits, mended, tokens) <= expected


@pytest.mark.parametrize("values", [(True, True, True), (False, True, True), (True, True, False)])
def test_what_is_asserted_of_a_device_is_read_by_one_copy(values: tuple[bool, ...]) -> None:
    def graph(one: torch.Tensor, two: torch.Tensor, three: torch.Tensor) -> torch.Tensor:
        torch._assert_async(one.cpu(), "graphmend_hook: first")
        torch._assert_async(two.cpu(), "graphmend_hook: second")
        torch._assert_async(three.cpu(), "graphmend_hook: first")
        return one

    module = torch.fx.symbolic_trace(graph)
    for node in module.graph.find_nodes(op="placeholder"):
        node.meta["example_value"] = torch.ones((), dtype=torch.bool, device="meta")
    runtime_asserts._read_together(mock.Mock(), module)
    module.recompile()
    assert len(module.graph.find_nodes(op="call_method", target="cpu")) == 1
    given = [torch.tensor(value) for value in values]
    if all(values):
        module(*given)
    else:
        with pytest.raises(RuntimeError, match="graphmend_hook: first or second"):
            module(*given)


class Raised(tuple[Any, ...]):
    """What a call has raised."""


def given(function: Any, x: torch.Tensor) -> Any:
    try:
        return function(x, Y)
    except (RuntimeError, ValueError, IndexError) as error:
        return Raised((type(error), error.args))


@pytest.mark.parametrize("name", NAMES)
def test_equal_to_eager(name: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend=Counting("eager"))
    for x in (X, -X, X.flip(0), X.abs(), -X.abs(), torch.zeros(5, 2), X * torch.nan):
        found, expected = given(compiled, x), given(getattr(PLAIN, name), x)
        if isinstance(expected, Raised):
            assert found == expected
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
