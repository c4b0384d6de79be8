"""What is taken for granted of a size that the data decides is asserted of data: AOTAutograd folds what PyTorch asserts."""

from __future__ import annotations

import logging
from types import FunctionType
from typing import Any

import pytest
import torch
from observing import Counting, both
from programs import Programs, quick, rows
from torch.utils._pytree import tree_leaves

from graphmend_hook.engine.attempt import retreats

PLAIN, MENDED = both("asserted_size_cases")
NAMES = [name for name, value in vars(PLAIN).items() if isinstance(value, FunctionType)]
# Four of four, one, two, none.
GIVEN = ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 0.5, 0.0], [1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0])


def outcome(function: Any, numbers: list[float], trained: bool) -> Any:
    x = torch.tensor(numbers, requires_grad=trained)
    try:
        given = function(x, torch.arange(1.0, 5.0))
    except (AssertionError, IndexError, RuntimeError):
        return "raised"
    found = [leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.Tensor)]
    if trained and any(leaf.requires_grad for leaf in found):
        torch.stack([leaf.sum() for leaf in found if leaf.requires_grad]).sum().backward()
    numbers_given = [leaf for leaf in tree_leaves(given) if not isinstance(leaf, torch.Tensor)]
    return [leaf.detach() for leaf in found], numbers_given, x.grad


ONE_GRAPH = ("divides_by_the_size", "moves_pieces", "of_a_number", "of_rows")
DECIDED = ("decides_by_many", "decides_by_none", "decides_by_three", "decides_by_number", "decides_by_either")
# How many of the inputs come first in turn, where Dynamo knows them: to compile takes long.
FIRST = {("eager", False): len(GIVEN), ("eager", True): 1, ("aot_eager", True): 2, ("inductor", True): 1}


@pytest.mark.parametrize(("backend", "trained"), FIRST)
@pytest.mark.parametrize("name", quick(NAMES, (*ONE_GRAPH, *DECIDED)))
def test_equal_to_eager(name: str, backend: str, trained: bool, caplog: pytest.LogCaptureFixture) -> None:
    """H: a size of 1 is spread, what was computed of the size is that of another call, or the first call fails already."""
    for first in range(FIRST[backend, trained]):
        torch._dynamo.reset()
        caplog.clear()
        compiled = torch.compile(getattr(MENDED, name), backend=Counting(backend))
        for call, numbers in enumerate(GIVEN[first:] + GIVEN[:first]):
            expected = outcome(getattr(PLAIN, name), numbers, trained)
            found = outcome(compiled, numbers, trained)
            if "raised" in (expected, found):
                assert found == expected, numbers
            else:
                torch.testing.assert_close(found, expected)
            assert call or "GM009" not in caplog.text, "a graph fails in the very call for which it was compiled"


@pytest.mark.parametrize("name", [*ONE_GRAPH, *DECIDED])
def test_one_graph(name: str) -> None:
    if name == "moves_pieces" and torch.__version__ < "2.13":
        pytest.skip("this torch does not capture where a slice begins")
    torch._dynamo.utils.counters.clear()
    counting = Counting("aot_eager")
    compiled = torch.compile(getattr(MENDED, name), backend=counting)
    torch.testing.assert_close(outcome(compiled, GIVEN[0], False), outcome(getattr(PLAIN, name), GIVEN[0], False))
    assert counting.graphs == 1
    assert torch._dynamo.utils.counters["frames"] == {"total": 1, "ok": 1}  # none was given up


def compiled_for_all(name: str, backend: str, given: tuple[list[float], ...]) -> bool:
    """Does one graph serve all calls?  A call in which a graph fails ends none."""
    ended = []

    def compile_graph(graph: Any, inputs: Any) -> Any:
        compiled = torch._dynamo.lookup_backend(backend)(graph, inputs)

        def run(*given: Any) -> Any:
            found = compiled(*given)
            ended.append(graph)
            return found

        return run

    compiled = torch.compile(getattr(MENDED, name), backend=compile_graph, fullgraph=True)
    for numbers in given:
        found = outcome(compiled, numbers, False)
        torch.testing.assert_close(found, outcome(getattr(PLAIN, name), numbers, False))
    return [graph is ended[0] for graph in ended] == [True] * len(given)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_of_a_number_on_which_nothing_decides_nothing_is_asserted(backend: str) -> None:
    given = ([1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0])  # one, none and four below 1.5
    assert compiled_for_all("decides_on_one_of_two", backend, given)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_where_a_piece_begins_may_be_zero(backend: str) -> None:
    """Up to torch 2.13, Inductor has to know that it is not negative: that is less than to be above one."""
    assert compiled_for_all("moves_pieces_from_the_start", backend, GIVEN)


def test_what_a_backend_fails_on_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large graph is not tried in other ways, nor is what was captured in it where it is compiled by itself."""
    monkeypatch.setattr(retreats, "_LARGE", 0)
    failed = []

    def compile_graph(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        if any("item" in str(node.target) for node in graph.graph.nodes):
            failed.append(graph)
            raise RuntimeError("no such numbers here")
        return graph

    compiled = torch.compile(MENDED.calls_what_moves_pieces, backend=compile_graph)
    for numbers in GIVEN:
        torch.testing.assert_close(
            outcome(compiled, numbers, False), outcome(PLAIN.calls_what_moves_pieces, numbers, False)
        )
    assert len(failed) == 1


FEW, MANY = ([1.0, 0.0, 0.5, 0.0], [0.0, 2.0, 0.0, 0.0]), ([0.0, 0.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("given", [(*FEW, *MANY), (*MANY, *FEW)])
def test_the_second_example_is_one_that_failed(given: Any) -> None:
    """The first is that of the first call.  It fails in the third, which runs as it was written; the fourth compiles."""
    counting = Counting("eager")
    compiled = torch.compile(MENDED.decides_by_position, backend=counting)
    graphs = []
    for numbers in given:
        assert outcome(compiled, numbers, False) == outcome(PLAIN.decides_by_position, numbers, False)
        graphs.append(counting.graphs)
    assert graphs == [1, 1, 1, 2]


def test_examples_are_no_affair_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    before = list(logger.filters)
    with caplog.at_level(logging.WARNING):
        torch.compile(MENDED.decides_by_many, backend="eager")(torch.ones(4), torch.ones(4))
    assert not [record for record in caplog.records if "propagate_real_tensors" in record.getMessage()]
    assert logger.filters == before


def test_without_dynamos_own_generators() -> None:
    """What is traced of ours needs none: a program that sets this, and has none, compiles as it did."""
    of_sizes = Programs("data_size_cases")
    with torch._dynamo.config.patch(enable_faithful_generator_behavior=False):
        found = torch.compile(of_sizes.mended.of_selected(of_sizes.mended.halves_and_squares), backend="eager")(rows(2))
    assert torch.equal(found, of_sizes.plain.of_selected(of_sizes.plain.halves_and_squares)(rows(2)))
