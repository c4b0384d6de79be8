"""What data decides, on a GPU: ``python -m bench.device [MODE ...]`` (default and reduce-overhead).

Per program and mode, without and with the hook, each in a fresh process: graphs, how often CUDA graphs were recorded,
how often a call waits for the device, the median time of a call, and the worst difference from eager in twelve calls
on data that changes (its sizes too).  Programs: JetMoe of transformers, a loop over experts that is trained, and those
of ``tests/compiled/waits_cases.py``.  An exception is a result.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[1] / "tests" / "compiled" / "waits_cases.py"
MODES = ("default", "reduce-overhead")
CALLS = 12
DEVICE = os.environ.get("BENCH_DEVICE", "cuda")  # "cpu" shows that the program itself works


def main(modes: list[str]) -> None:
    for program in ("jetmoe", "experts", "cases"):
        for mode in modes or MODES:
            for arm in ("off", "on"):
                command = [sys.executable, "-m", "bench.device", "once", program, mode, arm]
                done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
                print(program, mode, arm, done.stdout.strip() or done.stderr.strip()[-400:], flush=True)


def once(program: str, mode: str, arm: str) -> None:
    """Compile and call the program in this process; prints the findings as JSON."""
    import graphmend_hook

    if arm == "on":
        graphmend_hook.install(["transformers", "waits_cases"])
    sys.path.insert(0, str(CASES.parent))
    measure = {"jetmoe": _jetmoe, "experts": _experts, "cases": _cases}[program]
    print(json.dumps(measure(None if mode == "default" else mode)))


def _jetmoe(mode: str | None) -> dict[str, Any]:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.JetMoeConfig(
        vocab_size=1000,
        num_hidden_layers=4,
        num_key_value_heads=16,
        num_local_experts=8,
        hidden_size=2048 if DEVICE != "cpu" else 64,
    )
    model = transformers.JetMoeForCausalLM(config).eval().to(DEVICE, torch.bfloat16)
    tokens = [torch.randint(3, 999, (1, 128), device=DEVICE) for _ in range(CALLS)]
    with torch.no_grad():
        return _measured(lambda given: model(given, use_cache=False).logits, tokens, mode)


def _experts(mode: str | None) -> dict[str, Any]:
    """Losses of a step, in training: the gradients of the weights are sums over sizes that the data decides."""
    import torch
    import waits_cases

    weight = torch.ones(2, 2, device=DEVICE, requires_grad=True)

    def step(x: torch.Tensor) -> torch.Tensor:
        return waits_cases.loops_over_experts(x @ weight, None)

    def run(call: Any, x: torch.Tensor) -> torch.Tensor:
        weight.grad = None
        call(x).sum().backward()
        assert weight.grad is not None
        return weight.grad.clone()

    return _measured(step, [torch.randn(64, 2, device=DEVICE) for _ in range(CALLS)], mode, run)


def _cases(mode: str | None) -> dict[str, Any]:
    import torch
    import waits_cases

    found = {}
    rows = torch.arange(21.0, device=DEVICE).reshape(7, 3)
    data = []
    while len(data) < CALLS:  # seven numbers above zero, so that each list of counts splits seven rows
        x = torch.randn(5, 2, device=DEVICE)
        if int((x > 0).sum()) == rows.shape[0]:
            data.append(x)
    for name, case in vars(waits_cases).items():
        if callable(case) and getattr(case, "__module__", "") == "waits_cases":
            torch._dynamo.reset()
            try:
                found[name] = _measured(lambda x, case=case: case(x, rows), data, mode)
            except Exception as error:
                found[name] = {"error": f"{type(error).__name__}: {error}"[:200]}
    return found


def _wait() -> None:
    import torch

    if DEVICE != "cpu":
        torch.get_device_module(DEVICE).synchronize()


def _measured(function: Any, data: list[Any], mode: str | None, run: Any = lambda call, x: call(x)) -> dict[str, Any]:
    import torch
    from torch._dynamo.utils import counters
    from torch.profiler import ProfilerActivity, profile
    from torch.utils._pytree import tree_leaves

    counters.clear()
    compiled, worst, times = torch.compile(function, mode=mode, dynamic=False), 0.0, []
    for x in data:
        expected = tree_leaves(run(function, x))
        torch.compiler.cudagraph_mark_step_begin()
        _wait()
        started = time.perf_counter()
        found = tree_leaves(run(compiled, x))
        _wait()
        times.append(1e3 * (time.perf_counter() - started))
        for one, other in zip(found, expected, strict=True):
            if isinstance(one, torch.Tensor):
                worst = max(worst, float((one.float() - other.float()).abs().max()) if one.numel() else 0.0)
    waits = {}
    for name, call in (("eager", function), ("compiled", compiled)):
        torch.compiler.cudagraph_mark_step_begin()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            run(call, data[0])
        waits[name] = sum(event.count for event in seen.key_averages() if "StreamSynchronize" in event.key)
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "cuda graphs": {key: count for key, count in counters["inductor"].items() if "cudagraph" in key},
        "waits": waits,
        "ms": round(statistics.median(times[CALLS // 2 :]), 3),
        "worst": worst,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        once(*sys.argv[2:])
    else:
        main(sys.argv[1:])
