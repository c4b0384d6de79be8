"""Breaks by their cause: those of which the same is said stand together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .join import REMOVED, Break

_UNCOVERED = "in modules that are not among those that are mended"


@dataclass(frozen=True)
class Cause:
    """Why breaks are gone, or are there still.

    title: what is said of all of them.  reason, advice: Dynamo's words, what to do, where they are the same for all.
    """

    state: str
    title: str
    reason: str
    advice: str
    breaks: tuple[Break, ...]


def causes_of(breaks: Iterable[Break]) -> list[Cause]:
    """What is left before what is gone, and the cause of most breaks first."""
    found: dict[tuple[str, str], list[Break]] = {}
    for each in breaks:
        found.setdefault((each.state, each.code or _title(each)), []).append(each)
    causes = [_cause(state, tuple(group)) for (state, _), group in found.items()]
    return sorted(causes, key=lambda cause: (cause.state == REMOVED, -len(cause.breaks)))


def _cause(state: str, breaks: tuple[Break, ...]) -> Cause:
    title = _common(map(_title, breaks)) or breaks[0].code  # what each has of its own is said there
    reason = "" if state == REMOVED else _common(each.headline for each in breaks)
    return Cause(state, title, reason, _common(each.advice for each in breaks), breaks)


def _common(texts: Iterable[str]) -> str:
    """The text that all are; "" if there are several."""
    different = set(texts)
    return different.pop() if len(different) == 1 else ""


def _title(each: Break) -> str:
    if each.state == REMOVED:
        return each.said.partition(" at ")[0]  # the rule; the place of its site is that of one break
    if each.is_uncovered:
        return _UNCOVERED
    return f"{each.code} {each.said}" if each.code else f"{each.said}: {each.kind}"
