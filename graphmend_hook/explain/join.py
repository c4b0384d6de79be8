"""Joins what Dynamo did without the hook, what it did with it, and what the hook has to say of each line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from ..reporting.text import shorten
from .sources import is_foreign, module_of, statement_at

Json = dict[str, Any]
SCHEMA = 1

REMOVED, REMAINING, NEW = "removed", "remaining", "new"


@dataclass(frozen=True)
class Break:
    """Where Dynamo stops: the user's statement, why, and what the hook says of it.

    state: "removed" by the hook, "remaining", or "new", which only the mended program has.
    times: how often it was met (in how many frames, layers, recompilations), without the hook and with it.
    code: that of a refusal, else "".
    """

    file: str
    line: int
    function: str
    text: str
    kind: str
    reason: str
    state: str
    times: tuple[int, int]
    code: str = ""
    said: str = ""
    advice: str = ""

    @property
    def key(self) -> str:
        """What names the break in a baseline: no line number, so that code above it may change."""
        return f"{module_of(self.file)}:{self.function}: {self.text} [{self.kind}]"


@dataclass(frozen=True)
class Region:
    """What one call of torch.compile made, called from one place; graphs are those of its first call.

    graphs, recompiled, operations: without the hook and with it.
    """

    name: str
    file: str
    line: int
    graphs: tuple[int, int]
    recompiled: tuple[int, int]
    operations: tuple[int, int]


@dataclass(frozen=True)
class Explanation:
    """All of it; `as_json` is the form for machines, documented in docs/explain.md."""

    command: tuple[str, ...]
    regions: tuple[Region, ...]
    breaks: tuple[Break, ...]
    before: Json = field(repr=False)
    after: Json = field(repr=False)

    @property
    def remaining(self) -> list[Break]:
        return [each for each in self.breaks if each.state != REMOVED]

    def as_json(self) -> Json:
        return {
            "schema": SCHEMA,
            "command": list(self.command),
            "regions": [asdict(region) for region in self.regions],
            "breaks": [{**asdict(each), "key": each.key} for each in self.breaks],
        }


def explain(command: Iterable[str], before: Json, after: Json, report: Json) -> Explanation:
    """Join two observations (`observe`) and the report of the mended run."""
    return Explanation(
        tuple(command), tuple(_regions(before, after)), tuple(_breaks(before, after, report)), before, after
    )


def _regions(before: Json, after: Json) -> Iterable[Region]:
    seen = [by_region(observed) for observed in (before, after)]
    for name, file, line in dict.fromkeys((*seen[0], *seen[1])):
        graphs = [arm.get((name, file, line), []) for arm in seen]
        first = [of_first_call(arm) for arm in graphs]
        yield Region(
            name,
            file,
            line,
            graphs=(len(first[0]), len(first[1])),
            recompiled=(len(graphs[0]) - len(first[0]), len(graphs[1]) - len(first[1])),
            operations=_pair(sum(graph["operations"] for graph in arm) for arm in first),
        )


def by_region(observed: Json) -> dict[tuple[str, str, int], list[Json]]:
    """The graphs of each region; one that has none is there too: Dynamo gave its frame up."""
    names = [(region["name"], region["file"], region["line"]) for region in observed["regions"]]
    found: dict[tuple[str, str, int], list[Json]] = {name: [] for name in names}
    for graph in observed["graphs"]:
        found[names[graph["region"]]].append(graph)
    return found


def of_first_call(graphs: list[Json]) -> list[Json]:
    """Those of a region's graphs that its first call made."""
    return [graph for graph in graphs if graph["call"] == graphs[0]["call"]]


def _pair(values: Iterable[int]) -> tuple[int, int]:
    first, second = values
    return first, second


Site = tuple[str, int]  # file, first line of the statement


def _breaks(before: Json, after: Json, report: Json) -> Iterable[Break]:
    ledger = _Ledger(report)
    seen = [_by_site(observed) for observed in (before, after)]
    for site in dict.fromkeys((*seen[0], *seen[1])):
        arms = [arm.get(site, []) for arm in seen]
        shown = (arms[1] or arms[0])[0]
        statement = statement_at(*site)
        state = REMOVED if not arms[1] else REMAINING if arms[0] else NEW
        verdict = ledger.of_removed(shown["stack"]) if state == REMOVED else ledger.of(shown, site)
        yield Break(
            *site,
            statement.function,
            statement.text,
            shown["kind"],
            _short(shown["reason"]),
            state,
            (len(arms[0]), len(arms[1])),
            *verdict,
        )


