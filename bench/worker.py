"""The process of one arm: builds a model, and does what it is told, a line of JSON at a time.

Two of them alternate under `bench.arms.Worker`, so that what drifts on the machine drifts for both.
"""

from __future__ import annotations

import os
import sys

if "GRAPHMEND_MODULES" in os.environ:
    import graphmend_hook  # noqa: F401  before the libraries are imported

import contextlib
import copy
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import torch

from bench import models
from bench.swap import Swap

_LAUNCH = "## Call CompiledFxGraph"  # what Inductor calls a graph in a profile


class Model:
    """One model, in eager and compiled."""

    def __init__(self) -> None:
        self.model: Any = None
        self.compiled: Any = None
        self.inputs: models.Inputs = {}
        self.trained = False

    def build(
        self,
        row: str,
        size: str = "tiny",
        batch: int = 1,
        device: str = "cpu",
        dtype: str | None = None,
        trained: bool = False,
    ) -> dict[str, Any]:
        """trained: a call is a forward and a backward pass of a model of that name, and not of a row."""
        if device == "cuda":
            torch.set_float32_matmul_precision("high")  # TF32, as on the paper's machines
        self.trained = trained
        if trained:
            self.model, self.inputs = models.build_trained(row)
        else:
            self.model, self.inputs = models.build(row, size, batch, device, dtype)
        return {"inputs": models.fingerprint(self.inputs)}

    def eager(self, calls: int) -> list[float]:
        """Seconds of each call."""
        return self._timed(self.model, calls)

    def both(self, rounds: int, calls: int) -> dict[str, Any]:
        """The best of `calls` calls in eager by arm and round, and how many calls of one pass run changed code."""
        swap = Swap()
        seconds: dict[str, list[float]] = {"off": [], "on": []}
        for number in range(rounds):
            for arm in ("off", "on") if number % 2 else ("on", "off"):
                swap.to(arm)
                self._timed(self.model, 2)  # the interpreter adapts to what has changed
                seconds[arm].append(min(self._timed(self.model, calls)))
        swap.to("on")
        return {"changed_calls": swap.called_by(lambda: self._timed(self.model, 1)), "seconds": seconds}

    def compile(self, backend: str = "inductor", mode: str | None = None) -> dict[str, Any]:
        """Forget what is compiled, compile the model and call it once."""
        from torch._dynamo.utils import calculate_time_spent, compilation_time_metrics, counters
        from torch._inductor import metrics

        torch._dynamo.reset()
        counters.clear()
        compilation_time_metrics.clear()
        metrics.reset()
        options = {"mode": mode} if backend == "inductor" else {"backend": backend}
        self.compiled = torch.compile(copy.deepcopy(self.model), dynamic=False, **options)
        (first,) = self._timed(self.compiled, 1)
        spent = calculate_time_spent()
        compiling = spent.get("entire_frame_compile", 0.0)
        return {
            "first": first,
            "compiling": compiling,
            "tracing": compiling - spent.get("backend_compile", 0.0),
            "graphs": counters["stats"]["unique_graphs"],
            "kernels": metrics.generated_kernel_count,
        }

    def steady(self, calls: int) -> list[float]:
        """Seconds of each call of the compiled model."""
        return self._timed(self.compiled, calls)

    def launches(self) -> dict[str, int]:
        """Compiled graphs, and kernels of a CUDA device, that one call launches."""
        with torch.profiler.profile() as profile:
            self._call(self.compiled)
            _wait()
        events = profile.events()
        return {
            "graphs": sum(event.name.startswith(_LAUNCH) for event in events),
            "cuda_kernels": sum(str(event.device_type).endswith("CUDA") for event in events),
        }

    @staticmethod
    def memory() -> dict[str, float]:
        """Peak memory in MiB, of the process and of the CUDA device."""
        cuda = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0
        return {"process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "cuda": cuda}

    def _timed(self, function: Callable[..., Any], calls: int) -> list[float]:
        seconds = []
        for _ in range(calls):
            start = time.perf_counter()
            self._call(function)
            _wait()
            seconds.append(time.perf_counter() - start)
        return seconds

    def _call(self, function: Callable[..., Any]) -> None:
        with torch.set_grad_enabled(self.trained):
            output = function(**self.inputs)
        if self.trained:
            output.loss.backward()


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def use_knobs() -> None:
    """All that PyTorch itself offers against graph breaks."""
    import logging
    import warnings

    config = torch._dynamo.config
    config.capture_scalar_outputs = True
    config.capture_dynamic_output_shape_ops = True
    config.reorderable_logging_functions |= {print, warnings.warn}
    config.ignore_logging_functions |= {
        getattr(logging.Logger, name)
        for name in ("debug", "info", "warning", "warning_once", "info_once")
        if hasattr(logging.Logger, name)
    }


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what models print is no answer
    if os.environ.get("BENCH_KNOBS"):
        import transformers  # noqa: F401  it gives loggers their "once" methods

        use_knobs()
    model = Model()
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer = {"answer": getattr(model, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
