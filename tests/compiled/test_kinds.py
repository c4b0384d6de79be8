"""Each kind of break that docs/breaks.md says is mended: a program breaks so in stock, and is one graph with the hook."""

from __future__ import annotations

import logging
import re
import warnings
from typing import Any

import pytest
import torch
from observing import HERE, Counting, both, on

from bench import kinds

plain, MENDED = both("kind_cases")
X = torch.arange(32.0).reshape(8, 4) - 15.5
CASES = [(number, name) for number, mended in kinds.MENDED.items() for name in mended.cases]
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])


class Breaks(logging.Handler):
    """The numbers of the breaks that Dynamo tells of."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.numbers: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.numbers.update(number.upper() for number in re.findall(r"/(gb\d+)\.html", record.getMessage()))


def numbers_of(function: Any) -> set[str]:
    """The numbers of the breaks when the function is compiled."""
    breaks, logger = Breaks(), logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks")
    torch._logging.set_logs(graph_breaks=True)
    logger.addHandler(breaks)
    try:
        torch.compile(function, backend="eager", dynamic=False)(X.clone())
    except Exception:
        pass  # a function of autograd that is given a tensor twice
    finally:
        logger.removeHandler(breaks)
        torch._logging.set_logs()
    return breaks.numbers


@pytest.mark.parametrize(("number", "name"), CASES, ids=[f"{number}-{name}" for number, name in CASES])
def test_it_breaks_so_without_the_hook(number: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = numbers_of(getattr(plain, name))
    learnt = kinds.MENDED[number].up_to
    breaks = not learnt or tuple(map(int, learnt.split("."))) >= VERSION
    assert (number in found) == breaks, found


@pytest.mark.parametrize(("name", "backend"), on(dict.fromkeys(name for _, name in CASES)))
def test_it_is_one_graph_with_the_hook(name: str, backend: str) -> None:
    counting = Counting(backend)
    compiled = torch.compile(getattr(MENDED, name), backend=counting, dynamic=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (X, X + 9):
            expected = getattr(plain, name)(x.clone())
            torch.testing.assert_close(compiled(x.clone()), expected, rtol=1e-6, atol=1e-6)
    assert counting.graphs == 1


def test_every_kind_of_the_registry_is_told_of() -> None:
    told = [*kinds.MENDED, *kinds.left()]
    assert len(told) == len({*told})
    unknown = kinds.registry().keys() - {*told}
    assert not unknown, "kinds of this torch that `bench.kinds` does not know: sort them, and make docs/breaks.md"


def test_the_page_is_that_of_the_table() -> None:
    made = (HERE.parents[1] / "docs" / "breaks.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| \[(GB\d+)\]", made, re.MULTILINE)} == {*kinds.MENDED, *kinds.left()}
