"""The runner of programs: functions with the inputs of their calls (`steps`), and those that compile their parts (`case_`).

All that can be told of one is compared: what it gives or raises, gradients, records, what it notes, random numbers.  The
rest of the file is what the files of programs have in common.
"""

from __future__ import annotations

import copy
import inspect
import logging
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from observing import Counting, Kept, both

Compile = Callable[[Any], Any]
Inputs = tuple[Any, ...]
TAKEN = (-1.0, 1.0, 2.0)
BACKENDS = ["eager", "aot_eager", "inductor"]


def of(value: float) -> torch.Tensor:
    return torch.ones(3) * value


def rows(count: int) -> torch.Tensor:
    x = -torch.ones(6, 3)
    x[:count] = torch.arange(1.0, count * 3 + 1).reshape(count, 3)
    return x


def trained(*shape: int, times: float = 1.0) -> torch.Tensor:
    return (torch.arange(1.0, 1.0 + torch.Size(shape).numel()).reshape(shape) * times).requires_grad_()


class Thing:
    """Any object: what it is given, it has."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


def checkpointed(function: Any, *operands: Any) -> Any:
    return torch.utils.checkpoint.checkpoint(function, *operands, use_reentrant=False)


def of_each(compile: Compile, functions: Sequence[Any], values: Sequence[float] = TAKEN) -> list[Any]:
    """What each of the functions gives for each of the values, or raises."""
    found: list[Any] = []
    for function in functions:
        compiled = compile(function)
        for value in values:
            try:
                found.append(compiled(of(value)))
            except Exception as error:  # noqa: PERF203
                found.append([type(error).__name__, str(error)])
    return found


def quick(names: Iterable[str], some: Collection[str]) -> list[Any]:
    """The cases, of which `nox -s quick` runs some."""
    return [pytest.param(name, marks=() if name in some else pytest.mark.slow) for name in names]


def steps(calls: Sequence[Inputs], one_graph: bool = False) -> Callable[[Any], Any]:
    """Makes a program of a function: a training step with each of the inputs; and is it one graph, equal to eager?"""

    def decorate(function: Any) -> Any:
        function.calls, function.one_graph = calls, one_graph
        return function

    return decorate


class Programs:
    """The programs of a file, as they are and mended."""

    def __init__(self, stem: str) -> None:
        self.stem = stem
        self.plain, self.mended = both(stem)
        self.names = [name for name, value in vars(self.plain).items() if _is_program(name, value)]

    def pair(self, name: str) -> tuple[Any, Any]:
        """The program as it is, and mended; of a class an object, of a module one with the same parameters."""
        plain, mended = getattr(self.plain, name), getattr(self.mended, name)
        if isinstance(plain, type):
            torch.manual_seed(0)
            plain, mended = plain(), mended()
        if isinstance(plain, torch.nn.Module):
            mended.load_state_dict(plain.state_dict())
            plain.eval(), mended.eval()
        return plain, mended

    def breaks(self, name: str, *inputs: Any) -> bool:
        """Is the program no single graph as it is?"""
        counting, counters = Counting("eager"), torch._dynamo.utils.counters
        counters.clear()
        with torch.no_grad():
            outcome(torch.compile(self.pair(name)[0], backend=counting, dynamic=False), *inputs)
        return counting.graphs != 1 or bool(counters["graph_break"])

    def check(self, name: str, backend: str) -> None:
        """As in eager, uncompiled too; what the compiled original does not do as eager, the mended one need not do either."""
        counting, one_graph = Counting(backend), getattr(getattr(self.plain, name), "one_graph", False)
        expected, found = self.seen(self.plain, name), self.seen(self.mended, name, counting)
        assert self.seen(self.mended, name) == expected
        if found != expected:
            assert not one_graph
            assert self.seen(self.plain, name, Counting(backend)) == found, f"eager gives {expected}"
        assert not one_graph or counting.graphs == 1

    def seen(self, module: ModuleType, name: str, backend: Counting | None = None) -> list[Any]:
        """All that can be told of a program; without a backend, of eager."""
        kept, logger, precision = Kept(), logging.getLogger(self.stem), torch.get_float32_matmul_precision()
        noted: list[Any] = getattr(module, "NOTED", [])
        torch._dynamo.reset()
        noted.clear()
        torch.manual_seed(0)
        random.seed(0)
        logger.addHandler(kept)
        try:
            program = getattr(module, name)
            options = {"backend": backend, "fullgraph": getattr(program, "one_graph", False)}
            given = run(program, lambda call: torch.compile(call, **options) if backend else call)
            return [shown(given), kept.texts, len(noted), torch.rand(()).item(), random.random()]
        finally:
            logger.removeHandler(kept)
            torch.set_grad_enabled(True)
            torch.set_float32_matmul_precision(precision)


class Compiled:
    """A program, compiled; each call is compared with the program as it is, in eager, on inputs of its own."""

    def __init__(self, file: Programs, name: str, backend: str = "eager", grad: bool = False, **options: Any) -> None:
        self.file, self.grad, self.calls = file, grad, 0
        self.plain, self.mended = file.pair(name)
        self.counting = Counting(backend)
        self.call = torch.compile(self.mended, backend=self.counting, **{"dynamic": False, **options})

    def __call__(self, *inputs: Any) -> int:
        """The number of graphs so far."""
        own = copy.deepcopy(inputs)
        expected, found = self._seen(self.file.plain, self.plain, inputs), self._seen(self.file.mended, self.call, own)
        self.calls += 1
        assert_same(found, expected)
        assert_same(own, inputs)
        return self.counting.graphs

    def _seen(self, module: ModuleType, call: Any, inputs: Inputs) -> Any:
        """What a call gives or raises, and what it notes."""
        noted: list[Any] = getattr(module, "NOTED", [])
        noted.clear()
        torch.manual_seed(self.calls)
        with torch.set_grad_enabled(self.grad):
            return [outcome(call, *inputs), [*noted]]


def outcome(call: Any, *inputs: Any) -> Any:
    """What a call gives, or the type and the first line of what it raises."""
    try:
        return call(*inputs)
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[:1]


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), (found, expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, dict):
        assert_same(list(found.items()), list(expected.items()))
    else:
        assert found == expected


def _is_program(name: str, value: Any) -> bool:
    return name.startswith("case_") or (inspect.isfunction(value) and hasattr(value, "calls"))


def run(program: Any, compile: Compile) -> Any:
    if not hasattr(program, "calls"):
        return program(compile)
    call, found = compile(program), []
    for inputs in program.calls:
        copies = [_copied(part) for part in inputs]
        try:
            given = step(call, copies)
        except Exception as error:
            found.append([type(error).__name__, str(error).splitlines()[0]])
        else:
            found.append([given, [part.grad for part in copies if isinstance(part, torch.Tensor)]])
    return found


def step(call: Any, inputs: Sequence[Any]) -> Any:
    """What a training step gives; the weights tell the elements of a gradient apart."""
    given = call(*inputs)
    parts = [part for part in torch.utils._pytree.tree_leaves(given) if isinstance(part, torch.Tensor)]
    parts = [part for part in parts if part.requires_grad]
    if parts:
        weights = [torch.arange(1.0, 1.0 + part.numel()).reshape(part.shape) for part in parts]
        sum((part.abs() * weight).sum() for part, weight in zip(parts, weights, strict=True)).backward()
    return given


def shown(value: Any) -> Any:
    """A value that can be compared: of tensors the type, the strides and the numbers."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.requires_grad, value.stride(), value.tolist()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    return type(value).__name__, value


def _copied(value: Any) -> Any:
    return value.clone().detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
