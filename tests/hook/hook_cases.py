"""What the tests of the hook share: a module with one site, and how to see what became of a module."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from graphmend_hook.product.report.ledger import ModuleRecord, ledger
from graphmend_hook.rewrite import active_rules
from graphmend_hook.settings.config import RULE_NAMES
from graphmend_hook.source.templates import RUNTIME

MENDABLE = 'def f(x):\n    print("value", x)\n    return x\n'
PLAIN = "def f(x):\n    return x\n"
RULES = active_rules(RULE_NAMES)


def is_mended(module: ModuleType) -> bool:
    return RUNTIME in vars(module)


def record(name: str) -> ModuleRecord:
    return ledger.modules[name]


@dataclass(frozen=True)
class Ran:
    """A finished interpreter: its output, and the modules of its report by name."""

    stdout: str
    stderr: str
    modules: dict[str, dict[str, Any]]


def entries(cache: Path, stem: str = "") -> list[Path]:
    """The entries in the cache directory `cache`, of any fingerprint."""
    return sorted(cache.glob(f"*/{stem}*.gmc"))


def read_report(path: Path) -> dict[str, dict[str, Any]]:
    report = json.loads(path.read_text(encoding="utf-8"))
    return {module["name"]: module for module in report["modules"]}
