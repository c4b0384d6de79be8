"""``graphmend rules [CODE|RULE]``: the rules and the codes, the manual page of a rule, or what to do about a code."""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
import sys
import textwrap

from rich.console import Console
from rich.table import Table

from ...diagnostics import CODES, NOTICES, Code, ConfigError, GraphmendError
from ...rewrite import SWITCHED_OFF
from ...rules import codes as _codes  # noqa: F401  all of them
from ...rules.base import Rule
from ...rules.order import ORDER
from ..report.text import PLAIN
from .examples import example_of

HELP = "list the rules and the codes, or explain one"
DECLINED = "Declined while rewriting, unless"
LEFT = "Left as it was written while tracing, because"
_PLACEHOLDER = re.compile(r"\{(\w+)(?:!r)?\}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="CODE|RULE", nargs="?", help="a code such as GM102-R05, or the name of a rule")


def run(options: argparse.Namespace) -> int:
    """Print what `options.name` asks for.  Raises ConfigError for a name that there is not."""
    console = Console(**PLAIN, soft_wrap=True)
    if options.name is None:
        _print_tables(console)
        return 0
    rules = {rule.name: rule for rule in ORDER}
    known = codes()
    if options.name.lower() in rules:
        for line in page(rules[options.name.lower()]).split("\n"):
            console.print(line, style="" if line[:1].isspace() else "bold")
    elif options.name.upper() in known:
        code = known[options.name.upper()]
        meaning = f"declined while rewriting, unless {code.sentence}" if code.is_obligation else code.sentence
        console.print(f"{code.code}: {meaning}", style="bold")
        for line in _advice(code):
            console.print(f"  {line}".rstrip())
    else:
        names = [*rules, *known]
        near = difflib.get_close_matches(options.name.upper(), names, 5, 0.7)
        near += difflib.get_close_matches(options.name.lower(), rules)
        hint = f"did you mean {', '.join(near)}?" if near else "`graphmend rules` lists them"
        raise ConfigError(f"there is no rule or code {options.name!r}; {hint}")
    return 0


def _print_tables(console: Console) -> None:
    rules = Table("rule", "version", "what it does", title="Rules", title_justify="left")
    for rule in ORDER:
        rules.add_row(rule.name, str(rule.version), title(rule))
    console.print(rules)
    known = codes().values()
    groups = {
        "Notices": [code for code in known if not code.rule],
        DECLINED: [code for code in known if code.is_obligation],
        LEFT: [code for code in known if "-T" in code.code],
    }
    for heading, members in groups.items():
        table = Table("code", "rule", "sentence", title=heading, title_justify="left")
        for code in members:
            table.add_row(code.code, code.rule or "-", code.sentence)
        console.print()
        console.print(table)


def _advice(code: Code) -> list[str]:
    """What to do about it, and where to read on; the text of a notice says so itself."""
    if not code.rule:
        return []
    lines, example = [code.remedy], example_of(code.code)
    if example is not None:
        lines.append("")
        for text in filter(None, itertools.chain(*example.parts)):
            lines += [*text.splitlines(), ""]
    lines.append("`--report` and `graphmend explain` name each place, and what is in the way there.")
    lines.append(f"`# graphmend: off[{code.rule}]` on its line says that it is to stay as it is.")
    return [*lines, f"Manual page: graphmend rules {code.rule}"]


def page(rule: Rule) -> str:
    """The manual page of `rule`: the docstring of its file, and its codes.

    Raises GraphmendError under ``python -OO``.
    """
    text = sys.modules[type(rule).__module__].__doc__
    if text is None:
        raise GraphmendError("the manual pages are docstrings, which python -OO leaves out; run without -OO")
    mine = [code for code in codes().values() if code.rule == rule.name]
    parts = [text.strip()]
    for heading, kind in ((DECLINED, "-R"), (LEFT, "-T")):
        listed = [_listed(code) for code in mine if kind in code.code]
        parts += ["\n".join([heading, *listed])] if listed else []
    return "\n\n".join(parts)


def _listed(code: Code) -> str:
    return textwrap.fill(f"{code.code}  {code.sentence}", 120, initial_indent=" " * 4, subsequent_indent=" " * 15)


def title(rule: Rule) -> str:
    """The first line of the manual page, without the rule's name."""
    return page(rule).partition("\n")[0].partition("] ")[2]


def codes() -> dict[str, Code]:
    """Every code, by its name: notices, then refusals, rule by rule."""
    found = [Code(code, _PLACEHOLDER.sub(lambda hole: hole[1].upper(), text)) for code, text in NOTICES.items()]
    found.append(Code(SWITCHED_OFF.code, SWITCHED_OFF.text))
    for rule in ("", *(rule.name for rule in ORDER)):
        found += sorted(code for code in CODES.values() if code.rule == rule)
    return {code.code: code for code in found}
