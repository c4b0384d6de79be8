"""[Grad] against eager: a tensor is not told to require a gradient where nobody can tell, and else it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import Counting, both

PLAIN, MENDED = both("grad_cases")
KINDS = [name for name, kind in vars(PLAIN).items() if isinstance(kind, type) and issubclass(kind, PLAIN.Told)]
FREED = ["Told", "ToldByAMethod", "Leaf", "ToldInACheckpoint", "ToldInAReentrantCheckpoint", "Made", "MadeInACall"]
FREED += ["Returned", "WithoutGradients", "OffForAPart", "Unused"]
FREED_BY_CALLS = [
    "Kept",
    "KeptAndAskedBefore",
    "KeptAndAskedLater",
    "KeptOfTwoModules",
    "KeptUnderTwoNames",
    "KeptWhileOff",
]


def step(model: Any, called: Any, x: torch.Tensor) -> list[Any]:
    """What a training step gives, and leaves behind."""
    model.zero_grad()
    x = x.clone()
    try:
        given = called(x)
    except (RuntimeError, ValueError, IndexError) as error:
        return [str(error), [buffer.requires_grad for buffer in model.buffers()]]
    outputs = given if isinstance(given, tuple) else (given,)
    if outputs[0].requires_grad:
        outputs[0].sum().backward()
    seen = [tensor.detach() for tensor in outputs]
    flags = [(tensor.requires_grad, tensor.is_leaf) for tensor in (*outputs, x)]
    kept = [(buffer.detach(), buffer.requires_grad, buffer.grad) for buffer in model.buffers()]
    return [seen, flags, [parameter.grad for parameter in model.parameters()], x.grad, kept]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", KINDS)
def test_equal_to_eager(name: str, backend: str) -> None:
    torch.manual_seed(0)
    plain, mended = getattr(PLAIN, name)(), getattr(MENDED, name)()
    for model in (plain, mended):
        model.load_state_dict(plain.state_dict())
    counting = Counting(backend)
    compiled = torch.compile(mended, backend=counting, fullgraph=name in FREED)
    for call in range(3):
        x = torch.arange(12.0).reshape(2, 6) - call
        if name == "OfInference":
            with torch.inference_mode():
                x = x.clone()
        expected, found = step(plain, plain, x), step(mended, compiled, x)
        if isinstance(expected[0], str):
            assert expected[0] in found[0]
            assert found[1:] == expected[1:]
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    if name in FREED:
        assert counting.graphs == 1
    if name in FREED_BY_CALLS:  # the first call, and those that find the tensor told
        assert counting.graphs == 2


@pytest.mark.parametrize("name", ["Told", "ToldInACheckpoint", "Made", "OffForAPart"])
@pytest.mark.slow
def test_one_graph_of_inductors(name: str) -> None:
    model = getattr(MENDED, name)()
    compiled = torch.compile(model, backend="inductor", fullgraph=True)
    x = torch.arange(12.0).reshape(2, 6)
    torch.testing.assert_close(step(model, compiled, x), step(model, model, x))


@pytest.mark.parametrize("name", FREED)
def test_it_breaks_without_the_hook(name: str) -> None:
    if ("Checkpoint" in name or name in ("WithoutGradients", "Unused")) and torch.__version__ >= "2.15":
        pytest.skip("this torch traces it")
    with pytest.raises(Exception, match="requires_grad"):
        torch.compile(getattr(PLAIN, name)(), backend="eager", fullgraph=True)(torch.ones(2, 6))
