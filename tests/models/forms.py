"""A module of a plain user's script, `judge.py`: a row's model compiled in every form that torch.compile has."""

from __future__ import annotations

from typing import Any

import library_that_compiles
import rows
import torch

row = ""
model: Any = None
graphs = 0


def backend(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> Any:
    global graphs
    graphs += 1
    return graph.forward


@torch.compile(backend=backend)
def decorated(**inputs: torch.Tensor) -> Any:
    return model(**inputs)


def conditional() -> Any:
    return torch.compile(model, backend=backend) if row else model


def compiled_forward() -> Any:
    bound = torch.compile(model.forward, backend=backend)
    return bound


def in_place() -> Any:
    copy, _ = rows.build(row)
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


def outcomes(name: str) -> dict[str, tuple[int, bool]]:
    """By form: how many graphs there were, and whether the result is the one of eager."""
    global row, model, graphs
    row = name
    model, (inputs, *_) = rows.build(name)
    found = {}
    with torch.no_grad():
        expected = model(**inputs).to_tuple()[0]
        for way, form in FORMS.items():
            torch._dynamo.reset()
            graphs = 0
            result = form()(**inputs).to_tuple()[0]
            found[way] = graphs, torch.equal(result, expected)
    return found
