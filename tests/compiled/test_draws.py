"""Draws from the generators of Python and numpy against eager: the same values, and generators in the same state."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from observing import Counting, import_file, import_mended, on

from graphmend_hook.engine.attempt import refusals

SOURCE = """
import logging
import random
import numpy as np
import torch
from numpy.random import rand
from random import uniform as spread

log = logging.getLogger("draw_cases")
SCALE = 2


def layer_drop(x, training):
    for scale in (2.0, 3.0, 4.0):
        dropped = np.random.uniform(0, 1)
        skip = training and (dropped < 0.5)
        if not skip:
            x = x * scale
    return x


def between_logs(x, training):
    log.warning("before")
    size = np.random.normal(SCALE)
    if training and size >= 0:
        x = x + 1
    log.warning("after")
    return x * 2


def by_its_name(x, training):
    number = rand()
    return x + 1 if training and number > 0.5 else x - 1


def draw_of_torch(x, training):
    number = np.random.randint(3, 9)
    x = torch.nn.functional.dropout(x, 0.5, True)
    return x + 1 if training and number <= 5 else x - 1


def looked_at_behind_a_break(x, training):
    number = np.random.uniform()
    x = x + 1
    torch._dynamo.graph_break()
    other = np.random.uniform()
    if training and other > number_or(0.5):
        x = x * 3
    return x * 2 if training and number < 0.5 else x * 5


def number_or(number):
    return number


def fails(x, training):
    number = np.random.uniform()
    x = x[x.long().sum() :][:, None].expand(-1, 2)[torch.tensor([7])]
    other = np.random.uniform()
    return x if training and number < other else x - 1


def guarded(x, training):
    number = np.random.uniform()
    if x.sum() > 100:
        raise ValueError("too much")
    other = np.random.uniform()
    return x if training and (number < 0.5 or other < 0.5) else x - 1


def drawn_by_an_operator(x, training):
    number = np.random.uniform()
    x = torch.ops.draw_cases.noise(x)
    return x if training and number < 0.5 else x - 1


def drawn_by_a_function_in_the_graph(x, training):
    number = np.random.uniform()
    x = noise_in_graph(x)
    return x if training and number < 0.5 else x - 1


@torch.compiler.allow_in_graph
def noise_in_graph(x):
    return x + np.random.uniform()


def between_bounds_that_change(x, training):
    high = x.sum() * 0 + 2
    number = np.random.normal(0, high)
    high.mul_(-1)
    return x + 1 if training and number < 1 else x * 2


def drops_by_python(x, training):
    for scale in (2.0, 3.0, 4.0):
        if random.random() < 0.5:
            continue
        x = x * scale
    return x


def flips(x, training):
    if random.random() < 0.5 and training:
        x = x.flip(-1)
    return x + 1


def mixes(x, training):
    lam = np.random.beta(0.4, 0.4)
    lam = max(lam, 1 - lam)
    return lam * x + (1 - lam) * x.flip(0)


def one_scale_or_the_other(x, training):
    scale = spread(0.5, 1.5)
    if scale < 1.0:
        log.warning("%.6f is small", scale)
        return x * scale
    return x


def several_on_a_line(x, training):
    first, second = random.random(), random.gauss(0, 1)
    return torch.where(x > 2, x * first, x * second) if first < random.random() else x - 1


def whole_numbers(x, training):
    return x + 1 if np.random.randint(3, 9) == 5 else x - 1


def a_guard_between(x, training):
    first = random.random() + np.random.rand()
    if x.sum() > 100:
        raise ValueError("too much")
    return x * first * random.random()


def drawn_in_a_side(x, training):
    if x.sum() > 100:
        x = x * random.random()
    return x


def on_the_right(x, training):
    number = np.random.uniform()
    return x + 1 if 0.5 < number else x * number


class Box:
    low = 0.0


def out_of_bounds(x, training):
    Box.low = 0.0
    try:
        return drawn_out_of_bounds(x, training)
    except OverflowError:
        return x + Box.low


