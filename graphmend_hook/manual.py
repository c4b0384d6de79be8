"""The manual: pages of the rules and sentences of the codes, read from where the code itself keeps them."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from .diagnostics import NOTICES, GraphmendError
from .rewrite import SWITCHED_OFF
from .rules.base import Rule
from .rules.codes import BY_RULE, REFUSALS, RULE_OF_CODE
from .rules.order import ORDER

_OBLIGATION = re.compile(r"    (GM\d{3})-(R\d\d(?:(?:, | to )R\d\d)*)\s+(.*)")
_REFERENCE = re.compile(r"as those of (GM\d{3})\b")
_PLACEHOLDER = re.compile(r"\{(\w+)(?:!r)?\}")


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
        found += [Code(code, rule, _resolved(code, text, sentences)) for code, text in sorted(texts.items())]
        found += [Code(code, rule, text) for code, text in BY_RULE[rule].items()]
    return {code.code: code for code in found}


def _obligations(text: str) -> dict[str, str]:
    """The lines ``GMnnn-Rnn  sentence`` of a manual page; one line may name several codes (``R10 to R15``)."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        match = _OBLIGATION.fullmatch(line)
        if match:
            found |= {f"{match[1]}-R{number:02}": match[3] for number in _numbers(match[2])}
    return found


def _numbers(text: str) -> list[int]:
    """The numbers of ``R01, R03 to R05``."""
    numbers: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition(" to ")
        numbers += range(int(first[1:]), int((last or first)[1:]) + 1)
    return numbers


def _resolved(code: str, text: str, sentences: dict[str, str]) -> str:
    """`text`, or the sentence of the code of another rule that it refers to."""
    reference = _REFERENCE.match(text)
    return sentences[f"{reference[1]}-{code.partition('-')[2]}"] if reference else text