def _by_site(observed: Json) -> dict[Site, list[Json]]:
    """The breaks by the innermost statement of the user's; each once for a compilation."""
    found: dict[Site, list[Json]] = {}
    met: set[tuple[Any, ...]] = set()
    for each in observed["breaks"]:
        # A frame of the standard library that is compiled by itself is told of the user's line that called it.
        stacks = (each["stack"], each["outside"])
        own = ([place for place in stack if not is_foreign(place[0], observed["torch"])] for stack in stacks)
        stack = next(filter(None, own), each["stack"])
        file, line, _ = stack[-1]
        key = (tuple(each["compilation"]), each["kind"], *map(tuple, each["outside"]), *map(tuple, stack))
        if key not in met:
            met.add(key)
            found.setdefault((file, statement_at(file, line).line), []).append({**each, "stack": stack})
    return found


def _short(reason: str) -> str:
    """The lines of Dynamo's reason that a person needs: without links, contexts and tracebacks of its own."""
    lines = [line.strip() for line in reason.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("For more details", "Developer debug context:"))]
    return "\n".join(kept[:6])


Verdict = tuple[str, str, str]  # code, what is said, what to do


class _Ledger:
    """What the report of the mended run says of a line."""

    def __init__(self, report: Json) -> None:
        self._modules = {module["path"]: module for module in report["modules"]}
        self._traced: dict[Site, Json] = {}
        for refusal in report["traced"]:
            site = (refusal["path"], statement_at(refusal["path"], refusal["line"]).line)
            self._traced.setdefault(site, refusal)
        self._sites = {(module["path"], site["line"]): site for module in report["modules"] for site in module["sites"]}

    def of_removed(self, stack: list[list[Any]]) -> Verdict:
        """Which rule took the break away: that of the innermost statement around it that is mended."""
        for file, line, _ in reversed(stack):
            site = self._sites.get((file, statement_at(file, line).line))
            if site is not None and site["outcome"] == "mended":
                where = f"{shorten(file)}:{site['line']}"
                return "", f"mended by [{site['rule']}] at {where}", ""
        return "", "gone with another break that was mended", ""

    def of(self, each: Json, site: Site) -> Verdict:
        """What is said of a break at `site`; one inside a check function is that of the guard that calls it."""
        for file, line, _ in reversed(each["stack"]):
            place = (file, statement_at(file, line).line)
            known = self._sites.get(place)
            if place != site and (known is None or known["rule"] != "trap"):
                continue
            refusal = self._traced.get(place)
            if refusal is not None:
                return refusal["code"], f"left in place while tracing: {refusal['reason']}", _manual(refusal["code"])
            if known is not None and known["outcome"] == "declined":
                return known["code"], f"declined: {known['reason']}", _manual(known["code"])
        module = self._modules.get(site[0])
        name = module_of(site[0])
        if module is None:
            said = f"{name} is not among the modules that are mended"
            return "", said, f"add it: --modules (or GRAPHMEND_MODULES) with {name.partition('.')[0]}"
        if module["status"] == "imported too early":
            said = f"{module['name']} was imported before the hook was installed, and runs as it is"
            advice = "import graphmend_hook first, or start the program with python -m graphmend_hook; "
            return "GM001", said, advice + "graphmend doctor says who imports it"
        if module["status"] in ("not eligible", "failed"):
            return "", f"{module['name']} is {module['status']}: {module['why']}", "graphmend doctor"
        if site in self._sites:
            return "", "the statement is mended, and Dynamo stops at it for another reason", _hint(each["reason"])
        return "", "no rule is about this kind of statement", _hint(each["reason"])


def _manual(code: str) -> str:
    return f"graphmend rules {code}"


def _hint(reason: str) -> str:
    """Dynamo's own first hint."""
    hints = [line.strip().removeprefix("Hint:").strip() for line in reason.splitlines() if "Hint:" in line]
    return f"PyTorch's hint: {hints[0]}" if hints else "change the code, or leave the break"
