"""Tensors with ways of their own, against eager: nothing of ours runs on one, and what stands beside it is mended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, Kept, both

PLAIN, MENDED = both("subclass_cases")
WHOLE = ("beside", "behind_a_draw", "asserted")
OF_ITSELF = ("unused", "of_itself", "numbers_of_itself", "checked", "rows_of_itself", "selected_from_itself")
INPUTS = (1.0, float("inf"), float("nan"), -2.0)


def held(value: Any) -> Any:
    """The class of a tensor and what it holds, as text: so that NaN is equal to itself."""
    kind = type(value).__name__
    while hasattr(value, "held"):
        value = value.held
    return kind, str(value.tolist())


def seen(call: Callable[..., Any], wrap: Callable[[torch.Tensor], Any] | None) -> Iterator[Any]:
    """What each call gives, or raises, what it says, and a random number drawn behind it."""
    for number, factor in enumerate(INPUTS):
        torch.manual_seed(number)
        x = torch.arange(9.0).reshape(3, 3) - 4
        x[0, 0] *= factor
        given = [x] if wrap is None else [wrap(x.clone()), x]
        try:
            yield [held(each) for each in (*call(*given), *given)]
        except torch._dynamo.exc.TorchRuntimeError as error:  # an operation that its class does not have
            yield type(error)
        except (NotImplementedError, TypeError, ValueError, AssertionError) as error:
            yield type(error), str(error)
        yield torch.rand(()).item()


def observe(
    made: Callable[[ModuleType], Any], wrap: Callable[[ModuleType], Any] | None, module: ModuleType, backend: str = ""
) -> tuple[list[Any], int]:
    """What is seen of the calls, with all records, and how many graphs there were; without a backend, of eager."""
    torch._dynamo.reset()
    counting, kept, logger = Counting(backend or "eager"), Kept(), logging.getLogger("subclass_cases")
    call = torch.compile(made(module), backend=counting, dynamic=False) if backend else made(module)
    logger.propagate = False
    logger.addHandler(kept)
    found = [*seen(call, None if wrap is None else wrap(module))]
    logger.removeHandler(kept)
    return [*found, kept.texts], counting.graphs


def graphs_of(
    made: Callable[[ModuleType], Any], wrap: Callable[[ModuleType], Any] | None, backend: str = "eager"
) -> int:
    """How many graphs there are of what is mended, which is compared with eager."""
    found, graphs = observe(made, wrap, MENDED, backend)
    assert found == observe(made, wrap, PLAIN)[0]
    return graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", ["Wrapper", "Told"])
@pytest.mark.parametrize("name", WHOLE)
def test_what_stands_beside_such_a_tensor_is_mended(name: str, kind: str, backend: str) -> None:
    def wrap(module: ModuleType) -> Any:
        return lambda held: held.as_subclass(module.Told) if kind == "Told" else module.Wrapper(held)

    specialised = 2 if name == "beside" and kind == "Wrapper" else 1  # [Value]: a graph for each outcome of the test
    assert graphs_of(lambda module: getattr(module, name), wrap, backend) <= specialised


@pytest.mark.parametrize("name", OF_ITSELF)
def test_what_such_a_tensor_decides_is_as_without_us(name: str) -> None:
    (stock, before), (found, graphs) = (
        observe(lambda module: getattr(module, name), lambda module: module.Wrapper, module, "eager")
        for module in (PLAIN, MENDED)
    )
    assert found == stock
    assert graphs <= before


def test_the_memory_of_a_wrapper_is_that_of_what_it_holds() -> None:
    graphs_of(lambda module: module.written_behind_its_back, lambda module: module.Wrapper)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_weights_and_buffers_of_such_a_class(backend: str) -> None:
    assert graphs_of(lambda module: module.Layer(), None, backend) == 1
