"""What the tests of [Where] and [Trap] as rewriters have in common: texts of modules, and what becomes of their sites."""

from __future__ import annotations

import textwrap
from typing import Any

from graphmend_hook.diagnostics import Outcome, Site
from graphmend_hook.rewrite import active_rules, rewrite

RULES = active_rules(("defer", "trap", "where"))


def module(text: str) -> str:
    """`text`, dedented, after ``import torch`` on a line of its own."""
    return "import torch\n" + textwrap.dedent(text).strip("\n") + "\n"


def sites(text: str, rules: Any = RULES) -> list[Site]:
    return list(rewrite(text.encode(), "module.py", rules).sites)


def codes(text: str, rules: Any = RULES) -> list[str]:
    """The code of every site, "mended" for those that are."""
    return [site.code if site.outcome is Outcome.DECLINED else f"{site.rule} mended" for site in sites(text, rules)]


# What a function that is run again as it was written raises by itself.
RAISED_AGAIN = [
    "assert x.any(), unknown(x)",
    "if n: k = 1\nassert x.any(), k",
    "if x.any():\n    raise ValueError(k := 1)",
    "if x.any():\n    raise super().error(1)",
    "if x.any():\n    raise ValueError(variable)",
    "if x.any():\n    raise ValueError(unknown(x))",
    "if x.any():\n    raise ValueError(reads_variable())",
    "if n: k = 1\nif x.any():\n    raise ValueError(k)",
    "if x.any():\n    k = unknown(x)\n    raise ValueError(k)",
    "if x.any():\n    for k in x: unknown(k)\n    raise ValueError",
    "if x.any():\n    x = unknown(x)\nelse:\n    raise ValueError",
    "if x.any():\n    if unknown(x):\n        raise KeyError\n    else:\n        raise ValueError\nreturn x",
]
PRELUDE = (
    "variable = 1\ndef reads_variable():\n    return variable\ndef sets():\n    global variable\n    variable = 2\n"
)


def method(body: str) -> str:
    """A module with a method of that body."""
    text = "def f(self, x, n):\n" + textwrap.indent(body, "    ")
    return f"import sys, torch\n{PRELUDE}class A:\n" + textwrap.indent(text, "    ") + "\n"
