"""Dynamo's, AOT's and Inductor's own caches know code by its source: switching the hook must not replay the other arm."""

from __future__ import annotations

from typing import Any

import pytest

PROGRAM = """
import logging, sys
logging.basicConfig(stream=sys.stdout, format="%(message)s")
import torch, library
graphs = 0
from torch._inductor.compile_fx import compile_fx
def backend(graph, inputs):
    global graphs
    graphs += 1
    return compile_fx(graph, inputs)
with torch.no_grad():
    for _ in range(2):
        print(torch.compile(library.model, backend=backend)(torch.ones(3)))
        torch._dynamo.reset()
print("graphs", graphs)
"""
LIBRARY = """
import logging
logger = logging.getLogger("library")
def model(x):
    x = x.sin()
    logger.warning("sum %s", x.sum())
    return x + 1
"""


@pytest.mark.slow
def test_toggling_the_hook_on_warm_caches(python: Any, write: Any, tmp_path: Any) -> None:
    write("train.py", PROGRAM)
    write("library.py", LIBRARY)
    warm = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TORCHINDUCTOR_FX_GRAPH_CACHE": "1"}
    plain, hooked = ("train.py",), ("-m", "graphmend_hook", "train.py")
    output = {}
    for arm in (plain, hooked, plain):
        done = python(*arm, **warm)
        assert done.returncode == 0, done.stderr
        text, graphs = done.stdout.rsplit("graphs ", 1)
        assert int(graphs) == (4 if arm is plain else 2)
        output.setdefault("text", text)
        assert text == output["text"]
    assert output["text"].count("sum tensor(2.5244)") == 2


TRAINS = """
import sys, torch, library
torch.manual_seed(0)
model = library.Model()
x = torch.ones(4, 3)
def other(x, least):
    loss = (model.layer(x) ** 2).mean()
    one, other = loss.detach().reshape(()), loss.detach().reshape(())  # for a text with the same names
    return loss, one.double() < least, other
if len(sys.argv) > 1:  # the same backward pass, of a graph that returns nothing of what is saved for it
    torch.compile(other)(x, torch.ones((), dtype=torch.double))[0].backward()
    torch._dynamo.reset()
for _ in range(2):  # the second time with another branch of the first program
    loss, seen = torch.compile(model)(x)
    before = seen.clone()
    loss.backward()
    print(torch.equal(seen, before), model.best is None or torch.equal(model.best, before))
"""
KEEPS = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.best, self.least = torch.nn.Linear(3, 3), None, float("inf")

    def forward(self, x):
        y = self.layer(x)
        loss = (y ** 2).mean()
        if loss.item() < self.least:
            self.least = loss.item()
            self.best = y.detach().clone()
        return loss, y.detach()
"""


@pytest.mark.slow
def test_a_backward_pass_out_of_a_cache_writes_to_no_result(python: Any, write: Any, tmp_path: Any) -> None:
    """PyTorch finds one by its operations alone, which may have been compiled for a graph that gave nothing of it away."""
    write("train.py", TRAINS)
    write("library.py", KEEPS)
    warm = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TORCHINDUCTOR_FX_GRAPH_CACHE": "1"}
    for given in (("first",), ()):
        done = python("-m", "graphmend_hook", "train.py", *given, **warm)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["True"] * 4
        assert "pickle" not in done.stderr  # a graph with a number of the state is kept in the caches, too


RECURS = """
import torch, library
torch.manual_seed(0)
model = library.Model()
y = torch.compile(model)(torch.ones(2, 3, 4))
y.sum().backward()
print(y.sum().item(), [each.grad.abs().sum().item() for each in model.parameters()])
"""
RECURRENT = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        return self.layer(x)[0].sin()
"""


@pytest.mark.slow
def test_a_recurrent_layer_out_of_a_cache_is_trained(python: Any, write: Any, tmp_path: Any) -> None:
    """The operators are there in a process that traces no backward pass."""
    write("train.py", RECURS)
    write("library.py", RECURRENT)
    warm = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TORCHINDUCTOR_FX_GRAPH_CACHE": "1"}
    warm["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "1"
    first, again = (python("-m", "graphmend_hook", "train.py", **warm) for _ in range(2))
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert first.stdout == again.stdout
