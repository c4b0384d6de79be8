"""What a rule is: a pure `match` that gives a candidate or a coded refusal, and a `rewrite` that cannot refuse."""

from __future__ import annotations

import ast
import re
from typing import Any, Protocol

from ..analysis.scopes import ModuleScope, Place
from ..diagnostics import Refusal


class Rule(Protocol):
    """One rewriting rule.

    name: how settings, opt-outs and reports call it.
    version: part of the cache key; raised with every change of what `rewrite` emits.
    fallback: it is also tried where a rule before it refused.
    trigger: a text test on the source; a module that it does not find is not even parsed for this rule.
    """

    name: str
    version: int
    fallback: bool
    trigger: re.Pattern[bytes]

    def match(self, place: Place, scope: ModuleScope) -> Any | Refusal | None:
        """A candidate for the statement at `place`, a refusal with its reason, or None: not this rule's business."""

    def rewrite(self, candidate: Any) -> list[ast.stmt]:
        """The statements that take the candidate's place: an ``if`` whose ``else`` is the original, verbatim."""
