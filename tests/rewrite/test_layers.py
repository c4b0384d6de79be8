"""Who may import whom, and what an import of the package may cost in modules."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import graphmend_hook
from bench.structure import files, modules_of
from graphmend_hook.diagnostics import CODES
from graphmend_hook.rewrite import SWITCHED_OFF
from graphmend_hook.rules import codes as _codes  # noqa: F401  all of them
from graphmend_hook.rules.order import ORDER

PACKAGE = Path(graphmend_hook.__file__).parent
FILES = files(PACKAGE)
RULES = PACKAGE / "rules"
# A part may import what it names; one that is not here fails.  Of the rules there are four: what rewrites, what is traced
# (files named `traced`), the codes of what either leaves (`codes.py`), and the order, which alone knows every rule.
LAYERS = {
    "version": set(),
    "diagnostics": set(),
    "program": set(),
    "settings": {"diagnostics", "program", "version"},
    "source": {"diagnostics"},
    "rules": {"codes", "diagnostics", "source"},
    "codes": {"diagnostics", "engine"},
    "traced": {"codes", "engine", "source"},
    "order": {"rules", "settings"},
    "rewrite": {"diagnostics", "order", "rules", "source"},
    "cells": {"diagnostics", "rewrite", "rules", "source"},
    "engine": {"diagnostics", "source", "version"},
    "called": {"engine", "traced"},
    "runtime": {"called", "codes", "engine"},
    "report": {"codes", "diagnostics", "engine", "rewrite", "settings", "source", "version"},
    "hook": {
        *("cells", "diagnostics", "engine", "program", "report", "rewrite", "rules", "runtime", "settings", "source"),
        "version",
    },
    "runner": {"hook", "program", "settings"},
    "explain": {"codes", "diagnostics", "engine", "report", "rewrite", "settings", "version"},
    "doctor": {
        "codes",
        "diagnostics",
        "engine",
        "explain",
        "hook",
        "report",
        "rewrite",
        "settings",
        "testing",
        "version",
    },
    "commands": {
        *("codes", "diagnostics", "doctor", "explain", "hook", "order", "program", "report", "rewrite", "rules"),
        *("settings", "version"),
    },
    "testing": {"engine", "explain"},
    "pytest_plugin": {"diagnostics", "engine", "hook", "report", "settings", "testing"},
    "ipython": {"cells", "diagnostics", "hook", "report", "rewrite", "runtime", "settings", "source"},
    "cli": {"commands", "diagnostics", "hook", "program", "report", "runner", "settings", "version"},
    "__init__": {"diagnostics", "explain", "hook", "ipython", "report", "settings", "version"},
    "__main__": {"cli"},
    "bootstrap": set(),
    "demo_t5": set(),
}
# The demo's program is that of a user, and counts graphs as a user would.
PROGRAMS = {"demo_t5.py"}
PRIVATE = re.compile(r"torch(\.\w+)*\._[a-z]|torch\._[A-Z]|torch\.fx\.experimental")


def part_of(file: Path) -> str:
    """The part of this package that `file` belongs to."""
    if RULES in file.parents:
        named = {"codes.py": "codes", "order.py": "order"}.get(file.name, "rules")
        return "traced" if file.name.startswith("traced") else named
    room, *inner = file.relative_to(PACKAGE).parts
    return (inner[0] if room == "product" else room).removesuffix(".py")


def test_imports_go_one_way() -> None:
    for file in FILES:
        part = part_of(file)
        assert {part_of(other) for other in modules_of(file, types=True)} - {part} <= LAYERS[part], file
    assert {part_of(file) for file in FILES} == LAYERS.keys()


def test_no_rule_asks_for_another() -> None:
    """What two rules share is in a file that defines no rule."""
    rules = {Path(sys.modules[type(rule).__module__].__file__ or "") for rule in ORDER}
    assert len(rules) == len(ORDER)
    for file in FILES:
        if part_of(file) != "order":
            assert not modules_of(file, types=True) & rules, file


def test_the_order_of_the_rules() -> None:
    """A rule knows those before it, as far as sources are rewritten."""
    before: set[str] = set()
    for rule in ("defer", "value", "sweep", "shared", "where", "trap", "grad"):
        for file in RULES.glob(f"{rule}/*.py"):
            if part_of(file) == "rules":
                folders = {other.parent for other in modules_of(file, types=True) if RULES in other.parents}
                assert {folder.name for folder in folders} <= {"rules", rule, *before}, file
        before.add(rule)
    assert before == {folder.name for folder in RULES.iterdir() if (folder / "__init__.py").exists()}


def test_a_folder_is_imported_without_its_files() -> None:
    for file in RULES.rglob("__init__.py"):
        assert not modules_of(file, types=True) | imported_from_elsewhere(file), file


CODE = re.compile(r"GM\d{3}-[RT]\d\d")


def test_a_code_is_written_once() -> None:
    """With what is said of it; the constant that it gives is used elsewhere."""
    texts = {file: file.read_text(encoding="utf-8") for file in FILES}
    written = [code for text in texts.values() for code in re.findall(rf'"({CODE.pattern})"', text)]
    assert sorted(written) == sorted({*CODES, SWITCHED_OFF.code})
    for file in (*(file for file in FILES if file.name == "codes.py"), PACKAGE / "engine/attempt/refusals.py"):
        for name in re.findall(r"^([A-Z_]+) = (?:code|of_rules)\(", texts[file], re.MULTILINE):
            users = [text for other, text in texts.items() if other != file]
            assert any(re.search(rf"import .*\b{name}\b|\.{name}\b", text, re.DOTALL) for text in users), (file, name)


def test_a_rule_spells_its_codes() -> None:
    """The adapter says in words of its own why something cannot be done."""
    of_engine = set(CODE.findall((PACKAGE / "engine/attempt/refusals.py").read_text(encoding="utf-8")))
    assert of_engine == {"GM100-T01", "GM100-T02", "GM100-T03", "GM104-T09"}


def test_only_what_is_traced_knows_torch() -> None:
    for file in FILES:
        if RULES in file.parents:
            names = {name.partition(".")[0] for name in imported_from_elsewhere(file)}
            assert ("torch" not in names) or part_of(file) == "traced", file


def imported_from_elsewhere(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_no_file_imports_in_a_circle() -> None:
    """Imports within functions count, and those for types alone: they say as well who knows whom."""
    imported = {file: modules_of(file, types=True) for file in FILES}
    done: set[Path] = set()

    def visit(file: Path, above: tuple[Path, ...]) -> None:
        assert file not in above, [each.name for each in (*above[above.index(file) :], file)]
        if file not in done:
            for other in imported[file]:
                visit(other, (*above, file))
            done.add(file)

    for file in FILES:
        visit(file, ())


def test_only_the_adapter_knows_the_private_parts_of_torch() -> None:
    for file in FILES:
        if PACKAGE / "engine" not in file.parents and file.name not in PROGRAMS:
            assert not private_names(file), file


def private_names(file: Path) -> set[str]:
    """The dotted names in `file` that lead to what torch keeps to itself."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    found = imported_from_elsewhere(file) | {ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)}
    return {name for name in found if PRIVATE.match(name)}


