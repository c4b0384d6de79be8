"""Joins what Dynamo did without the hook, what it did with it, and what the hook has to say of each line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from ..reporting.sources import module_of, statement_at
from ..reporting.verdict import Json, Start, Verdicts
from .observe import Graph

SCHEMA = 1

_EXPLANATION = "Explanation: "
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
    def headline(self) -> str:
        """Dynamo's reason in one line: the kind of the break, and the explanation where there is one."""
        lines = self.reason.splitlines()
        explained = next((line for line in lines if line.startswith(_EXPLANATION)), "")
        return f"{self.kind}: {explained.removeprefix(_EXPLANATION)}" if explained else self.kind

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


def explain(command: Iterable[str], before: Json, after: Json) -> Explanation:
    """Join two observations (`observe`), without the hook and with it."""
    return Explanation(tuple(command), tuple(_regions(before, after)), tuple(_breaks(before, after)), before, after)


def breaks_of(observed: Json) -> list[Break]:
    """The breaks of one observation alone; all of them are "new"."""
    return list(_breaks({"breaks": []}, observed))


def _regions(before: Json, after: Json) -> Iterable[Region]:
    seen = [by_region(observed) for observed in (before, after)]
    for name, file, line in dict.fromkeys((*seen[0], *seen[1])):
        (first, *later), (mended, *mended_later) = (arm.get((name, file, line), [[]]) for arm in seen)
        yield Region(
            name,
            file,
            line,
            graphs=(len(first), len(mended)),
            recompiled=(sum(map(len, later)), sum(map(len, mended_later))),
            operations=(_operations(first), _operations(mended)),
        )


def by_region(observed: Json) -> dict[tuple[str, str, int], list[list[Graph]]]:
    """The graphs of each region by its calls; one that has none is there too: Dynamo gave its frame up."""
    return {(region["name"], region["file"], region["line"]): region["graphs"] for region in observed["regions"]}


def _operations(graphs: list[Graph]) -> int:
    return sum(each["operations"] for graph in graphs for each in graph)


def _breaks(before: Json, after: Json) -> Iterable[Break]:
    verdicts = Verdicts(after["report"])
    seen = [_by_start(observed) for observed in (before, after)]
    for start in dict.fromkeys((*seen[0], *seen[1])):
        arms = [arm.get(start, []) for arm in seen]
        shown = (arms[1] or arms[0])[0]
        statement = statement_at(*start)
        state = REMOVED if not arms[1] else REMAINING if arms[0] else NEW
        if state == REMOVED:
            verdict = verdicts.of_removed(shown["stack"])
        else:
            verdict = verdicts.of(start, shown["stack"], shown["reason"])
        yield Break(
            *start,
            statement.function,
            statement.text,
            shown["kind"],
            _short(shown["reason"]),
            state,
            (len(arms[0]), len(arms[1])),
            *verdict,
        )


def _by_start(observed: Json) -> dict[Start, list[Json]]:
    """The breaks by the innermost statement."""
    found: dict[Start, list[Json]] = {}
    for each in observed["breaks"]:
        file, line, _ = each["stack"][-1]
        found.setdefault((file, statement_at(file, line).line), []).append(each)
    return found


def _short(reason: str) -> str:
    """The lines of Dynamo's reason that a person needs: without links, contexts and tracebacks of its own."""
    lines = [line.strip() for line in reason.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("For more details", "Developer debug context:"))]
    return "\n".join(kept[:6])