def drawn_out_of_bounds(x, training):
    number = np.random.uniform(0.0, float("inf"))
    Box.low = 1.0
    return x + 1 if training and number < 1 else x * 2


def of_arrays(x, training):
    return x * torch.from_numpy(np.random.rand(len(x))).float()


def of_arrays_of_a_shape(x, training):
    return x + torch.as_tensor(np.random.uniform(-1, 1, size=x.shape), dtype=torch.float32)


def of_arrays_of_a_type(x, training):
    return x + torch.from_numpy(np.random.normal(0, 1, (1,)).astype(np.float32))


def of_names(x, training):
    return x * np.random.uniform(low=0.2, high=0.8)


def of_places(x, training):
    return x[torch.from_numpy(np.random.permutation(3))] + x[np.random.randint(0, 3, (1,))]


def of_a_choice(x, training):
    return x[np.random.choice(3, 2, replace=False)]


def of_truths(x, training):
    return x[:3] * torch.from_numpy(np.random.rand(3) < 0.5)


def of_an_array_that_decides(x, training):
    drawn = np.random.rand(1)
    if drawn < 0.5:
        x = x * 2
    return x + 1


def of_both_in_turn(x, training):
    first, second, third = np.random.rand(), np.random.rand(2), random.random()
    return x * first + torch.from_numpy(second).float().sum() * third - np.random.rand()


def of_an_array_that_is_written_to(x, training):
    drawn = np.random.rand(3)
    drawn[0] = 0
    return x[:3] * torch.from_numpy(drawn).float()


def of_sizes_that_data_decides(x, training):
    return torch.from_numpy(np.random.rand(int(x.min()) + 2)) + torch.from_numpy(np.random.rand(1))


def seeded(x, training):
    np.random.seed(0)
    return x + torch.from_numpy(np.random.rand(1))


def shuffled(x, training):
    first = np.random.rand(3)
    np.random.shuffle(first)
    return x[:3] + torch.from_numpy(first) + torch.from_numpy(np.random.rand(1))


def checkpointed(x, training):
    return torch.utils.checkpoint.checkpoint(layer_drop, x, training, use_reentrant=False)
"""
DROPPING = """
import random
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < 0.5:
                continue
            x = layer(x)
        return x
