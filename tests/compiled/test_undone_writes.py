"""A graph that writes to buffers, and takes for granted what does not hold: the writes are undone, and eager's are made."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("undone_write_cases")
CALLS = (
    [1.0, 2.0, 3.0, 1.0, 2.0, 0.5],
    [-1.0, -2.0, 3.0, -1.0, -2.0, -0.5],  # one is above zero
    [-1.0, -2.0, -3.0, -1.0, -2.0, -0.5],  # none is
    [-1.0, 2.0, 3.0, 1.0, 2.0, -0.5],
    [3.0, 1.0, 2.0, 2.0, 1.0, 1.5],
)


def rounded(tensor: torch.Tensor) -> Any:
    """What Inductor, too, gives to the same digits."""
    return tensor.detach().double().mul(1e4).round().tolist()


def seen(kind: Any, backend: str, compiled_by: Counting | None) -> list[Any]:
    """What each call gives, and leaves in the module: values, shapes, and how often each has been written to."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module, found = kind(), []
    called = module if compiled_by is None else torch.compile(module, backend=compiled_by)
    for given in CALLS:
        try:
            result: Any = rounded(called(torch.tensor(given)))
        except RuntimeError:  # from Dynamo, where what fails is traced with the sizes of the call
            result = "an error"
        held = [*module.buffers(), *module.parameters()]
        found.append([result, [rounded(each) for each in held]])
        if backend == "eager":  # AOTAutograd counts writes otherwise, without the hook too
            found[-1].append([each._version for each in held])
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", [kind.__name__ for kind in PLAIN.CASES])
def test_what_a_failed_graph_has_written_is_undone(name: str, backend: str) -> None:
    counting = Counting(backend)
    expected = seen(getattr(PLAIN, name), backend, None)
    assert seen(getattr(MENDED, name), backend, counting) == expected
    assert counting.runs <= len(CALLS) + 1  # and in two parts, once what was taken for granted has not held
