"""What the report counts as mended is in the graph, and what Dynamo stops at is not counted so, by Dynamo's own count."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import report_cases
import torch
from observing import HERE, import_file
from torch._dynamo import output_graph

from graphmend_hook.hook.loader import Mender, MendingLoader
from graphmend_hook.product.report.ledger import Ledger, as_json
from graphmend_hook.settings.config import Settings

NAMES = [name for name, case in vars(report_cases).items() if inspect.isfunction(case) and not name.startswith("_")]


def _lines(module: Any, name: str) -> set[int]:
    """Those of the program: of the function, and of all that begins with an underscore."""
    parts = [value for key, value in vars(module).items() if key == name or key.startswith("_")]
    own = [each for each in parts if getattr(each, "__module__", "") == module.__name__ and hasattr(each, "__code__")]
    classes = [each.forward for each in parts if isinstance(each, type) and hasattr(each, "forward")]
    return {line for each in (*own, *classes) for _, _, line in each.__code__.co_lines() if line}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_a_statement_is_left_where_dynamo_breaks(name: str) -> None:
    ledger, module_name = Ledger(), f"report_cases_of_{name}"
    mender = Mender(Settings(modules=(module_name,), cache_dir=Path("/dev/null/no-cache")), ledger)
    path = HERE / "report_cases.py"
    module = import_file(path, module_name, MendingLoader(module_name, str(path), mender))
    counted, reasons = torch._dynamo.utils.counters["graph_break"], output_graph.graph_break_reasons
    counted.clear()
    reasons.clear()
    torch.compile(getattr(module, name), backend="eager")()
    breaks = [each for each in (*counted, *(reason.reason for reason in reasons)) if "User-inserted" not in each]
    (entry,) = as_json(ledger)["modules"]
    sites = [site for site in entry["sites"] if site["line"] in _lines(module, name)]
    left = [site for site in sites if site["outcome"] != "mended"]
    assert bool(left) == bool(breaks), (breaks, left)
    assert all(site["code"] and site["reason"] for site in left)