"""
DRAWN = (
    *("layer_drop", "between_logs", "by_its_name", "draw_of_torch", "guarded", "drops_by_python", "flips", "mixes"),
    *("one_scale_or_the_other", "several_on_a_line", "whole_numbers", "a_guard_between", "on_the_right"),
)
OF_ARRAYS = (
    *("of_arrays", "of_arrays_of_a_shape", "of_arrays_of_a_type", "of_names", "of_places", "of_a_choice", "of_truths"),
    *("of_an_array_that_decides", "of_both_in_turn", "of_an_array_that_is_written_to"),
)
CASES = (
    *DRAWN,
    *OF_ARRAYS,
    "drawn_in_a_side",
    *("looked_at_behind_a_break", "fails", "drawn_by_an_operator", "checkpointed"),
    *("between_bounds_that_change", "out_of_bounds"),
)


@torch.library.custom_op("draw_cases::noise", mutates_args=())
def noise(x: torch.Tensor) -> torch.Tensor:
    return x + np.random.uniform()


@noise.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, ModuleType]:
    path = tmp_path_factory.mktemp("draws") / "draw_cases.py"
    path.write_text(SOURCE, encoding="utf-8")
    return import_file(path, "draw_cases_plain"), import_mended(path, "draw_cases_mended")


def outcome(function: Any, x: torch.Tensor, training: bool) -> tuple[Any, ...]:
    """Value or exception, and what the generators draw next."""
    random.seed(3 + len(x))
    np.random.seed(3)
    torch.manual_seed(3)
    try:
        value = function(x.clone(), training).tolist()
    except (ValueError, IndexError) as error:
        value = (type(error), str(error))
    return value, random.random(), np.random.uniform(), torch.rand(()).item()


@pytest.mark.parametrize(("name", "backend"), on(CASES, ("layer_drop", "checkpointed")))
def test_equal_to_eager(name: str, backend: str, modules: tuple[ModuleType, ModuleType]) -> None:
    plain, mended = [getattr(module, name) for module in modules]
    compiled = torch.compile(mended, backend=backend)
    for training in (False, True, False):
        for x in (torch.arange(1.0, 4.0), torch.arange(50.0, 54.0)):
            assert outcome(compiled, x, training) == outcome(plain, x, training)
            assert outcome(mended, x, training) == outcome(plain, x, training)


@pytest.mark.parametrize("name", DRAWN)
def test_one_graph(name: str, modules: tuple[ModuleType, ModuleType]) -> None:
    plain, mended = [getattr(module, name) for module in modules]
    counting = Counting("eager")
    outcome(torch.compile(mended, backend=counting, fullgraph=True), torch.arange(3.0), False)
    assert counting.graphs == 1
    with pytest.raises((torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError)):
        torch.compile(plain, backend="eager", fullgraph=True)(torch.arange(3.0), False)


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_an_array_is_an_input_of_the_graph(name: str, modules: tuple[ModuleType, ModuleType]) -> None:
    plain, mended = [getattr(module, name) for module in modules]
    counting = Counting("inductor")
    compiled = torch.compile(mended, backend=counting, fullgraph=True)
    for seed in range(4):
        x = torch.arange(3.0) + seed
        assert outcome(compiled, x, False) == outcome(plain, x, False)
    assert (counting.graphs, counting.runs) == (1, 4)


@pytest.mark.parametrize("name", ["seeded", "shuffled", "of_sizes_that_data_decides"])
def test_what_else_numpy_draws_ends_the_graph(name: str, modules: tuple[ModuleType, ModuleType]) -> None:
    plain, mended = [getattr(module, name) for module in modules]
    compiled = torch.compile(mended, backend="eager")
    for step in range(3):
        assert outcome(compiled, torch.arange(3.0) + step, False) == outcome(plain, torch.arange(3.0) + step, False)


def test_torch_draws_all_where_there_may_be_but_one_graph(modules: tuple[ModuleType, ModuleType]) -> None:
    """As in stock: none of it is drawn by numpy."""
    compiled = torch.compile(modules[1].shuffled, backend="eager", fullgraph=True)
    _, _, drawn_next, _ = outcome(compiled, torch.arange(3.0), False)
    np.random.seed(3)
    assert drawn_next == np.random.uniform()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_dropped_layers_get_no_gradient(backend: str, tmp_path: Any) -> None:
    path = tmp_path / "dropping.py"
    path.write_text(DROPPING, encoding="utf-8")
    models = [import_file(path, "dropping_plain").Model(), import_mended(path, "dropping_mended").Model()]
    counting = Counting(backend)
    calls = [models[0], torch.compile(models[1], backend=counting, fullgraph=True)]
    for seed in range(12):
        found = []
        for model, call in zip(models, calls, strict=True):
            random.seed(seed)
            model.zero_grad()
            result = call(torch.ones(2, 4))
            if result.requires_grad:
                result.sum().backward()
            found.append((result.tolist(), [None if p.grad is None else p.grad.tolist() for p in model.parameters()]))
        assert found[0] == found[1], seed
    assert counting.graphs == 1


@pytest.mark.parametrize("name", ["drawn_by_an_operator", "drawn_by_a_function_in_the_graph"])
def test_operations_of_others_may_draw(name: str, modules: tuple[ModuleType, ModuleType]) -> None:
    torch.compile(getattr(modules[1], name), backend="eager")(torch.arange(3.0), False)
    assert {code for code, *_ in refusals.seen} == {"GM104-T10"}


def test_another_function_under_that_name(
    modules: tuple[ModuleType, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(np.random, "uniform", lambda *_: calls.append(1) or 0.25)
    compiled = torch.compile(modules[1].layer_drop, backend="eager")
    assert outcome(compiled, torch.arange(3.0), True) == outcome(modules[0].layer_drop, torch.arange(3.0), True)
    assert "GM104-T10" in {code for code, *_ in refusals.seen}
