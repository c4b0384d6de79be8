"""Where gates stand in a graph; that gradients are eager's is shown by `branch_gradient_cases`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import both

from graphmend_hook.engine.graph_end.stopped_gradients import gate, tell

_, MENDED = both("branch_gradient_cases")


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
