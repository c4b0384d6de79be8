"""Who may import whom (DESIGN 4), and what an import of the package may cost in modules."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import graphmend_hook

PACKAGE = Path(graphmend_hook.__file__).parent
# A part may import what stands before it, and what it names.
LAYERS = {
    "version": set(),
    "diagnostics": set(),
    "config": {"diagnostics"},
    "templates": set(),
    "tensor_ops": set(),
    "analysis": {"diagnostics"},
    "rules": {"analysis", "diagnostics", "templates", "tensor_ops"},
    "rewrite": {"analysis", "diagnostics", "rules", "templates"},
    "runtime": {"epilogue", "tensor_ops"},  # the first on the first deferred effect
    "epilogue": {"runtime", "diagnostics", "version"},
    "manual": {"diagnostics", "rewrite", "rules", "runtime"},
    "reporting": {"analysis", "diagnostics", "config", "rewrite", "runtime", "templates", "version"},
    "program": set(),
    "hook": {"config", "diagnostics", "program", "reporting", "rewrite", "rules", "runtime", "version"},
    "runner": {"config", "hook", "program"},
    "options": {"config", "diagnostics", "program", "version"},
    "explain": {"config", "reporting", "rewrite", "templates"},
    "doctor": {"config", "diagnostics", "hook", "reporting", "rewrite", "version"},
    "commands": {
        *("config", "diagnostics", "doctor", "explain", "hook", "manual", "options", "program", "reporting"),
        *("rewrite", "rules", "runtime", "version"),
    },
    "testing": {"explain", "reporting"},
    "pytest_plugin": {"diagnostics", "hook", "reporting", "runtime", "testing"},
    "ipython": {"analysis", "config", "diagnostics", "hook", "reporting", "rewrite", "rules", "runtime", "templates"},
    "cli": {"commands", "config", "diagnostics", "hook", "options", "program", "reporting", "runner", "version"},
}


def imports_of(file: Path) -> set[str]:
    """The parts of this package that `file` imports, wherever in it."""
    package = ("graphmend_hook", *file.relative_to(PACKAGE).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            full = ".".join((*base, *(node.module or "").split("."))).strip(".").split(".")
            found |= {full[1]} if len(full) > 1 else {alias.name for alias in node.names}
    return found - {"__version__"}


def test_imports_go_one_way() -> None:
    for part, allowed in LAYERS.items():
        path = PACKAGE / part
        files = list(path.glob("**/*.py")) if path.is_dir() else [path.with_suffix(".py")]
        assert files, part
        for file in files:
            assert imports_of(file) - {part} <= allowed, file


def test_importing_the_package_imports_nothing_heavy(python: Any) -> None:
    done = python("-c", "import sys, graphmend_hook; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"torch", "bytecode", "platformdirs", "ast", "argparse", "graphmend_hook.rewrite"})


def test_every_code_is_documented_once() -> None:
    from graphmend_hook.diagnostics import NOTICES

    text = "\n".join(file.read_text(encoding="utf-8") for file in PACKAGE.glob("**/*.py"))
    for code in NOTICES:
        assert text.count(f'notice("{code}"') >= 1, code
