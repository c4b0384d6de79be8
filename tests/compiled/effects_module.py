"""A small model with effects, mended by the tests of the epilogue."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable

import torch
from torch.utils.checkpoint import checkpoint

logger = logging.getLogger("effects_module")


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("block of %s", tuple(x.shape))
        return torch.sin(self.linear(x)) * x


class Model(torch.nn.Module):
    def __init__(self, checkpointing: bool = False, reentrant: bool = False) -> None:
        super().__init__()
        self.checkpointing, self.reentrant = checkpointing, reentrant
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            if self.checkpointing:
                x = checkpoint(block, x, use_reentrant=self.reentrant)
            else:
                x = block(x)
        return x


def tagged(x: torch.Tensor, tag: int) -> torch.Tensor:
    logger.warning("tag %d of %s", tag, x.sum())
    return x + 1


def look_up(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    logger.warning("before")
    print("sum", x.sum())
    y = x[index]
    logger.warning("after")
    return y


def count_and_look_up(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    x[0] += 1
    return look_up(x, index)


def draw_and_look_up(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    drawn = torch.rand(3)
    print("drawn", drawn)
    y = look_up(x + drawn, index)
    print("drawn", torch.rand(3))
    return y


def make_closure() -> Callable[..., torch.Tensor]:
    calls = 0

    def look_up_in_a_closure(x: torch.Tensor, *index: torch.Tensor, scale: float = 2.0, **rest: float) -> torch.Tensor:
        nonlocal calls
        calls += 1
        logger.warning("call %s %s", calls, scale)
        return [x[at] * scale for at in index][0]

    return look_up_in_a_closure


look_up_in_a_closure = make_closure()


def normed_and_looked_up(x: torch.Tensor, state: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.batch_norm(x, state[0], state[1], training=True)
    logger.warning("normed")
    return y[index]


def renormed_and_looked_up(x: torch.Tensor, state: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    y = torch.nn.functional.embedding(x.long(), state, max_norm=1.0)
    logger.warning("embedded")
    return y[index]


def warn(x: torch.Tensor) -> torch.Tensor:
    x = x * 2
    warnings.warn("careful")
    return x + 1


def sized(x: torch.Tensor) -> torch.Tensor:
    logger.warning(f"{x.shape[0]} rows, {x.shape}")
    return x * 2


def say(x: torch.Tensor) -> torch.Tensor:
    print("said", file=sys.stdout)
    return x + 1


def shout(x: torch.Tensor) -> torch.Tensor:
    print(x)
    return x + 1


def named(x: torch.Tensor, name: str) -> torch.Tensor:
    x = x * 2
    logger.warning("processing %s, %s", name, f"{name}!")
    return x + 1


class Stateful(torch.nn.Module):
    """Counts its calls, and logs before and after it does."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0.0  # a float, which Dynamo does not guard by value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.warning("before")
        self.calls += 1
        logger.warning("after")
        return x + 1


class CountsFirst(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        logger.warning("after")
        return x + 1


def nested_checkpoints(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: checkpoint(report_sign, y, use_reentrant=False), x, use_reentrant=False)


def report_sign(x: torch.Tensor) -> torch.Tensor:
    print("positive", (x > 0).sum())
    return x.sin()


def announced(x: torch.Tensor, name: str) -> torch.Tensor:
    x = x * 2
    print("processing", name)
    return x + 1


def multiplied(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = x * 2
    logger.info("multiplying")
    return x @ y


def collected(x: torch.Tensor, found: list[int]) -> None:
    x = x.sin()
    logger.info("collecting")
    for index in range(2):
        if x[index] > 0:
            found.append(index)
            found.append(-index)


def _hushed(x: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("hidden", stacklevel=1)
    return x + 1


def hushed(x: torch.Tensor) -> torch.Tensor:
    return _hushed(x) * 2


def sized_and_looked_up(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    x += 1
    y = torch.cat([x, x])
    logger.warning("shape %s", y.shape)
    return y[index]


def guarded_by_size(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if (index < 0).any():
        raise ValueError("negative", x.shape[0], x.shape[0] * 2)
    return x[index]


def drawn(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if torch.rand(1) < 0.5:
        raise ValueError("unlucky")
    return x[index]


class Remembering(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[int, int] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        print("so far", self.shapes)
        return x + 1


def guarded_look_up(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return torch.index_select(x, 0, index) + 1


def selected(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    rows = x[x > 1]
    return rows + weight


CALLS: list[int] = []


def selected_then_fails(x: torch.Tensor) -> torch.Tensor:
    rows = x[x > 1]
    torch._dynamo.graph_break()
    CALLS.append(len(rows))
    raise ValueError("after the break")


def announced_and_written(x: torch.Tensor, shown: torch.Tensor, name: object) -> torch.Tensor:
    print(name)
    shown += 1
    return x + shown


def look_up_positive(x, y):
    found = x[x > 0.1] + y
    return torch.sin(found * found)


def branch(x, y):
    if x.sum() > 3:
        z = torch.exp(x * y) * torch.sin(x)
    else:
        z = x * y
    return z.cos()
