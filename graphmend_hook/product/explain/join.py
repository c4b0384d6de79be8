"""Joins what Dynamo did without the hook, what it did with it, and what the hook's report has to say of each line."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...rules.value.codes import OF_AN_INPUT
from ..report.sources import Frame, module_of, statement_at
from .observe import Graph
from .verdicts import ADD, Start, Verdicts, start_of

SCHEMA = 2
Json = dict[str, Any]
REMOVED, REMAINING, NEW = "removed", "remaining", "new"


@dataclass(frozen=True)
class Caller:
    """How Dynamo came to a statement: the user's frames around it, outermost first; times: how often."""

    stack: tuple[Frame, ...]
    times: int


@dataclass(frozen=True)
class Break:
    """Where Dynamo stops: the user's statement, why, and what the hook says of it.

    state: "removed" by the hook, "remaining", or "new", which only the mended program has.
    times: how often it was met (in how many frames, layers, recompilations), without the hook and with it.
    code: that of a refusal, else "".
    callers: from where it was met, with the hook if it is there still.
    processes: those of the program's that met it, likewise; "" is the program itself.
    values: the inputs that `--values` is to name for it to go, where the refusal says that it goes so.
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
    callers: tuple[Caller, ...] = ()
    processes: tuple[str, ...] = ("",)
    values: tuple[str, ...] = ()

    @property
    def is_uncovered(self) -> bool:
        """Is it in a module that is not among those that are mended, but may be?"""
        return self.advice.startswith(ADD)

    @property
    def headline(self) -> str:
        """Dynamo's reason in one line: the kind of the break, and the explanation where there is one."""
        explained = re.search(r"^Explanation: (.*)", self.reason, re.MULTILINE)
        return f"{self.kind}: {explained[1]}" if explained else self.kind

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
    flag: str = ""  # what is set, and the packages that hold breaks and are not mended; "" where there are none
    values_flag: str = ""  # what is set, and the inputs whose values decide breaks; "" where there are none
    interrupted: bool = False  # the run with the hook was ended before its end

    @property
    def versions(self) -> dict[str, str]:
        """Of python, torch and this package, and of the packages whose modules were looked at."""
        report = self.after.get("report") or {"processes": [], "modules": []}
        found = {
            name: str(process[key])
            for process in report["processes"][:1]
            for name, key in (("python", "python"), ("torch", "torch"), ("graphmend_hook", "version"))
        }
        for package in sorted({module["name"].partition(".")[0] for module in report["modules"]}):
            with contextlib.suppress(PackageNotFoundError):
                found[package] = version(package)
        return found

    @property
    def backends(self) -> list[str]:
        """The names of the backends that were given a graph, without the hook or with it."""
        return [*dict.fromkeys((*self.before.get("backends", ()), *self.after.get("backends", ())))]

    @property
    def remaining(self) -> list[Break]:
        return [each for each in self.breaks if each.state != REMOVED]

    def as_json(self) -> Json:
        return {
            "schema": SCHEMA,
            "command": list(self.command),
            "versions": self.versions,
            "backends": self.backends,
            "regions": [asdict(region) for region in self.regions],
            "breaks": [{**asdict(each), "key": each.key} for each in self.breaks],
            "flag": self.flag,
            "values_flag": self.values_flag,
        }


def explain(command: Iterable[str], before: Json, after: Json) -> Explanation:
    """Join two observations (`observe`), without the hook and with it."""
    verdicts = Verdicts(after["report"])
    breaks = tuple(breaks_of(before["breaks"], after["breaks"], verdicts))
    flag = verdicts.flag(*verdicts.missing) if verdicts.missing else ""
    inputs = sorted({name for each in breaks for name in each.values})
    values = verdicts.values_flag(*inputs) if inputs else ""
    return Explanation(tuple(command), tuple(_regions(before, after)), breaks, before, after, flag, values)


def _regions(before: Json, after: Json) -> Iterable[Region]:
    seen = [by_region(observed) for observed in (before, after)]
    for region in dict.fromkeys((*seen[0], *seen[1])):
        (first, *later), (mended, *mended_later) = (arm.get(region, [[]]) for arm in seen)
        yield Region(
            *region,
            graphs=(len(first), len(mended)),
            recompiled=(sum(map(len, later)), sum(map(len, mended_later))),
            operations=(_operations(first), _operations(mended)),
        )


def by_region(observed: Json) -> dict[tuple[str, str, int], list[list[Graph]]]:
    """The graphs of each region by its calls; one that has none is there too: Dynamo gave its frame up."""
    return {(region["name"], region["file"], region["line"]): region["graphs"] for region in observed["regions"]}


def _operations(graphs: list[Graph]) -> int:
    return sum(each["operations"] for graph in graphs for each in graph)


def breaks_of(before: Iterable[Json], after: Iterable[Json], verdicts: Verdicts) -> Iterable[Break]:
    """The breaks of an observation; before: those without the hook."""
    seen = [_by_start(breaks) for breaks in (before, after)]
    for start in dict.fromkeys((*seen[0], *seen[1])):
        without, mended = (arm.get(start, []) for arm in seen)
        shown = (mended or without)[0]
        _, function, text = statement_at(*start)
        if mended:
            state = REMAINING if without else NEW
            verdict = verdicts.of(start, shown["stack"], shown["reason"])
        else:
            state, verdict = REMOVED, verdicts.of_removed(shown["stack"])
        times = (len(without), len(mended))
        met = Counter(tuple((*frame,) for frame in each["stack"][:-1]) for each in mended or without)
        callers = tuple(Caller(stack, count) for stack, count in met.most_common() if stack)
        who = tuple(dict.fromkeys(each.get("process", "") for each in mended or without))
        values: tuple[str, ...] = ()
        if verdict.code == OF_AN_INPUT and any(each["inputs"] for each in mended):
            values = tuple(sorted({name for each in mended for name in each["inputs"]}))
            verdict = verdict._replace(advice=f"if few values are met: {verdicts.values_flag(*values)}")
        reason = _short(shown["reason"])
        yield Break(*start, function, text, shown["kind"], reason, state, times, *verdict, callers, who, values)


def _by_start(breaks: Iterable[Json]) -> dict[Start, list[Json]]:
    """The breaks by the innermost statement."""
    found: dict[Start, list[Json]] = {}
    for each in breaks:
        file, line, _ = each["stack"][-1]
        found.setdefault(start_of(file, line), []).append(each)
    return found


def _short(reason: str) -> str:
    """The lines of Dynamo's reason that a person needs: without links, contexts and tracebacks of its own."""
    lines = [line.strip() for line in reason.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("For more details", "Developer debug context:"))]
    return "\n".join(kept[:6])
