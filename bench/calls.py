"""The cost of a call, arms interleaved in one process: mended code in eager, deferred logs in compiled code."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import tempfile
import timeit
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import torch

from graphmend_hook.hook.loader import Mender, MendingLoader
from graphmend_hook.product.report.ledger import Ledger
from graphmend_hook.settings.config import Settings

from .library import SITES

LIBRARY = Path(__file__).with_name("library.py")
NUMBER = 1000


def load_plain(name: str, file: Path = LIBRARY) -> ModuleType:
    return load(name, SourceFileLoader(name, str(file)))


def load_mended(name: str, cache: Path, file: Path = LIBRARY) -> ModuleType:
    return load(name, MendingLoader(name, str(file), Mender(Settings(cache_dir=cache), Ledger())))


def load(name: str, loader: SourceFileLoader) -> ModuleType:
    """The functions of a file once more, under a name of their own, so that Dynamo keeps the arms apart."""
    spec = importlib.util.spec_from_file_location(name, loader.path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def interleaved(arms: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Microseconds of a call of each arm, one value a round."""
    times: dict[str, list[float]] = {name: [] for name in arms}
    for call in arms.values():
        timeit.timeit(call, number=NUMBER)
    for _ in range(rounds):
        for name, call in arms.items():
            times[name].append(timeit.timeit(call, number=NUMBER) / NUMBER * 1e6)
    return times


def measure(rounds: int) -> dict[str, list[float]]:
    """Print the costs; returns the microseconds of every arm and round."""
    x = torch.ones(32, 32)
    with tempfile.TemporaryDirectory() as folder:
        plain, mended = load_plain("bench_plain_calls"), load_mended("bench_mended_calls", Path(folder))
    arms: dict[str, Callable[[], object]] = {
        "eager plain": lambda: plain.silent(0),
        "eager mended": lambda: mended.silent(0),
    }
    for module, word in ((plain, "broken"), (mended, "mended")):
        for name in ("quiet_model", "model_with_a_constant_log", "model_with_a_tensor_log"):
            function = torch.compile(getattr(module, name))
            arms[f"{word} {name}"] = lambda function=function: function(x)  # type: ignore[misc]
    times = interleaved(arms, rounds)

    def difference(left: str, right: str) -> tuple[float, float]:
        """Median and interquartile range of what `left` costs more than `right` in the same round."""
        gaps = [a - b for a, b in zip(times[left], times[right], strict=True)]
        low, middle, high = statistics.quantiles(gaps, n=4)
        return middle, high - low

    gap, spread = difference("eager mended", "eager plain")
    print(f"\ncalls ({rounds} rounds of {NUMBER}, interleaved)")
    print(f"eager: a mended call costs {gap / SITES:.3f} us more for each site it passes (IQR {spread / SITES:.3f})")
    for kind in ("constant", "tensor"):
        name = f"model_with_a_{kind}_log"
        gap, spread = difference(f"mended {name}", "mended quiet_model")
        broken, broken_spread = difference(f"broken {name}", "broken quiet_model")
        print(
            f"compiled: a {kind} log costs {gap:.1f} us a call deferred (IQR {spread:.1f}), "
            f"{broken:.1f} us with the graph break it had (IQR {broken_spread:.1f})"
        )
    return times
