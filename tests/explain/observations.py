"""What the pages of the tests are made from: observations of programs that were never run, as `observe` writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from graphmend_hook.product.explain.join import Explanation, explain
from graphmend_hook.product.explain.page import html
from graphmend_hook.settings.syntax import RULE_NAMES

Calls = list[tuple[list[tuple[str, int, str]], int]]  # of a graph: tracebacks, and how many operations have each


def region(name: str, file: str, line: int, graphs: list[Calls]) -> dict[str, Any]:
    listed = [[{"stack": stack, "operations": count} for stack, count in calls] for calls in graphs]
    return {"name": name, "file": file, "line": line, "graphs": [listed]}


def broken(stack: list[tuple[str, int, str]], kind: str = "K", reason: str = "why") -> dict[str, Any]:
    return {"kind": kind, "reason": reason, "stack": stack}


def observed(regions: list[dict[str, Any]], breaks: list[dict[str, Any]], backend: str = "inductor") -> dict[str, Any]:
    return {"regions": regions, "breaks": breaks, "backends": [backend]}


def mended(rule: str, function: str, line: int) -> dict[str, Any]:
    return {"rule": rule, "function": function, "line": line, "outcome": "mended", "code": "", "reason": ""}


def joined(
    before: dict[str, Any], after: dict[str, Any], sites: dict[str, list[dict[str, Any]]], *command: str
) -> Explanation:
    """sites: of each module that is mended, by its file."""
    modules = [
        {"name": Path(file).stem, "path": file, "status": "mended", "why": "", "sites": each}
        for file, each in sites.items()
    ]
    hook = {"modules": [module["name"] for module in modules], "rules": list(RULE_NAMES), "values": []}
    process = {"python": "3.11.7", "torch": "2.13.0+cpu", "version": "0.1.0", "hooks": [hook]}
    return explain(
        command or ["train.py"], before, {**after, "report": {"processes": [process], "modules": modules, "traced": []}}
    )


def written(found: Explanation, folder: Path) -> Path:
    path = folder / "page.html"
    path.write_text(html(found), encoding="utf-8")
    return path


def data_of(text: str) -> dict[str, Any]:
    """What the script of a page is given."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data: dict[str, Any] = json.loads(found)
    return data


def long_page(graphs: int, folder: Path) -> Path:
    """The page of a program with many small functions in a deep folder: each has a break, which splits it in two.

    Every third break remains.
    """
    deep = folder / "a_folder_that_is_deep_in_a_tree" / "of_packages_with_names_that_are_long" / "and_another_one_below"
    deep.mkdir(parents=True)
    file = str(deep / "steps_of_a_program.py")
    names = [f"step_{index}_of_a_program_with_many_small_functions_in_it" for index in range((graphs + 1) // 2)]
    lines = ["import logging, torch", "logger = logging.getLogger(__name__)"]
    for name in names:
        lines += [
            f"def {name}(x):",
            "    x = x + len('a')",
            "    logger.warning('%s', 1)  # a step",
            "    return x * 2",
            "",
        ]
    Path(file).write_text("\n".join(lines), encoding="utf-8")
    starts = {name: 5 * index + 3 for index, name in enumerate(names)}
    first = {name: [([(file, start + 1, name)], 1 + (start % 7) ** 3)] for name, start in starts.items()}
    second = {name: [([(file, start + 3, name)], 2)] for name, start in starts.items()}
    breaks = [broken([("train.py", 3, "run"), (file, start + 2, name)]) for name, start in starts.items()]
    before = [region(name, file, 1, [first[name], second[name]]) for name in names]
    left = set(names[::3])
    after = [region(name, file, 1, [first[name], second[name]] if name in left else [first[name]]) for name in names]
    sites = [mended("defer", name, start + 2) for name, start in starts.items()]
    kept = [each for each in breaks if each["stack"][-1][2] in left]
    return written(joined(observed(before, breaks), observed(after, kept), {file: sites}), folder)
