"""Mends and compiles the module of the self-test, and prints what was not as it should be, as JSON on the last line."""

from __future__ import annotations

import json
import logging
import runpy
from collections.abc import Callable
from typing import Any

import graphmend_hook

graphmend_hook.install("graphmend_selftest")

import graphmend_selftest as mended  # type: ignore[import-not-found]  # noqa: E402
import torch  # noqa: E402

from graphmend_hook.dynamo import refusals, trust  # noqa: E402
from graphmend_hook.reporting.ledger import ledger  # noqa: E402
from graphmend_hook.rules.codes import REFUSALS  # noqa: E402

INPUTS = {"one side": torch.full((4,), 0.5), "the other side": torch.full((4,), 8.0), "the guard": -torch.ones(4)}
Seen = tuple[Any, list[tuple[object, ...]]]


def observe(step: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Seen:
    """The result or the exception of a call, and its log records with their places."""
    records: list[tuple[object, ...]] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append((record.getMessage(), record.pathname, record.lineno, record.funcName))

    logger, handler = logging.getLogger("graphmend_selftest"), Handler()
    logger.addHandler(handler)
    logger.propagate = False
    try:
        return step(x).tolist(), records
    except ValueError as error:
        return repr(error), records
    finally:
        logger.removeHandler(handler)


def failures() -> list[str]:
    """What is not as it should be, in words."""
    record = ledger.modules["graphmend_selftest"]
    stock = runpy.run_path(record.path, run_name="graphmend_selftest")["step"]
    found = [f"line {site.line} was not mended ({site.code})" for site in record.sites if site.code]
    if len(record.sites) != 3:
        found.append(f"{len(record.sites)} sites were found instead of 3 ({record.status.value}) {record.why}")
    graphs: list[Any] = []

    def backend(graph: Any, _inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    def named(x: torch.Tensor) -> torch.Tensor:
        return mended.step(x)

    try:
        for name, x in INPUTS.items():
            expected = observe(stock, x)
            for how, step in (("in eager", mended.step), ("compiled", torch.compile(named, backend=backend))):
                seen = observe(step, x)
                if seen != expected:
                    found.append(f"{name}, {how}: {seen} instead of {expected}")
        torch.compile(mended.step, backend="eager", fullgraph=True)(INPUTS["one side"])
    except Exception as error:
        found.append(f"torch.compile failed with {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    if len(graphs) != 1:
        found.append(f"there were {len(graphs)} graphs instead of one")
    found += [f"does not work on torch {torch.__version__}: {mechanism.value}" for mechanism in trust.failed]
    found += [f"{code}: {REFUSALS[code]}" for code, *_place in refusals.seen]
    return found


print(json.dumps(failures()))
