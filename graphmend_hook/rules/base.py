"""What a rule is: a pure `match` gives a coded refusal, or a candidate, which cannot refuse; and what rules share."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Protocol

from ..diagnostics import Refusal
from ..source.scopes import ModuleScope, Place
from .defer.known_calls import FOREIGN_COMPILERS
from .shared.codes import OTHER_COMPILER, READS_FRAME, SUSPENDS


class Candidate(Protocol):
    """A statement that can be mended, taken apart."""

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        """The statements that take its place: an ``if`` whose ``else`` is the original, verbatim.

        mended: the statement with those inside it mended; the statement itself where there are none.
        """


@dataclass(frozen=True)
class Ready:
    """A candidate in whose place stand statements that do not depend on those inside it."""

    statements: list[ast.stmt]

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        return self.statements


class Rule(Protocol):
    """One rewriting rule.

    name: how settings, opt-outs and reports call it.
    version: part of the cache key; raised with every change of what its candidates emit.
    fallback: it is also tried where a rule before it refused.
    triggers: a module in whose text none of them is found is not even parsed for this rule.  `re` looks for the first
        letters of each much faster than for those of all.
    """

    name: str
    version: int
    fallback: bool

    @property
    def triggers(self) -> tuple[re.Pattern[bytes], ...]: ...

    def match(self, place: Place, scope: ModuleScope) -> Candidate | Refusal | None:
        """A candidate for the statement at `place`, a refusal with its reason, or None: not this rule's business."""


class Declined(Exception):  # noqa: N818  control flow, not an error
    """How a rule gives up a statement that it is taking apart; the refusal says why.

    codes: that of each rule which may give it (`diagnostics.of_rules`).
    """

    def __init__(self, codes: tuple[str, ...], text: str) -> None:
        super().__init__(codes, text)
        self.codes, self.text = codes, text

    def refusal(self, rule_code: str) -> Refusal:
        """With the code that begins with `rule_code`; where there is none, with that of another rule."""
        return Refusal(next((code for code in self.codes if code.startswith(rule_code)), self.codes[0]), self.text)


def compiled_elsewhere(place: Place, scope: ModuleScope, rule_code: str) -> Refusal | None:
    """The refusal, under the rule's code, if a decorator of another compiler reads the function's code."""
    for function in place.function.lineage():
        for decorator in function.node.decorator_list:
            maker = getattr(decorator, "func", decorator)
            if scope.imports.qualified(maker).partition(".")[0] in FOREIGN_COMPILERS:
                return Declined(OTHER_COMPILER, "another compiler compiles the function").refusal(rule_code)
    return None


def unsuitable(place: Place, scope: ModuleScope, rule_code: str) -> Refusal | None:
    """The refusal, under the rule's code, if nothing data-dependent in the function can be rewritten."""
    function = place.function
    if function.is_async or function.is_generator:
        return Declined(SUSPENDS, "the function is a coroutine or a generator").refusal(rule_code)
    if function.reads_its_frame:
        text = "the function reads its own frame (locals, exec, eval, frame objects)"
        return Declined(READS_FRAME, text).refusal(rule_code)
    return compiled_elsewhere(place, scope, rule_code)
