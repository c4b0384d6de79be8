"""Frames that stock leaves to eager, for a break in a loop, a `try` or a `with`: compiled, they read what eager reads."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from left_to_eager_kinds import KINDS, LOOP, TRY, WITH, Kind
from observing import Counting, import_file, import_mended
from programs import quick

# One for each way in which a read is seen to.
SOME = [
    "key missing",
    "attribute missing",
    "own __eq__ in get",
    "is over a list",
    "len of vars",
    "random.Random of a module",
]


def values(path: Path, kind: Kind, load: Callable[[Path, str], Any], wrap: Callable[[Any], Any]) -> list[Any]:
    """What the calls of the program give, or raise, with the changes between them."""
    random.seed(0)
    module = load(path, f"left_{path.stem}")
    call, found = wrap(module.f), []
    for change in ("", *kind.changes):
        exec(change, vars(module))
        try:
            found.append(call(torch.tensor([1.0, 2.0]), module.o).tolist())
        except Exception as error:
            found.append(type(error).__name__)
    return found


def compare(kind: Kind, path: Path, around: str) -> Counting:
    """The program is as in eager; gives what counts its graphs."""
    path.write_text(kind.program(around))
    expected = values(path, kind, import_file, lambda function: function)
    counting = Counting("eager")
    assert values(path, kind, import_mended, lambda function: torch.compile(function, backend=counting)) == expected
    return counting


@pytest.mark.parametrize("name", quick(KINDS, SOME))
def test_reads_what_eager_reads(name: str, tmp_path: Path) -> None:
    compare(KINDS[name], tmp_path / "program.py", LOOP)


@pytest.mark.parametrize("around", [TRY, WITH], ids=["try", "with"])
@pytest.mark.parametrize("name", SOME)
def test_in_a_try_and_in_a_with(name: str, around: str, tmp_path: Path) -> None:
    compare(KINDS[name], tmp_path / "program.py", around)


@pytest.mark.parametrize(
    "name", ["is", "len of vars", "getattr with a default of a function", "object as a key", "environment"]
)
def test_what_a_guard_can_tell_is_compiled(name: str, tmp_path: Path) -> None:
    assert compare(KINDS[name], tmp_path / "program.py", LOOP).graphs >= 2


LAYER = """
class Layer(nn.Module):
    def forward(self, x):
        try:
            x = x * self.scale
        except AttributeError:
            pass
        return x + 1

o = Layer()
"""


def test_what_stock_compiles_by_itself_is_left_to_it(tmp_path: Path) -> None:
    """A layer that is called in the loop has the guards that Dynamo gives it, and the loop stays one graph."""
    kind = Kind(LAYER, "    x = o(x)\n", ("", ""))
    assert compare(kind, tmp_path / "program.py", LOOP).graphs == 1


def test_a_frame_with_no_loop_is_as_in_stock(tmp_path: Path) -> None:
    branch = "if x.sum() > 100:\n    x = x + 1\n"
    kind = Kind("o = {}", "try:\n    x = x * o['w']\nexcept KeyError:\n    pass\n", ("",))
    counting = compare(kind, tmp_path / "program.py", branch)
    assert counting.graphs == 1


def test_a_read_before_the_loop(tmp_path: Path) -> None:
    kind = Kind("o = {}", LOOP, ("o['w'] = 3.0", "del o['w']"))
    compare(kind, tmp_path / "program.py", "try:\n    x = x * o['w']\nexcept KeyError:\n    pass\n")


INNER = """
def inner(x, o):
    for _ in range(1):
        if x.sum() > 100:
            x = x + 1
        try:
            x = x * o['w']
        except KeyError:
            pass
    return x

o = {}
"""


def test_a_frame_that_another_one_calls(tmp_path: Path) -> None:
    """Stock breaks at the call, and leaves what is called to eager."""
    kind = Kind(INNER, "x = inner(x + 1, o) + 1\n", ("o['w'] = 3.0", "del o['w']"))
    compare(kind, tmp_path / "program.py", "x = x * 1\n")
