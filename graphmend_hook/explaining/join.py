"""Joins what Dynamo did without the hook, what it did with it, and what the hook's report has to say of each line."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from ..diagnostics import TOO_EARLY
from ..reporting.sources import Frame, module_of, statement_at
from ..reporting.text import shorten
from .observe import Graph

SCHEMA = 2
_ADD = "add it: "  # the advice for a module that is not among those that are mended
Json = dict[str, Any]
Start = tuple[str, int]  # of a statement: its file, its first line
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

    @property
    def is_uncovered(self) -> bool:
        """Is it in a module that is not among those that are mended, but may be?"""
        return self.advice.startswith(_ADD)

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
        }


def explain(command: Iterable[str], before: Json, after: Json) -> Explanation:
    """Join two observations (`observe`), without the hook and with it."""
    verdicts = Verdicts(after["report"])
    breaks = tuple(breaks_of(before["breaks"], after["breaks"], verdicts))
    flag = verdicts.flag(*verdicts.missing) if verdicts.missing else ""
    return Explanation(tuple(command), tuple(_regions(before, after)), breaks, before, after, flag)


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
        yield Break(*start, function, text, shown["kind"], _short(shown["reason"]), state, times, *verdict, callers)


def _by_start(breaks: Iterable[Json]) -> dict[Start, list[Json]]:
    """The breaks by the innermost statement."""
    found: dict[Start, list[Json]] = {}
    for each in breaks:
        file, line, _ = each["stack"][-1]
        found.setdefault(_start(file, line), []).append(each)
    return found


def _short(reason: str) -> str:
    """The lines of Dynamo's reason that a person needs: without links, contexts and tracebacks of its own."""
    lines = [line.strip() for line in reason.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("For more details", "Developer debug context:"))]
    return "\n".join(kept[:6])


class Verdict(NamedTuple):
    """A sentence, and what to do about it; the code is that of a refusal, else ""."""

    code: str
    said: str
    advice: str


class Verdicts:
    """What a report says of the lines of the program that it is about.

    option: that which names the modules to mend, where the program is run.
    missing: the packages that hold breaks of which was asked, and are not among those that are mended.
    """

    def __init__(self, report: Json, option: str = "--modules") -> None:
        hooks = [hook for process in report.get("processes", ()) for hook in process["hooks"]]
        self._option = option
        self._set = [pattern for hook in hooks for pattern in hook["modules"]]
        self.missing: list[str] = []
        self._modules = {module["path"]: module for module in report["modules"]}
        self._sites = {(module["path"], site["line"]): site for module in report["modules"] for site in module["sites"]}
        self._traced = {_start(each["path"], each["line"]): each for each in reversed(report["traced"])}

    def of_removed(self, stack: list[Frame]) -> Verdict:
        """Which rule took the break away: that of the innermost statement around it that is mended."""
        for file, line, _ in reversed(stack):
            site = self._sites.get(_start(file, line))
            if site is not None and site["outcome"] == "mended":
                return Verdict("", f"mended by [{site['rule']}] at {shorten(file)}:{site['line']}", "")
        return Verdict("", "gone with another break that was mended", "")

    def of(self, start: Start, stack: Iterable[Frame], reason: str) -> Verdict:
        """What is said of a break at `start`, inside the calls of `stack`, outermost first, for Dynamo's `reason`.

        One inside a check function is that of the guard that calls it.
        """
        for file, line, _ in reversed(list(stack)):
            caller = _start(file, line)
            known = self._sites.get(caller)
            if caller != start and (known is None or known["rule"] != "trap"):
                continue
            refusal = self._traced.get(caller)
            if refusal is not None:
                return _refused(refusal["code"], f"left in place while tracing: {refusal['reason']}")
            if known is not None and known["outcome"] == "declined":
                return _refused(known["code"], f"declined: {known['reason']}")
        mended = "the statement is mended, and Dynamo stops at it for another reason"
        hints = [line.strip().removeprefix("Hint:").strip() for line in reason.splitlines() if "Hint:" in line]
        return self._of_module(start[0]) or Verdict(
            "",
            mended if start in self._sites else "no rule is about this kind of statement",
            f"PyTorch's hint: {hints[0]}" if hints else "change the code, or leave the break",
        )

    def flag(self, *names: str) -> str:
        """The option that adds the modules to those that are set."""
        return f"{self._option}=" + shlex.quote(",".join(dict.fromkeys([*self._set, *names])))

    def _of_module(self, file: str) -> Verdict | None:
        """Why nothing in the file was mended; None where it was looked at."""
        module = self._modules.get(file)
        if module is None:
            name = module_of(file)
            package = name.partition(".")[0]
            self.missing += [package] if package not in self.missing else []
            return Verdict("", f"{name} is not among the modules that are mended", f"{_ADD}{self.flag(package)}")
        name, status = module["name"], module["status"]
        if status == "imported too early":
            return Verdict("GM001", f"{name} was imported before the hook was installed, and runs as it is", TOO_EARLY)
        if status == "passed over":
            said = f"{name} is passed over: no compiled function was known to reach it"
            return Verdict("", said, f"name the module itself: {self.flag(name)}")
        if status in ("not eligible", "failed"):
            return Verdict("", f"{name} runs as it is, {status}: {module['why']}", "graphmend doctor")
        return None


def _start(file: str, line: int) -> Start:
    return file, statement_at(file, line).line


def _refused(code: str, said: str) -> Verdict:
    return Verdict(code, said, f"graphmend rules {code}")
