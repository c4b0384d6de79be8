"""A plain user's script: three training steps of small models, in eager and compiled; prints what differs, as JSON.

Arguments: each a model and a backend, "bart eager".  Inductor draws random numbers as eager does where it is asked to
(`fallback_random`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from judge import Counting
from trained import MODELS, Model


def step(model: torch.nn.Module, called: Callable[..., Any], inputs: dict[str, torch.Tensor], seed: int) -> list[Any]:
    """The loss, the gradients, and the state of the random numbers afterwards."""
    model.zero_grad()
    torch.manual_seed(seed)
    loss = called(**inputs).loss
    loss.backward()
    gradients = [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]
    return [loss.detach(), gradients, torch.get_rng_state()]


def train(make: Callable[[], Model], backend: str) -> dict[str, Any]:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model, batch = make()
    inputs = batch()
    counting, differences = Counting(backend), []
    compiled = torch.compile(model.train(), backend=counting)
    tolerance = 0.0 if backend == "eager" else 1e-4
    for seed in range(3):
        found, expected = step(model, compiled, inputs, seed), step(model, model, inputs, seed)
        try:
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            differences.append(str(error))
    breaks = sum(torch._dynamo.utils.counters["graph_break"].values())
    absent = any(parameter.grad is None for parameter in model.parameters())
    return {"absent": absent, "graphs": counting.graphs, "breaks": breaks, "differences": differences}


torch._inductor.config.fallback_random = True
print(json.dumps({asked: train(MODELS[asked.partition(" ")[0]], asked.partition(" ")[2]) for asked in sys.argv[1:]}))
