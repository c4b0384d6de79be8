"""``graphmend rules [CODE|RULE]``: the rules and the codes, the manual page of a rule, or what to do about a code."""

from __future__ import annotations

import argparse
import difflib

from rich.console import Console
from rich.table import Table

from ..diagnostics import ConfigError
from ..manual import Code, codes, page, title
from ..reporting.text import PLAIN
from ..rules.order import ORDER

HELP = "list the rules and the codes, or explain one"


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
            console.print(f"  {line}")
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
    if code.is_obligation:
        what = "The statement runs as it was written, and breaks the graph there.  Write it so that the above holds;"
        where = "`graphmend diff MODULE` and `--report` name each place, and what is in the way there."
    else:
        what = "The statement is left as it was written in the trace at hand, and breaks the graph there;"
        where = "`--report` names each place, GRAPHMEND_LOG=debug says it when it happens."
    silence = f"`# graphmend: off[{code.rule}]` on its line says that it is to stay."
    return [what, where, silence, f"Manual page: graphmend rules {code.rule}"]
