"""Each rule's cost under Inductor: ``python -m bench.rules [MODEL ...]`` times the models of `bench.small`.

Both arms in one process, interleaved; a ratio above 1 says that the mended model is faster than the one with the
graph breaks.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import timeit
from pathlib import Path

import torch

from . import small
from .calls import load_mended, load_plain

ROWS = (8, 128)
ROUNDS, CALLS = 40, 10


def compiled(model: torch.nn.Module, x: torch.Tensor) -> tuple[torch._dynamo.eval_frame.OptimizedModule, int]:
    """`model`, compiled and called, and how many graphs that took."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    call = torch.compile(model, dynamic=False)
    for _ in range(3):
        call(x)
    return call, torch._dynamo.utils.counters["stats"]["unique_graphs"]


def measure(name: str, rows: int) -> str:
    """One line: graphs of both arms, microseconds of a call, and the ratio with its quartiles."""
    file = Path(small.__file__)
    with tempfile.TemporaryDirectory() as cache:
        modules = load_plain("bench_plain_small", file), load_mended("bench_mended_small", Path(cache), file)
    x = torch.randn(rows, small.WIDTH, generator=torch.Generator().manual_seed(0))
    arms = [compiled(module.build(name), x) for module in modules]
    (broken, breaks), (mended, graphs) = arms
    torch.testing.assert_close(mended(x), broken(x), rtol=1e-3, atol=1e-3)
    times = [[timeit.timeit(lambda call=call: call(x), number=CALLS) for call, _ in arms] for _ in range(ROUNDS)]  # type: ignore[misc]
    low, middle, high = statistics.quantiles([without / with_hook for without, with_hook in times], n=4)
    micros = [statistics.median(column) / CALLS * 1e6 for column in zip(*times, strict=True)]
    return (
        f"{name:10} {rows:5} rows: {breaks} graphs, {micros[0]:.0f} us; mended {graphs}, {micros[1]:.0f} us: "
        f"{middle:.2f}x (quartiles {low:.2f} to {high:.2f})"
    )


def main(names: list[str]) -> None:
    unknown = {*names} - {*small.MODELS}
    if unknown:
        raise SystemExit(f"bench.rules: no model {', '.join(sorted(unknown))}; there are {', '.join(small.MODELS)}")
    with torch.no_grad():
        for name in names or small.MODELS:
            for rows in ROWS:
                print(measure(name, rows), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
