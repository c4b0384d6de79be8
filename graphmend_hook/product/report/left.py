"""Which mended sites were left as they were written while Dynamo traced: each is told of once, as that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...diagnostics import Outcome, rule_of
from ...rules.codes import TOLD

Entry = dict[str, Any]
Place = tuple[str, int]


def mark(modules: Iterable[Entry], traced: Iterable[Entry]) -> None:
    """Give each site that `traced` is about its outcome, with the code and the reason that came first."""
    mended: dict[Place, list[Entry]] = {}
    for module in modules:
        for site in module["sites"]:
            if site["outcome"] == Outcome.MENDED.value:
                mended.setdefault((module["path"], site["line"]), []).append(site)
    for item in traced:
        if item["code"] in TOLD:
            continue
        there = mended.get((item["path"], item["line"]), [])
        for site in [site for site in there if site["rule"] == rule_of(item["code"])] or there:
            if site["outcome"] == Outcome.MENDED.value:
                site.update(outcome=Outcome.LEFT.value, code=item["code"], reason=item["reason"])


def unmarked(module: Entry) -> Entry:
    """The module as it was before anything was traced."""
    as_mended = {"outcome": Outcome.MENDED.value, "code": "", "reason": ""}
    sites = [{**site, **(as_mended if site["outcome"] == Outcome.LEFT.value else {})} for site in module["sites"]]
    return {**module, "sites": sites}


def places(traced: Iterable[Entry]) -> Iterator[list[Entry]]:
    """What was left, by the statement, each with all of its reasons: the first one, then those of later attempts."""
    found: dict[Place, dict[str, Entry]] = {}
    for item in traced:
        if item["code"] not in TOLD:
            found.setdefault((item["path"], item["line"]), {}).setdefault(item["code"], item)
    return (list(reasons.values()) for reasons in found.values())
