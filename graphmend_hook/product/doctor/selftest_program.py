"""Mends and compiles the module of the self-test; prints what failed, and what the probes say, as JSON."""

from __future__ import annotations

import json
import runpy

import graphmend_hook

graphmend_hook.install("graphmend_selftest")

import graphmend_selftest as mended  # type: ignore[import-not-found]  # noqa: E402
import torch  # noqa: E402

from graphmend_hook.engine.attempt import refusals  # noqa: E402
from graphmend_hook.engine.door import trust  # noqa: E402
from graphmend_hook.product.explain.observe import Observer  # noqa: E402
from graphmend_hook.product.report.ledger import ledger  # noqa: E402
from graphmend_hook.rules.codes import REFUSALS  # noqa: E402
from graphmend_hook.testing.equality import calls_of, differences  # noqa: E402

INPUTS = {"one side": torch.full((4,), 0.5), "the other side": torch.full((4,), 8.0), "the guard": -torch.ones(4)}


def failures() -> list[str]:
    """What is not as it should be, in words."""
    record = ledger.modules["graphmend_selftest"]
    stock = runpy.run_path(record.path, run_name="graphmend_selftest")["step"]
    found = [f"line {site.line} was not mended ({site.code})" for site in record.sites if site.code]
    if len(record.sites) != 3:
        found.append(f"{len(record.sites)} sites were found instead of 3 ({record.status.value}) {record.why}")
    observer = Observer()
    with observer.attached():
        arms = {"in eager": mended.step, "compiled": torch.compile(mended.step, backend="eager")}
        for name, x in INPUTS.items():
            [expected] = calls_of(stock, (x,))
            for how, step in arms.items():
                [seen] = calls_of(step, (x,))
                found += [f"{name}, {how}: {difference}" for difference in differences(seen, expected)]
    if observer.count != 1:
        found.append(f"there were {observer.count} graphs instead of one")
    found += [f"does not work on torch {torch.__version__}: {mechanism.value}" for mechanism in trust.failed]
    found += [f"{code}: {REFUSALS[code]}" for code, *_place in refusals.seen]
    return found


found = failures()
probes = {mechanism.value: trust.works(mechanism) for mechanism in trust.Mechanism} if trust._is_proved else {}
print(json.dumps({"failures": found, "probes": probes}))
