"""No CUDA graph has a size that the data decides, and all else of the graph is recorded."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
import torch
from observing import HERE, import_mended
from partitions import partitions

from graphmend_hook.engine.graph_end import cuda_graphs

MENDED = import_mended(HERE / "cuda_graph_cases.py", "cuda_graph_cases_mended")
X = torch.tensor([[1.0, 2.0], [-1.0, 3.0], [4.0, -2.0], [5.0, 6.0], [-7.0, 1.0]])
Y = torch.ones(7, 3)
needs_a_device = pytest.mark.skipif(
    not torch.backends.cuda.is_built(), reason="this build of torch knows nothing of a device"
)


@needs_a_device
@pytest.mark.parametrize("name", ["of_a_list", "of_rows", "of_rows_that_are_summed_up", "of_experts"])
def test_a_size_that_the_data_decides_is_not_recorded(name: str) -> None:
    parts = partitions(getattr(MENDED, name), X, Y)
    assert any(is_recorded for _, is_recorded, _ in parts)
    assert not any(is_recorded and has_such_sizes for _, is_recorded, has_such_sizes in parts)


@needs_a_device
def test_what_stands_before_and_behind_is_recorded() -> None:
    """That is two parts, and what counts the rows, and takes them, is one."""
    parts = partitions(MENDED.of_rows_between, X, Y)
    assert [is_recorded for kernels, is_recorded, _ in parts if kernels > 2] == [True, True]


@needs_a_device
def test_without_captured_sizes_all_is_recorded() -> None:
    assert [is_recorded for _, is_recorded, _ in partitions(MENDED.of_no_such_size, X, Y)] == [True]


@needs_a_device
def test_sizes_of_others_are_recorded_as_before() -> None:
    """A graph in which this package has captured nothing is parted as Inductor does it."""
    partitions(MENDED.of_rows, X, Y)  # now its scheduler has been told
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        parts = partitions(lambda x, y: (x[x[:, 0] > 0] + 1).relu(), X, Y)
    assert any(is_recorded and has_such_sizes for _, is_recorded, has_such_sizes in parts)


@pytest.mark.parametrize("name", ["of_a_list", "of_rows"])
def test_on_the_cpu_nothing_is_told_to_inductor(name: str) -> None:
    scheduler = mock.Mock(side_effect=AssertionError)
    with mock.patch.object(cuda_graphs, "_teach", scheduler):
        before = len(cuda_graphs._captured)
        torch.compile(getattr(MENDED, name), backend="eager", fullgraph=True)(X, Y)
    assert len(cuda_graphs._captured) == before


@pytest.mark.slow
def test_its_backward_pass_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backward pass has the symbols of its forward pass, and is told apart by them."""
    from torch._inductor.graph import GraphLowering

    seen: list[tuple[bool, bool]] = []
    codegen = GraphLowering.codegen

    def look(graph: Any) -> Any:
        seen.append((graph.is_backward, graph.sizevars.shape_env in cuda_graphs._captured))
        return codegen(graph)

    def keep_out(compilation: Any, _module: Any, compiler: Any) -> Any:
        cuda_graphs._captured[compilation.output.shape_env] = True
        return compiler

    monkeypatch.setattr(cuda_graphs, "keep_out", keep_out)
    monkeypatch.setattr(GraphLowering, "codegen", look)
    with torch._inductor.config.patch(force_disable_caches=True):
        weights = torch.ones(2, 3, requires_grad=True)
        torch.compile(MENDED.of_experts)(X, weights).sum().backward()
    assert seen == [(False, True), (True, True)]


def test_an_unknown_size_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """If what Inductor schedules cannot be looked at, it is as if the data decided."""
    monkeypatch.setattr(cuda_graphs, "_depends_on_captured", mock.Mock(side_effect=KeyError))
    reported = mock.Mock()
    monkeypatch.setattr(cuda_graphs.defects, "report", reported)
    assert cuda_graphs._why_not(object())
    assert reported.called
