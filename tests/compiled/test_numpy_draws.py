"""Draws from numpy's generator against eager: the same values, and a generator in the same state."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from observing import Counting, import_file, import_mended, on

from graphmend_hook.engine.attempt import refusals

SOURCE = """
import logging
import numpy as np
import torch
from numpy.random import rand

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


def checkpointed(x, training):
    return torch.utils.checkpoint.checkpoint(layer_drop, x, training, use_reentrant=False)
"""
DEFERRED = ("layer_drop", "between_logs", "by_its_name", "draw_of_torch", "guarded")
CASES = (
    *DEFERRED,
    *("looked_at_behind_a_break", "fails", "drawn_by_an_operator", "checkpointed"),
    *("between_bounds_that_change", "out_of_bounds"),
)
DECLINED = {
    "is returned": "number = np.random.uniform()\n    return number",
    "is printed": "number = np.random.uniform()\n    print(number)",
    "is on the right": "number = np.random.uniform()\n    return 0.5 < number",
    "is in a chain": "number = np.random.uniform()\n    return number < 0.5 < 1",
    "is tested for equality": "number = np.random.uniform()\n    return number == 0.5",
    "is augmented": "number = np.random.uniform()\n    number += 1",
    "is read by a function": "number = np.random.uniform()\n    return lambda: number < 0.5",
    "is a global": "global number\n    number = np.random.uniform()",
    "two names": "number = other = np.random.uniform()",
    "an attribute": "x.number = np.random.uniform()",
    "a call among the arguments": "number = np.random.uniform(x.low())",
    "a keyword": "number = np.random.uniform(low=x)",
    "the frame is read": "number = np.random.uniform()\n    return locals()",
}


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
    np.random.seed(3)
    torch.manual_seed(3)
    try:
        value = function(x.clone(), training).tolist()
    except (ValueError, IndexError) as error:
        value = (type(error), str(error))
    return value, np.random.uniform(), torch.rand(()).item()


@pytest.mark.parametrize(("name", "backend"), on(CASES, ("layer_drop", "checkpointed")))
def test_equal_to_eager(name: str, backend: str, modules: tuple[ModuleType, ModuleType]) -> None:
    plain, mended = [getattr(module, name) for module in modules]
    compiled = torch.compile(mended, backend=backend)
    for training in (False, True, False):
        for x in (torch.arange(1.0, 4.0), torch.arange(50.0, 54.0)):
            assert outcome(compiled, x, training) == outcome(plain, x, training)
            assert outcome(mended, x, training) == outcome(plain, x, training)


@pytest.mark.parametrize("name", DEFERRED)
def test_one_graph_where_nobody_looks(name: str, modules: tuple[ModuleType, ModuleType]) -> None:
    plain, mended = [getattr(module, name) for module in modules]
    counting = Counting("eager")
    outcome(torch.compile(mended, backend=counting, fullgraph=True), torch.arange(3.0), False)
    assert counting.graphs == 1
    with pytest.raises((torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError)):
        torch.compile(plain, backend="eager", fullgraph=True)(torch.arange(3.0), False)


def test_one_more_compilation_where_it_is_looked_at(modules: tuple[ModuleType, ModuleType]) -> None:
    """The second trace breaks where the number is drawn, as that of the function as it was written."""
    graphs = []
    for function in (modules[0].by_its_name, modules[1].by_its_name):
        torch._dynamo.reset()
        counting = Counting("eager")
        outcome(torch.compile(function, backend=counting), torch.arange(3.0), True)
        graphs.append(counting.graphs)
    assert graphs[0] == graphs[1]
    assert {code for code, *_ in refusals.seen} == {"GM101-T13"}


@pytest.mark.parametrize("name", ["drawn_by_an_operator", "drawn_by_a_function_in_the_graph"])
def test_operations_of_others_may_draw(name: str, modules: tuple[ModuleType, ModuleType]) -> None:
    torch.compile(getattr(modules[1], name), backend="eager")(torch.arange(3.0), False)
    assert {code for code, *_ in refusals.seen} == {"GM101-T13"}


def test_another_function_under_that_name(
    modules: tuple[ModuleType, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(np.random, "uniform", lambda *_: calls.append(1) or 0.25)
    compiled = torch.compile(modules[1].layer_drop, backend="eager")
    assert outcome(compiled, torch.arange(3.0), True) == outcome(modules[0].layer_drop, torch.arange(3.0), True)
    assert "GM101-T01" in {code for code, *_ in refusals.seen}


@pytest.mark.parametrize("body", DECLINED.values(), ids=DECLINED)
def test_declined(body: str) -> None:
    from graphmend_hook.rewrite import active_rules, rewrite

    source = f"import numpy as np\ndef draws(x):\n    {body}\n"
    sites = rewrite(source.encode(), "draws.py", active_rules(("defer",))).sites
    assert "GM101-R10" in {site.code for site in sites}
