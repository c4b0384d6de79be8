"""The explanation for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..reporting.text import counted, shorten
from .join import NEW, REMAINING, REMOVED, Break, Explanation

_HEADINGS = {
    REMAINING: ("Breaks that remain", "yellow"),
    NEW: ("Breaks that only the mended program has", "red"),
    REMOVED: ("Breaks that are gone", "green"),
}


def show(found: Explanation, console: Console) -> None:
    console.print(_regions(found))
    for state, (heading, colour) in _HEADINGS.items():
        breaks = [each for each in found.breaks if each.state == state]
        if breaks:
            console.print(f"\n{heading}: {len(breaks)}", style=f"bold {colour}")
            for each in breaks:
                _show_break(each, console, brief=state == REMOVED)
    if not found.remaining:
        console.print("\nNo graph break remains.", style="bold green")


def show_new(breaks: Sequence[Break], baseline: str, console: Console) -> None:
    console.print(f"{counted(len(breaks), 'break')} that {baseline} does not know:", style="bold red", soft_wrap=True)
    for each in breaks:
        console.print(f"  {each.key}", soft_wrap=True)


def _regions(found: Explanation) -> Table:
    table = Table(title="Graphs", title_justify="left")
    for heading in ("compiled", "called at", "without the hook", "with the hook", "recompiled"):
        table.add_column(heading, justify="left" if heading in ("compiled", "called at") else "right")
    for region in found.regions:
        where = f"{shorten(region.file)}:{region.line}" if region.file else ""
        before, after = (
            f"{graphs} ({operations} operations)"
            for graphs, operations in zip(region.graphs, region.operations, strict=True)
        )
        again = "/".join(map(str, region.recompiled)) if any(region.recompiled) else ""
        table.add_row(region.name, where, before, after, again)
    return table


def _show_break(each: Break, console: Console, brief: bool) -> None:
    where = f"{shorten(each.file)}:{each.line}"
    console.print(Text.assemble("\n  ", (where, "bold"), f" in {each.function}{_times(each)}"), soft_wrap=True)
    reason = Text("" if brief else f"Dynamo: {each.headline}")
    said = Text(f"{each.code} {each.said}".lstrip())
    advice = Text(each.advice and f"→ {each.advice}", "bold")
    lines = Text("\n").join(filter(None, (Text(each.text, "cyan"), reason, said, advice)))
    console.print(Padding(lines, (0, 0, 0, 4)))


def _times(each: Break) -> str:
    before, after = each.times
    if each.state != REMAINING or before == after:
        met = before or after
        return f", {met} times" if met > 1 else ""
    return f", {before} times without the hook, {after} with it"
