"""Pages, and parts of pages, that are made of the package's own data: codes, remedies, settings, manual pages."""

from __future__ import annotations

import re

import links

from graphmend_hook.diagnostics import Code
from graphmend_hook.product.commands.examples import example_of
from graphmend_hook.product.commands.rules import codes, page
from graphmend_hook.pytest_plugin import _ini, _option
from graphmend_hook.rules.order import ORDER
from graphmend_hook.settings.config import SETTINGS, Setting, Settings

RULES = {f"{rule.name}.md": rule for rule in ORDER}
ROW = re.compile(r"^\| `(GRAPHMEND_\w+)` \| `--[a-z-]+` \| (.*) \|$", re.MULTILINE)


def settings_page() -> str:
    """Each setting with all its names: what it means is said by the README's table alone."""
    meanings = dict(ROW.findall((links.ROOT / "README.md").read_text(encoding="utf-8")))
    lines = [
        "# Settings\n",
        "Each setting has a variable, an option of the commands, an argument of `graphmend_hook.install`, an option of",
        "pytest and a key of pytest's ini file. An option or an argument wins over the key of the ini file, and that",
        "over the variable. But what `GRAPHMEND_DENY` names is left alone, whatever is said elsewhere, and",
        "`GRAPHMEND_DISABLE` wins over everything.",
    ]
    for setting in SETTINGS:
        lines += ["", f"## {setting.variable()}\n", _sentence(meanings[setting.variable()]), "", *_names(setting)]
    return _on_docs("\n".join(lines)) + "\n"


def _names(setting: Setting) -> list[str]:
    default = setting.show(getattr(Settings(), setting.name)) or "empty"
    rows = {
        "option": f"{setting.option()}{' ' + setting.metavar if setting.metavar else ''}",
        "argument of `install`": setting.keyword(),
        "pytest": f"{_option(setting)}`, `{_ini(setting)}",
        "default": default,
        "decides": "",
    }
    shown = [f"| {what} | `{text}` |" for what, text in rows.items() if text]
    return ["| where | as |", "|---|---|", *shown, f"| decides | {setting.kind.value} |"]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _on_docs(text: str) -> str:
    """Links of the README, as they are from a page in docs/."""
    return text.replace("](docs/", "](")


def codes_page() -> str:
    """Each code, what it means and what to do, in the order of `graphmend rules`."""
    lines = [
        "# Codes\n",
        "What reports, `graphmend explain` and the log say by a code, and what to do about it. `graphmend rules CODE`",
        "prints the same. A code is never reused for another meaning.",
    ]
    group = None
    for code in codes().values():
        if code.rule != group:
            group = code.rule
            lines += ["", f"## [{group.capitalize()}]({group}.md)" if group else "## Notices"]
        lines += ["", *_entry(code)]
    return "\n".join(lines) + "\n"


def _entry(code: Code) -> list[str]:
    meaning = f"Declined while rewriting, unless {code.sentence}." if code.is_obligation else f"{code.sentence}."
    lines = [f"### {code.code}\n", _escaped(_sentence(meaning.rstrip(".")))]
    if code.rule:
        lines += ["", f"**What to do.** {code.remedy}"]
    example = example_of(code.code)
    for words, program in example.parts if example is not None else ():
        lines += ["", words] if words else []
        lines += ["", f"```python\n{program}```"] if program else []
    return lines


def _escaped(text: str) -> str:
    """Words such as ``*args`` and ``MODULE_NAME`` stay as they are."""
    return re.sub(r"``(.+?)``|([*_<>])", lambda found: f"`{found[1]}`" if found[1] else f"\\{found[2]}", text)


def appendix(name: str) -> str:
    """What the page `name` has at its end: for a page of a rule, its codes and its manual page."""
    rule = RULES.get(name)
    if rule is None:
        return ""
    mine = [code for code in codes().values() if code.rule == rule.name]
    rows = [f"| [{code.code}](codes.md#{code.code.lower()}) | {_escaped(code.remedy)} |" for code in mine]
    table = ["| code | what to do |", "|---|---|", *rows]
    manual = [f"`graphmend rules {rule.name}` prints it.\n", f"```text\n{page(rule)}\n```", ""]
    return "\n".join(["\n## Remedies\n", *table, "\n## Manual page\n", *manual])


PAGES = {"codes.md": codes_page, "settings.md": settings_page}