def test_a_private_name_would_be_seen(tmp_path: Path) -> None:
    texts = ("from torch._dynamo import config", "import torch._guards", "torch._C.f()", "torch.utils._pytree.tree_map")
    for text in (*texts, "from torch.fx.experimental import symbolic_shapes", "from torch import _guards"):
        (tmp_path / "module.py").write_text(text, encoding="utf-8")
        assert private_names(tmp_path / "module.py"), text


def test_importing_the_package_imports_nothing_heavy(python: Any) -> None:
    done = python("-c", "import sys, graphmend_hook; print(*sys.modules)")
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"torch", "bytecode", "platformdirs", "ast", "argparse", "graphmend_hook.rewrite"})


def test_installing_the_hook_imports_no_more_than_it_needs(python: Any) -> None:
    """Each of these is a millisecond or more at the start of every process of a job."""
    before, after = (
        set(python("-c", f"import sys{more}; print(*sys.modules)", GRAPHMEND_MODULES="app").stdout.split())
        for more in ("", ", graphmend_hook")
    )
    unwanted = {"importlib.abc", "importlib.resources", "tempfile", "shutil", "random", "argparse"}
    assert (after - before).isdisjoint(unwanted | {"subprocess", "rich", "torch", "bytecode", "graphmend_hook.cli"})


def test_every_code_is_documented_once() -> None:
    from graphmend_hook.diagnostics import NOTICES

    text = "\n".join(file.read_text(encoding="utf-8") for file in FILES)
    for code in NOTICES:
        assert text.count(f'notice("{code}"') + text.count(f'say_once("{code}"') >= 1, code


def test_the_docs_name_files_that_exist() -> None:
    project = PACKAGE.parent
    for page in (*project.glob("docs/*.md"), *project.glob("*.md")):
        if page.name != "CHANGELOG.md":
            for name in re.findall(r"`([\w./]+/\w+\.py)`", page.read_text(encoding="utf-8")):
                assert (project / name).exists() or (PACKAGE / name).exists(), (page, name)
