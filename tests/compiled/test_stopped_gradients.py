"""Where gates stand in a graph; that gradients are eager's is shown by `branch_gradient_cases`."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from functorch.compile import nop
from observing import both
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch.fx.passes.split_module import split_module
from torch.nn.parallel import DistributedDataParallel

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.graph_end.stopped_gradients import gate, tell

PLAIN, MENDED = both("branch_gradient_cases")


@pytest.mark.parametrize(
    ("name", "gates"),
    [
        ("h1_an_exponential_before_the_branch", 1),
        ("h1_two_branches_use_it", 2),
        ("h1_it_is_used_behind_the_branch_too", 0),
        ("h1_both_sides_use_it", 0),
    ],
)
@pytest.mark.parametrize("is_trained", [True, False])
def test_an_operation_has_a_gate_if_sides_alone_use_it(name: str, gates: int, is_trained: bool) -> None:
    found: list[torch.fx.Node] = []

    def backend(module: torch.fx.GraphModule, _inputs: Any) -> Any:
        found.extend(node for node in module.graph.nodes if node.target in (gate, tell))
        return module.forward

    compiled = torch.compile(getattr(MENDED, name), backend=backend, fullgraph=True)
    compiled(torch.tensor([1.0, 2.0], requires_grad=is_trained))
    assert sum(node.target is gate for node in found) == (gates if is_trained else 0)
    assert sum(node.target is tell for node in found) == (gates if is_trained else 0)


def _gradient(function: Any, x: torch.Tensor) -> torch.Tensor:
    given = x.clone().requires_grad_()
    function(given).sum().backward()
    assert given.grad is not None
    return given.grad


@pytest.mark.slow
def test_what_inductor_makes_of_a_graph_with_gates_is_kept_on_disk() -> None:
    with fresh_cache():
        for made in ("autograd_cache_miss", "autograd_cache_hit"):
            torch._dynamo.reset()
            counters.clear()
            compiled = torch.compile(MENDED.h1_two_branches_use_it, backend="inductor", fullgraph=True)
            found = _gradient(compiled, torch.tensor([1.0, 100.0]))
            torch.testing.assert_close(found, _gradient(MENDED.h1_two_branches_use_it, torch.tensor([1.0, 100.0])))
            assert counters["aot_autograd"][made] == 1, dict(counters["aot_autograd"])


def _in_two_parts(module: torch.fx.GraphModule, _inputs: Any) -> Any:
    """Compiles what stands before the branch by itself, as DDP's optimizer and vLLM do."""
    branch = next((node for node in module.graph.nodes if node.target is torch.where), None)
    first = {node for node in module.graph.nodes if branch is not None and node < branch}
    parts = split_module(module, module, lambda node: int(node not in first), tuple_return=True)
    compile_part = aot_autograd(fw_compiler=nop)
    for name, part in [*parts.named_children()]:
        given = [node.meta["example_value"] for node in part.graph.nodes if node.op == "placeholder"]
        delattr(parts, name)  # a module could not be replaced by a function
        setattr(parts, name, compile_part(part, given))
    return parts.forward


@pytest.mark.parametrize("name", ["h1_an_exponential_before_the_branch", "h1_two_branches_use_it"])
def test_a_backend_that_compiles_in_parts_gets_the_branches_as_they_were_written(name: str) -> None:
    compiled = torch.compile(getattr(MENDED, name), backend=_in_two_parts)
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([-1.0, 81.0])):
        assert torch.equal(_gradient(compiled, x), _gradient(getattr(PLAIN, name), x))
    assert "GM102-T06" in {code for code, *_ in refusals.seen}


def test_branches_that_would_need_gates_stay_as_they_were_written_where_ddp_parts_the_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = SimpleNamespace(bucket_bytes_cap=25 << 20)  # what Dynamo asks of a model that runs under DDP
    monkeypatch.setattr(DistributedDataParallel, "_active_ddp_module", model)
    compiled = torch.compile(MENDED.h1_two_branches_use_it, backend="aot_eager")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Error detected in")  # as anomaly mode says of a failed gate
        _gradient(compiled, torch.tensor([1.0, 2.0]))
    assert "GM102-T06" in {code for code, *_ in refusals.seen}
