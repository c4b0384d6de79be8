"""``graphmend rules [CODE|RULE]``: the rules and the codes, the manual page of a rule, or what to do about a code."""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ...diagnostics import NOTICES, ConfigError, GraphmendError
from ...rewrite import SWITCHED_OFF
from ...rules.base import Rule
from ...rules.codes import BY_RULE, REFUSALS, RULE_OF_CODE
from ...rules.order import ORDER
from ..report.text import PLAIN
from .examples import EXAMPLES
from .remedies import remedy

HELP = "list the rules and the codes, or explain one"
_OBLIGATION = re.compile(r"    (GM\d{3})-(R\d\d(?:(?:, | to )R\d\d)*)\s+(.*)")
_REFERENCE = re.compile(r"as those of (GM\d{3})\b")
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
        "Declined while rewriting, unless": [code for code in known if code.is_obligation],
        "Left as it was written while tracing, because": [code for code in known if "-T" in code.code],
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
    lines, example = [remedy(code.code)], EXAMPLES.get(code.code)
    if example is not None:
        lines.append("")
        for text in filter(None, itertools.chain(*example.parts())):
            lines += [*text.splitlines(), ""]
    lines.append("`--report` and `graphmend explain` name each place, and what is in the way there.")
    lines.append(f"`# graphmend: off[{code.rule}]` on its line says that it is to stay as it is.")
    return [*lines, f"Manual page: graphmend rules {code.rule}"]


@dataclass(frozen=True)
class Code:
    """A stable code.  rule: the name of the rule that it belongs to, "" for none.  sentence: what the code says.

    For a refusal while rewriting (GMnnn-Rnn) the sentence is the obligation that a statement does not meet.
    """

    code: str
    rule: str
    sentence: str

    @property
    def is_obligation(self) -> bool:
        return "-R" in self.code and self.code != SWITCHED_OFF.code


def page(rule: Rule) -> str:
    """The manual page of `rule`: the docstring of its file.  Raises GraphmendError under ``python -OO``."""
    text = sys.modules[type(rule).__module__].__doc__
    if text is None:
        raise GraphmendError("the manual pages are docstrings, which python -OO leaves out; run without -OO")
    return text.strip()


def title(rule: Rule) -> str:
    """The first line of the manual page, without the rule's name."""
    return page(rule).partition("\n")[0].partition("] ")[2]


def codes() -> dict[str, Code]:
    """Every code, by its name: notices, then refusals, rule by rule."""
    found = [Code(code, "", _PLACEHOLDER.sub(lambda hole: hole[1].upper(), text)) for code, text in NOTICES.items()]
    found.append(Code(SWITCHED_OFF.code, "", SWITCHED_OFF.text))
    found += [Code(code, "", text) for code, text in REFUSALS.items() if not code.startswith((*RULE_OF_CODE,))]
    obligations = {rule.name: _obligations(page(rule)) for rule in ORDER}
    sentences = {code: text for texts in obligations.values() for code, text in texts.items()}
    for rule, texts in obligations.items():
        for code, text in sorted(texts.items()):
            other = _REFERENCE.match(text)  # to the same obligation of another rule
            found.append(Code(code, rule, sentences[f"{other[1]}-{code.partition('-')[2]}"] if other else text))
        found += [Code(code, rule, text) for code, text in BY_RULE[rule].items()]
    return {code.code: code for code in found}


def _obligations(text: str) -> dict[str, str]:
    """The lines ``GMnnn-Rnn  sentence`` of a manual page; one line may name several codes (``R01, R03 to R05``)."""
    found: dict[str, str] = {}
    for match in filter(None, map(_OBLIGATION.fullmatch, text.split("\n"))):
        for part in match[2].split(", "):
            first, _, last = part.partition(" to ")
            for number in range(int(first[1:]), int((last or first)[1:]) + 1):
                found[f"{match[1]}-R{number:02}"] = match[3]
    return found
