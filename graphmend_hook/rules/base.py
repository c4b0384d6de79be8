"""What a rule is: a pure `match` that gives a coded refusal, or a candidate that emits itself and cannot refuse."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Protocol

from ..analysis.scopes import ModuleScope, Place
from ..diagnostics import Refusal


class Trigger(Protocol):
    """A text test on a source."""

    def search(self, source: bytes, /) -> object:
        """What is found, as something true."""


class AnyOf:
    """Is one of the patterns found?  `re` looks for the first letters of each much faster than for those of all."""

    def __init__(self, *patterns: bytes) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]

    def search(self, source: bytes, /) -> bool:
        return any(pattern.search(source) for pattern in self._patterns)


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
    trigger: a text test on the source; a module that it does not find is not even parsed for this rule.
    """

    name: str
    version: int
    fallback: bool

    @property
    def trigger(self) -> Trigger: ...

    def match(self, place: Place, scope: ModuleScope) -> Candidate | Refusal | None:
        """A candidate for the statement at `place`, a refusal with its reason, or None: not this rule's business."""
