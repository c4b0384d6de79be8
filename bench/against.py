"""This version of the project against another one: CPU seconds of importing and of tracing, arms interleaved.

``python -m bench.against CHECKOUT [REPEATS]``, such as ``git worktree add ../before 018cac7; python -m bench.against
../before``.  Each run is a process of its own, with a cache that a first run has filled.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

_PROGRAM = """
import gc, json, logging, time
start = time.process_time()
import graphmend_hook
import transformers.models.llama.modeling_llama
imported = time.process_time() - start
import torch
from transformers.models.t5 import modeling_t5, T5Config
config = T5Config(vocab_size=128, d_model=64, d_ff=128, d_kv=32, num_layers=2, num_heads=2)
model = modeling_t5.T5ForConditionalGeneration(config).eval()
tokens = torch.zeros(1, 8, dtype=torch.int64)
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))  # what Dynamo itself imports at its first trace
logging.disable()
gc.collect()
gc.disable()  # a full collection takes as long as a trace, and falls into any of them
spent = []
for _ in range(2):
    torch._dynamo.reset()
    start = time.process_time()
    with torch.no_grad():
        torch.compile(model, backend="eager", dynamic=False)(input_ids=tokens, decoder_input_ids=tokens)
    spent.append(time.process_time() - start)
print(json.dumps([imported, *spent]))
"""
_PARTS = ("import of one model, from the cache", "first trace of a process, T5", "the same traced again")


def _run(checkout: Path, cache: Path) -> list[float]:
    """CPU seconds of each part."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "GRAPHMEND"))}
    ours = {"PYTHONPATH": str(checkout), "GRAPHMEND_MODULES": "transformers", "GRAPHMEND_CACHE_DIR": str(cache)}
    env = {**kept, **ours, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=env, cwd=cache, stdout=subprocess.PIPE, check=True)
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def main(other: Path, repeats: int) -> None:
    """Print the median of the ratios of neighbouring runs, this version to the other, with their quartiles."""
    with tempfile.TemporaryDirectory() as folder:
        arms = {checkout.resolve(): Path(folder, name) for checkout, name in ((Path(), "this"), (other, "other"))}
        found: dict[Path, list[list[float]]] = {checkout: [] for checkout in arms}
        for checkout, cache in arms.items():
            cache.mkdir()
            _run(checkout, cache)
        for number in range(repeats):
            for checkout in list(arms)[:: 1 if number % 2 else -1]:
                found[checkout].append(_run(checkout, arms[checkout]))
    this, that = found.values()
    for part, name in enumerate(_PARTS):
        ratios = [mine[part] / theirs[part] for mine, theirs in zip(this, that, strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        seconds = statistics.median(run[part] for run in this)
        print(f"{name}: {middle:.3f} of the other version ({low:.3f} to {high:.3f}), {seconds:.2f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 10)
