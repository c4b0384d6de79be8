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
