"""A plain user's script: a row's model compiled in every form that torch.compile has.  usage: forms.py ROW"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ and "graphmend_hook" not in sys.modules:
    import graphmend_hook  # noqa: F401

from typing import Any

import library_that_compiles
import rows
import torch

model, (inputs, *_) = rows.build(sys.argv[1])
graphs = 0


def backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Any:
    global graphs
    graphs += 1
    return graph.forward


@torch.compile(backend=backend)
def decorated(**inputs: torch.Tensor) -> Any:
    return model(**inputs)


def conditional() -> Any:
    return torch.compile(model, backend=backend) if len(sys.argv) > 1 else model


def compiled_forward() -> Any:
    bound = torch.compile(model.forward, backend=backend)
    return bound


def in_place() -> Any:
    copy, _ = rows.build(sys.argv[1])
    copy.compile(backend=backend)
    return copy


def part_of_a_bigger_function() -> Any:
    @torch.compile(backend=backend, fullgraph=True)
    def step(**inputs: torch.Tensor) -> Any:
        return model(**inputs)

    return step


FORMS = {
    "decorator": lambda: decorated,
    "conditional expression": conditional,
    "model.forward": compiled_forward,
    "model.compile()": in_place,
    "inside a library": lambda: library_that_compiles.accelerate(model, backend),
    "fullgraph decorator": part_of_a_bigger_function,
}

with torch.no_grad():
    expected = model(**inputs).to_tuple()[0]
    for name, form in FORMS.items():
        torch._dynamo.reset()
        graphs = 0
        result = form()(**inputs).to_tuple()[0]
        same = "equal" if torch.equal(result, expected) else "different"
        print(f"{name}: {graphs} graph{'s' * (graphs != 1)}, {same}")
