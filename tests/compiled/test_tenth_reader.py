"""The programs of three readers: what they give, raise, record and draw is eager's, or what it is without the hook."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from observing import HERE, Kept, import_file, import_mended

PLAIN = import_file(HERE / "tenth_reader_cases.py", "tenth_reader_plain")
MENDED = import_mended(HERE / "tenth_reader_cases.py", "tenth_reader_mended")
CASES = [name for name in vars(PLAIN) if name.startswith("case_")]
Inputs = tuple[Any, ...]


def ones(times: float = 1.0) -> torch.Tensor:
    return torch.ones(3) * times


def trained(*shape: int, times: float = 1.0) -> torch.Tensor:
    return (torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape) * times).requires_grad_()


def placed(make: Callable[[], torch.Tensor]) -> list[Inputs]:
    """A place that the tensor has, and one that it has not."""
    return [(make(), torch.tensor([place])) for place in (1, 9)]


INPUTS: dict[str, Callable[[], list[Inputs]]] = {
    "case_test_of_vmap": lambda: [(torch.ones(3, 3),)],
    "case_test_of_counted": lambda: [(torch.tensor([1.0, 0, 0]),), (torch.tensor([1.0, 2, 0]),)],
    "case_twice_in": lambda: [(ones(), trained(50, times=-0.1))],
    "case_kept": lambda: [(ones(), trained(3)), (ones(-1), trained(3))],
    "case_test_of_chain": lambda: [(ones(),), (ones(-1),)],
    "case_text_of_a_number": lambda: [(ones(), 1), (ones(), -1), (ones(), -2)],
    "case_test_of": lambda: [(ones(),)],
    "case_told_sdpa": lambda: [(torch.rand(1, 2, 17, 24), trained(24, times=0.1))],
    "case_told_matmul": lambda: [(torch.rand(6, 17, 24), trained(24, times=0.1))],
    "case_twice_complex": lambda: [(ones().to(torch.complex64), trained(3))],
    "case_told": lambda: [(ones(), trained(3))],
    "case_twice": lambda: [(ones(), trained(3))],
    "case_written": lambda: [(ones(), trained(3)), (ones(2), trained(3))],
    "case_unused_count": lambda: [(ones(), 2), (ones(), 3)],
    "case_unused_tuple_fails": lambda: [(ones(), torch.eye(2)), (ones(), torch.eye(2) * float("nan"))],
    "case_unused_function_draws": lambda: [(trained(3),)],
    "case_unused_backward_draws": lambda: [(trained(3),)],
    "case_unused_checkpoint_draws": lambda: [(trained(3),)],
    "case_unused_tuple_draw": lambda: [(ones(),)],
    "case_unused_func_grad_draws": lambda: [(ones(),)],
    "case_unused_function_index": lambda: placed(lambda: trained(3)),
    "case_unused_checkpoint_index": lambda: placed(lambda: trained(3)),
    "case_unused": lambda: placed(ones),
}


@pytest.fixture(autouse=True)
def records() -> Iterator[Kept]:
    kept, logger = Kept(), logging.getLogger("tenth_reader")
    logger.addHandler(kept)
    yield kept
    logger.removeHandler(kept)


def seen(module: Any, name: str, compiled: Callable[[Any], Any], records: Kept) -> list[Any]:
    torch._dynamo.reset()
    module.seen.clear()
    records.texts.clear()
    torch.manual_seed(0)
    found: list[Any] = []
    function = compiled(getattr(module, name))
    for given in INPUTS[max((each for each in INPUTS if name.startswith(each)), key=len)]():
        found += of_a_step(function, given)
    return [found, list(records.texts), len(module.seen), torch.rand(1).item()]


def of_a_step(function: Any, given: Inputs) -> list[Any]:
    """What a training step gives and leaves, or raises."""
    try:
        given_back = [*map(shown, _parts(step(function, given)))]
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]
    return [given_back, [shown(part.grad) for part in given[:2] if isinstance(part, torch.Tensor)]]


def step(function: Any, given: Inputs) -> Any:
    result = function(*given)
    trained = [part for part in _parts(result) if part.requires_grad]
    if trained:
        sum(
            (part.abs() * torch.arange(1.0, 1.0 + part.numel()).reshape(part.shape)).sum() for part in trained
        ).backward()
    return result


def _parts(result: Any) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def shown(tensor: torch.Tensor | None) -> Any:
    return None if tensor is None else (tensor.requires_grad, tensor.stride(), tensor.tolist())


@pytest.mark.parametrize("name", CASES)
def test_in_eager(name: str, records: Kept) -> None:
    def same(function: Any) -> Any:
        return function

    assert seen(MENDED, name, same, records) == seen(PLAIN, name, same, records)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str, backend: str, records: Kept) -> None:
    """What the compiled original does not do as eager, the mended one need not do either."""

    def compiled(function: Any) -> Any:
        return torch.compile(function, backend=backend)

    expected = seen(PLAIN, name, lambda function: function, records)
    found = seen(MENDED, name, compiled, records)
    if found != expected:
        assert seen(PLAIN, name, compiled, records) == found, f"eager gives {expected}"


@pytest.mark.parametrize("kind", ["Counted", "Mixed"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_what_is_computed_of_a_buffer_that_is_written_to(kind: str, backend: str) -> None:
    """Its gradient is eager's; compiled as it is written it is not, where no break stands between."""
    gradients = []
    for module, compile in (
        (PLAIN, lambda model: model),
        (MENDED, lambda model: torch.compile(model, backend=backend)),
    ):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, y = getattr(module, kind)(), trained(3)
        called = compile(model)
        for _ in range(2):
            (called(ones(), y) * ones(2)).sum().backward()
        gradients.append((y.grad, model.n))
    torch.testing.assert_close(gradients[1], gradients[0])
