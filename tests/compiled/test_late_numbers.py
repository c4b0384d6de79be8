"""Numbers that are only kept, shown or given back are read behind the graph; what needs one where it stands breaks."""

from __future__ import annotations

import contextlib
import io
import logging
from collections import deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, both
from programs import Thing
from torch.utils._pytree import tree_map

from graphmend_hook.engine.numbers.late_numbers import kind_of_variable

PLAIN, MENDED = both("late_number_cases")
NAMES = [name for name, value in vars(PLAIN).items() if getattr(value, "__module__", "") == PLAIN.__name__]
NAMES = [
    name for name in NAMES if name not in ("Average", "averages", "_averaged", "begins_with_the_first")
]  # of a meter of their own
BREAKING = {function.__name__ for function in PLAIN.BREAKING}
CALLS = 12
DRAWING = ("reads_a_draw_that_nothing_uses",)  # numbers that Inductor draws are its own


def cases() -> Iterator[Any]:
    for name in NAMES:
        for backend in ("eager", "aot_eager", *["inductor"] * (name not in DRAWING)):
            yield pytest.param(name, backend, id=f"{name}-{backend}")


def readable(value: Any) -> Any:
    """What can be told of it: the dtype and the numbers of a tensor, and the type of a number."""
    return tree_map(lambda leaf: (leaf.dtype, leaf.tolist()) if isinstance(leaf, torch.Tensor) else repr(leaf), value)


def seen(module: ModuleType, name: str, backend: Counting | None, fullgraph: bool = False) -> list[Any]:
    """What each of the calls gives, leaves, shows and draws, with numbers that change from call to call."""
    torch._dynamo.reset()
    meter = Thing(total=0.0, best=1e9, history=[], seen={}, last=None, again=None)
    meter.recent, meter.lists = deque(maxlen=3), {"a": [], "b": []}
    function, found, records = getattr(module, name), [], []
    called = function if backend is None else torch.compile(function, backend=backend, fullgraph=fullgraph)
    handler = logging.Handler()
    handler.emit = lambda record: records.append((record.getMessage(), record.funcName, record.lineno))  # type: ignore[method-assign]
    logging.getLogger(module.__name__).addHandler(handler)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for call in range(CALLS):
            x = torch.arange(-2.0, 4.0) * (call % 4) + call
            result = called(meter, x)
            found.append([readable(each) for each in (result, vars(meter), x, torch.get_rng_state().sum())])
    logging.getLogger(module.__name__).removeHandler(handler)
    return [*found, records, printed.getvalue()]


@pytest.mark.parametrize(("name", "backend"), list(cases()))
def test_numbers_are_those_of_eager(name: str, backend: str) -> None:
    counting, original = Counting(backend), Counting("eager")
    expected = seen(PLAIN, name, None)
    assert seen(MENDED, name, None) == expected
    assert seen(MENDED, name, counting) == expected
    if name in BREAKING:
        seen(PLAIN, name, original)
        assert counting.graphs <= original.graphs or backend != "eager"
    else:
        assert counting.graphs == 1
        assert counting.runs == CALLS


def test_one_graph_is_what_dynamo_captures_by_itself() -> None:
    expected = seen(PLAIN, "gives_numbers", None)
    assert seen(MENDED, "gives_numbers", Counting("eager"), fullgraph=True) == expected


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_number_is_divided_by_a_count(backend: str) -> None:
    counting, found = Counting(backend), []
    for module, compiled in ((PLAIN, False), (MENDED, True)):
        torch._dynamo.reset()
        meter = module.Average()
        function = torch.compile(module.averages, backend=counting) if compiled else module.averages
        seen = [(function(meter, torch.arange(4.0) * call), {**vars(meter)}) for call in range(CALLS)]
        found.append(readable(seen))
    assert found[0] == found[1]
    assert counting.graphs == 1
    assert counting.runs == CALLS


def test_the_type_of_a_number_is_that_of_the_result() -> None:
    kind = kind_of_variable()
    assert kind(None, [], float, frozenset()).python_type() is float


def test_float_of_what_is_trained_warns_as_torch_does() -> None:
    """Of the first in a process; here of each."""
    torch._dynamo.reset()
    torch.set_warn_always(True)
    try:
        for function in (PLAIN.keeps_a_float, torch.compile(MENDED.keeps_a_float, backend="eager")):
            with pytest.warns(UserWarning, match="requires_grad=True to a scalar"):
                function(Thing(last=None), torch.ones(3, requires_grad=True))
    finally:
        torch.set_warn_always(False)


def seen_of_a_first_loss(module: ModuleType, backend: Counting | None) -> list[Any]:
    meter = Thing(total=None, steps=0)
    function = module.begins_with_the_first
    called = function if backend is None else torch.compile(function, backend=backend)
    return [readable((called(meter, torch.arange(3.0) + call), vars(meter))) for call in range(CALLS)]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_an_average_that_begins_with_the_first_loss_is_compiled_twice(backend: str) -> None:
    counting = Counting(backend)
    assert seen_of_a_first_loss(MENDED, counting) == seen_of_a_first_loss(PLAIN, None)
    assert (counting.graphs, counting.runs) == (2, CALLS)


def test_the_graph_ends_where_a_number_is_asked_for() -> None:
    """Not where each of them is read: stock ends one at the first, another at the second."""
    counting, original = Counting("eager"), Counting("eager")
    expected = seen(PLAIN, "ends_the_graph_where_it_is_asked_for", None)
    assert seen(MENDED, "ends_the_graph_where_it_is_asked_for", counting) == expected
    seen(PLAIN, "ends_the_graph_where_it_is_asked_for", original)
    assert original.runs == 3 * CALLS
    assert counting.runs == CALLS
