"""Modules with progress bars.  Imported twice: as it is, and mended.

Bars are written to the standard output without times, so that all that they show can be compared.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
from rich.progress import track
from torch import Tensor, nn
from tqdm import tqdm, trange
from tqdm.auto import tqdm as automatic

CASES: dict[str, Callable[[Any, Tensor], Any]] = {}  # in one graph
LEFT: dict[str, Callable[[Any, Tensor], Any]] = {}  # as in stock
Case = Callable[[Any, Tensor], Any]


class Module(nn.Module):
    """Layers for the cases, whose `forward` is the case."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.layer, self.layers = nn.Linear(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.case, self.bar, self.kinds = case, None, []

    def forward(self, x: Tensor) -> Any:
        return self.case(self, x)

    def step(self, x: Tensor, bar: Any) -> Tensor:
        x = self.layer(x).tanh()
        bar.update(1)
        bar.set_postfix({"largest": round(x.max().item(), 2)})
        return x


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def left(function: Case) -> Case:
    LEFT[function.__name__] = function
    return function


def shown(kind: Any, *args: Any, **options: Any) -> Any:
    return kind(*args, file=sys.stdout, mininterval=0, bar_format="{desc}{n} of {total}{postfix}", **options)


class Loud(tqdm):
    """A program's own bar, which does more than show."""

    def update(self, n: float | None = 1) -> bool | None:
        print("moved by", n)
        return super().update(n)


@case
def of_layers(self: Any, x: Tensor) -> Tensor:
    for layer in tqdm(self.layers, file=sys.stdout, mininterval=0, bar_format="{n}/{total}"):
        x = layer(x).tanh()
        print("layer")
    return x


@case
def of_range(self: Any, x: Tensor) -> Tensor:
    for place in shown(trange, 3, desc="steps "):
        x = self.layers[place](x)
    return x


@case
def automatically(self: Any, x: Tensor) -> Tensor:
    for layer in automatic(self.layers, disable=None):
        x = layer(x)
    return x


@case
def switched_off(self: Any, x: Tensor) -> Tensor:
    with shown(tqdm, total=3, disable=True) as bar:
        for layer in self.layers:
            x = layer(x)
            bar.update()
            print(f"{x.mean().item():.3f}")
    return x


@case
def counted(self: Any, x: Tensor) -> Tensor:
    for place, layer in enumerate(shown(tqdm, self.layers)):
        x = layer(x) * (place + 1)
    for layer, place in zip(self.layers, shown(tqdm, range(3)), strict=True):
        x = layer(x) * place
    return torch.stack([layer(x) for layer in shown(tqdm, self.layers)])


@case
def with_numbers_of_data(self: Any, x: Tensor) -> Tensor:
    bar = shown(tqdm, self.layers, desc="begun")
    for layer in bar:
        x = layer(x).tanh()
        bar.set_postfix(norm=x.norm().item(), layers=len(bar))
        bar.set_description(f"mean {x.mean().item():.3f}")
    return x


@case
def given_to_a_method(self: Any, x: Tensor) -> Tensor:
    with shown(tqdm, total=2, leave=False) as bar:
        return self.step(self.step(x, bar), bar)


@case
def nested(self: Any, x: Tensor) -> Tensor:
    for _ in shown(trange, 2, desc="outer "):
        for layer in shown(tqdm, self.layers, desc="inner ", leave=False, position=1):
            x = layer(x)
    return x


@case
def twice_over(self: Any, x: Tensor) -> Tensor:
    bar = shown(tqdm, range(3))
    for place in bar:
        x = self.layers[place](x)
    for place in bar:
        x = self.layers[place](x)
    return x


@case
def of_a_tensor(self: Any, x: Tensor) -> Tensor:
    for time in shown(tqdm, torch.arange(3)):
        x = self.layer(x) * time
    return x


@case
def of_a_generator(self: Any, x: Tensor) -> Tensor:
    for layer in shown(tqdm, (layer for layer in self.layers), total=3):
        x = layer(x)
    return x


