"""An explanation as text: a table at a terminal, plain lines in a pipe."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..report.text import counted, shorten
from .baseline import Comparison
from .join import NEW, REMAINING, REMOVED, Break, Explanation, Region

_CALLERS = 10  # are shown of a statement
_HEADINGS = {
    REMAINING: ("Breaks that remain", "yellow"),
    NEW: ("Breaks that only the mended program has", "red"),
    REMOVED: ("Breaks that are gone", "green"),
}


def show(found: Explanation, console: Console) -> None:
    """At a terminal a table, else lines that nothing pads or cuts."""
    if console.is_terminal:
        console.print(_table(found))
    else:
        console.print("Graphs")
        for line in _lines(found):
            console.print(f"  {line}", soft_wrap=True)
    for state, (heading, colour) in _HEADINGS.items():
        breaks = [each for each in found.breaks if each.state == state]
        if breaks:
            console.print(f"\n{heading}: {len(breaks)}", style=f"bold {colour}")
            for each in breaks:
                _show_break(each, console)
    if found.flag:
        console.print("\nTo mend the packages that hold breaks as well, and keep what is set:")
        console.print(f"  {found.flag}", style="bold", soft_wrap=True, highlight=False)
    console.print(f"\n{summary(found)}", style="bold" if found.remaining else "bold green", soft_wrap=True)


def summary(found: Explanation) -> str:
    """The last line: what is gone, what is left, and how many of those an option would reach."""
    if not found.remaining:
        return "No graph break remains."
    left, total = len(found.remaining), len(found.breaks)
    parts = [f"{total - left} of {counted(total, 'break')} gone, {left} left"]
    uncovered = sum(each.is_uncovered for each in found.remaining)
    if uncovered:
        parts.append(f"{uncovered} of those in modules that are not mended: {found.flag}")
    decided = sum(bool(each.values) for each in found.remaining)
    if decided:
        goes = "goes" if decided == 1 else "go"
        parts.append(f"{decided} of the {left} left {goes} with {found.values_flag}, if few values are met")
    return "; ".join(parts)


def show_compared(compared: Comparison, file: str, console: Console) -> None:
    if compared.new:
        text = f"{counted(sum(compared.more.values()), 'break')} more than {file} knows of:"
        console.print(text, style="bold red", soft_wrap=True)
        for key, more in compared.more.items():
            console.print(f"  {key} ({more})", soft_wrap=True)
    if compared.fixed:
        text = f"fixed, wholly or in part, of what {file} knows of (--update-baseline writes that down):"
        console.print(text, style="bold green", soft_wrap=True)
        for key, fewer in compared.fixed.items():
            console.print(f"  {key}" + ("" if math.isinf(fewer) else f" ({int(fewer)} fewer)"), soft_wrap=True)
    if not compared.new:
        console.print(f"no break more than {file} knows of", style="bold green", soft_wrap=True)


def _lines(found: Explanation) -> Iterator[str]:
    for region in found.regions:
        where = f" at {region.file}:{region.line}" if region.file else ""
        arms = (f"{counted(graphs, 'graph')} ({operations} operations)" for graphs, operations in _arms(region))
        without, mended = arms
        again = "; recompiled {}/{}".format(*region.recompiled) if any(region.recompiled) else ""
        yield f"{region.name}{where}: {without} without the hook, {mended} with it{again}"


def _arms(region: Region) -> Iterable[tuple[int, int]]:
    return zip(region.graphs, region.operations, strict=True)


def _table(found: Explanation) -> Table:
    table = Table(title="Graphs", title_justify="left")
    for heading in ("compiled", "called at", "without the hook", "with the hook", "recompiled"):
        table.add_column(heading, justify="left" if heading in ("compiled", "called at") else "right")
    for region in found.regions:
        where = f"{shorten(region.file)}:{region.line}" if region.file else ""
        cells = (f"{graphs} ({operations} operations)" for graphs, operations in _arms(region))
        again = "/".join(map(str, region.recompiled)) if any(region.recompiled) else ""
        table.add_row(region.name, where, *cells, again)
    return table


def _show_break(each: Break, console: Console) -> None:
    before, after = each.times
    if each.state == REMAINING and before != after:
        times = f", {before} times without the hook, {after} with it"
    else:
        met = before or after
        times = f", {met} times" if met > 1 else ""
    file = shorten(each.file) if console.is_terminal else each.file
    where = f"{file}:{each.line}"
    console.print(Text.assemble("\n  ", (where, "bold"), f" in {each.function}{times}"), soft_wrap=True)
    reason = Text("" if each.state == REMOVED else f"Dynamo: {each.headline}")
    said = Text(f"{each.code} {each.said}".lstrip())
    advice = Text(each.advice and f"→ {each.advice}", "bold")
    more = (*_callers(each), *_processes(each))
    lines = [line for line in (Text(each.text, "cyan"), reason, *map(Text, more), said, advice) if line]
    if console.is_terminal:
        console.print(Padding(Text("\n").join(lines), (0, 0, 0, 4)))
    else:
        for line in "\n".join(map(str, lines)).splitlines():
            console.print(f"    {line}", soft_wrap=True)


def _callers(each: Break) -> Iterator[str]:
    """From where a statement that is met from several places is reached, the most frequent first."""
    reached: Counter[tuple[str, int, str]] = Counter()
    for caller in each.callers:
        reached[caller.stack[-1]] += caller.times
    if each.state == REMOVED or len(reached) < 2:
        return
    for (file, line, function), times in reached.most_common(_CALLERS):
        yield f"from {shorten(file)}:{line} in {function}, {counted(times, 'time')}"
    if len(reached) > _CALLERS:
        yield f"and from {len(reached) - _CALLERS} more places (--json has all)"


def _processes(each: Break) -> Iterator[str]:
    """Which of the program's processes met it, where that is not the program itself alone."""
    if each.processes not in ((), ("",)):
        yield "in " + ", ".join(name or "the program itself" for name in each.processes)
