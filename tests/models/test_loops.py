"""Twenty steps of training as people write it: the same to the bit with the hook, in fewer graphs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from printing import printed

import graphmend_hook

pytest.importorskip("torch")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("transformers is not installed", allow_module_level=True)

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("loops.py")
BOOTSTRAP = Path(graphmend_hook.__file__).with_name("bootstrap")
LOOPS = [
    *("plain bart", "plain t5", "plain paligemma", "accumulating bart", "in_bfloat16 t5"),
    *("in_float16 bart", "checkpointed bart", "with_compiled_autograd t5", "whole t5"),
]
NEEDED = {"adapted bart": "peft", "by_trainer t5": "accelerate"}
RANKS = ["parallel t5", "parallel_inside t5", "sharded bart"]
ROUNDED = {"checkpointed bart"}  # in one graph, gradients are added up in another order
IN_ONE_GRAPH = {"plain", "accumulating", "in_bfloat16", "in_float16", "checkpointed", "adapted", "by_trainer"}


def run(backend: str, *asked: str, hook: bool, ranks: int = 0) -> dict[str, Any]:
    """What the script prints; the hook is switched on as for a job, by a `sitecustomize`."""
    switched_on = {"GRAPHMEND_MODULES": "transformers,peft", "PYTHONPATH": str(BOOTSTRAP)} if hook else {}
    launcher = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}") if ranks else ()
    return printed(*launcher, str(SCRIPT), backend, *asked, **switched_on)


def assert_same(mended: dict[str, Any], stock: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """The same but for graphs and breaks, of which there are no more; the graphs of both."""
    graphs = {}
    assert mended.keys() == stock.keys()
    for name, expected in stock.items():
        found = mended[name]
        assert found.pop("breaks") <= expected.pop("breaks"), name
        graphs[name] = found.pop("graphs"), expected.pop("graphs")
        if name in ROUNDED:
            assert found.pop("losses") == pytest.approx(expected.pop("losses"), rel=1e-4)
            for rounded in ("gradients", "parameters"):
                del found[rounded], expected[rounded]
        assert found == expected, name
    return graphs


def test_loops() -> None:
    asked = [*LOOPS, *(loop for loop, package in NEEDED.items() if importlib.util.find_spec(package))]
    graphs = assert_same(run("eager", *asked, hook=True), run("eager", *asked, hook=False))
    assert sum(mended for mended, _ in graphs.values()) < sum(stock for _, stock in graphs.values())
    for loop, (mended, stock) in graphs.items():
        assert mended <= stock, loop
        if loop.partition(" ")[0] in IN_ONE_GRAPH:
            assert mended == 1, loop


def test_as_without_compilation() -> None:
    """With the hook it is what eager computes, also where PyTorch's own compiler draws by another generator (wav2vec2)."""
    asked = ("plain bart", "accumulating bart", "plain wav2vec2")
    mended, eager = run("eager", *asked, hook=True), run("none", *asked, hook=False)
    for loop in asked:
        for name in ("losses", "gradients", "parameters", "drawn", "records"):
            assert mended[loop][name] == eager[loop][name], (loop, name)


def test_ranks() -> None:
    """PyTorch splits a graph by buckets: there may be more graphs where there were more breaks."""
    assert_same(run("eager", *RANKS, hook=True, ranks=2), run("eager", *RANKS, hook=False, ranks=2))