@case
def left_early(self: Any, x: Tensor) -> Tensor:
    for place in shown(tqdm, range(3)):
        x = self.layers[place](x)
        if place == 1:
            break
    return x


@case
def ended_by_data(self: Any, x: Tensor) -> tuple[Tensor, int]:
    bar = shown(tqdm, range(12))
    for place in bar:
        x = x * 0.8
        bar.set_description(f"{place}: {x.norm().item():.2f} ")
        if x.norm() < 1.5:
            break
    return x, place


@case
def ended_by_data_and_counted(self: Any, x: Tensor) -> tuple[Tensor, int]:
    first = x.norm()
    for place, layer in enumerate(shown(tqdm, self.layers)):
        x = layer(x) + place
        if x.norm() < first * 0.6:
            break
    return x, place


@case
def where_data_decides(self: Any, x: Tensor) -> Tensor:
    bar = shown(tqdm, total=3)
    if x.sum() > 0:
        bar.update(2)
        print("above")
    else:
        bar.update(1)
    if x.mean() > 0.1:
        for layer in shown(tqdm, self.layers, desc="side "):
            x = layer(x)
    bar.close()
    return self.layer(x)


@case
def raises(self: Any, x: Tensor) -> Tensor:
    for layer in shown(tqdm, self.layers):
        x = layer(x)
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
    return x


@case
def of_rich(self: Any, x: Tensor) -> Tensor:
    for layer in track(self.layers, "layers", disable=True):
        x = layer(x)
    return x


@case
def kept_by_the_module(self: Any, x: Tensor) -> Tensor:
    """Items that the loop adds to as it goes."""
    todo = [0]
    for place in shown(tqdm, todo):
        x = self.layers[place](x)
        if place < 2:
            todo.append(place + 1)
    return x


@left
def asked_for_its_kind(self: Any, x: Tensor) -> tuple[Tensor, bool, bool, str]:
    bar = tqdm(self.layers, disable=True)
    for layer in bar:
        x = layer(x)
    self.kinds.append(type(bar) is tqdm)
    return x, isinstance(bar, tqdm), bar.__class__ is tqdm, type(bar).__name__


@left
def asked_how_far_it_is(self: Any, x: Tensor) -> tuple[Tensor, int]:
    bar = shown(tqdm, self.layers)
    for layer in bar:
        x = layer(x)
    return x, bar.n


@left
def asked_what_it_has(self: Any, x: Tensor) -> Tensor:
    bar = shown(tqdm, self.layers)
    for layer in bar:
        x = layer(x)
        if hasattr(bar, "n"):
            x = x + 1
    return x


@left
def kept(self: Any, x: Tensor) -> Tensor:
    self.bar = tqdm(self.layers, disable=True)
    for layer in self.bar:
        x = layer(x)
    self.kinds.append(type(self.bar).__name__)
    self.bar = None
    return x


@left
def across_a_break(self: Any, x: Tensor) -> Tensor:
    bar = shown(tqdm, range(3))
    bar.set_description("begun")
    x = self.layer(x)
    torch._dynamo.graph_break()
    bar.update(1)
    bar.close()
    return x.relu()


@left
def of_the_program(self: Any, x: Tensor) -> Tensor:
    for place in shown(Loud, range(3)):
        x = self.layers[place](x)
    return x


@left
def given_what_it_does_not_take(self: Any, x: Tensor) -> Tensor:
    for place in tqdm(range(3), nonsense=True, disable=True):
        x = self.layers[place](x)
    return x


@left
def where_an_exception_is_handled(self: Any, x: Tensor) -> Tensor:
    try:
        for layer in shown(tqdm, self.layers):
            x = layer(x)
    except ValueError:
        return x + 1
    return x


def made(name: str) -> Callable[[], Module]:
    return functools.partial(Module, {**CASES, **LEFT}[name])
