"""The report for a person: a few tables and lists, drawn by rich from the document that JSON files hold."""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Column, Table

from ...diagnostics import TOO_EARLY, Outcome
from ...rules.codes import TOLD
from ...settings.config import Kind, changed
from .ledger import Document, Ledger, Status, as_json
from .left import places as left_places

# Text of a program's may look like rich's markup.
PLAIN: dict[str, Any] = {"force_jupyter": False, "highlight": False, "markup": False, "emoji": False}
_UNLIMITED = 100_000  # columns where no terminal sets a width: lines in a file or a pipe are not wrapped
_PLACES = 3  # examples of each reason
_PACKAGES = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")
# By the heading of a list of reasons, what it counts.
_COUNTED = {"declined": "site", "left while tracing": "site", "mended, and told from eager": "site"} | {
    status.value: "module" for status in (Status.NOT_ELIGIBLE, Status.TOO_EARLY, Status.FAILED)
}


def as_text(ledger: Ledger) -> str:
    """The report of this process, without colours, in lines that are not wrapped."""
    return as_text_for(io.StringIO(), as_json(ledger), force_terminal=False, color_system=None).rstrip("\n")


def as_html(ledger: Ledger) -> str:
    """The report of this process for a notebook: what a terminal shows, with its colours."""
    console = Console(file=io.StringIO(), record=True, **PLAIN)
    draw(as_json(ledger), console)
    return console.export_html(inline_styles=True, code_format='<pre style="white-space: pre-wrap">{code}</pre>')


def as_text_for(stream: TextIO, document: Document, **terminal: Any) -> str:
    """The report as it is to be written to `stream`: fitted to its width and with colours where it is a terminal.

    terminal: what rich is told of the stream instead of asking it.
    rich does not write it: where the reader of a pipe is gone, it would redirect the program's stdout and exit.
    """
    console = Console(file=stream, **PLAIN, **terminal)
    with console.capture() as capture:
        draw(document, console)
    return capture.get()


def draw(document: Document, console: Console) -> None:
    """Print `document`, the report of a process or of a job, to `console`."""
    if not console.is_terminal:
        console.width = _UNLIMITED
    _head(document, console)
    of_job = [_processes(document)] if len(document["processes"]) > 1 else []
    for table in (*of_job, _modules(document), _sites(document)):
        if table.row_count:
            console.print()
            console.print(table)
    reasons = list(_reasons(document))
    for heading, noun in _COUNTED.items():
        _print_reasons(heading, noun, [each[1:] for each in reasons if each[0] == heading], console)


def shorten(path: str) -> str:
    """`path` from its site-packages on, or from the current directory; a text that any UTF-8 stream can show."""
    path = _PACKAGES.sub("", path.encode("utf-8", "backslashreplace").decode())
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # the current directory is gone
        return path
    return path.removeprefix(here) if here != os.sep else path


def counted(number: int, noun: str) -> str:
    """ "1 module", "2 modules", "2 misses", "2 entries"."""
    if number != 1:
        noun = f"{noun}es" if noun.endswith("s") else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun}"


def _head(document: Document, console: Console) -> None:
    processes, modules = document["processes"], document["modules"]
    if len(processes) == 1:
        pid, rank, size = (processes[0][key] for key in ("pid", "rank", "world_size"))
        who = f"process {pid}" + ("" if rank is None else f", rank {rank} of {'?' if size is None else size}")
    else:
        hosts = len({process["host"] for process in processes})
        who = f"{counted(len(processes), 'process')} on {counted(hosts, 'host')}"
    console.print(f"graphmend_hook {document['version']}, {who}", style="bold", soft_wrap=True)
    sites = sum(site["outcome"] == "mended" for module in modules for site in module["sites"])
    mended = _distinct(module for module in modules if module["status"] == Status.MENDED.value)
    hits, misses, seconds = (sum(process[key] for process in processes) for key in ("hits", "misses", "seconds"))
    console.print(
        f"{counted(sites, 'site')} mended in {mended} of {counted(_distinct(modules), 'module')}; "
        f"cache: {counted(hits, 'hit')}, {counted(misses, 'miss')}; {seconds * 1000:.0f} ms",
        soft_wrap=True,
    )
    for text in dict.fromkeys(text for process in processes for text in process.get("not_relied_on", ())):
        console.print(f"does not work on this torch: {text}", style="yellow", soft_wrap=True)
    hooks = [hook for process in processes for hook in process["hooks"]]
    for text in dict.fromkeys(hook.get("cache_problem", "") for hook in hooks):
        if text and misses:
            console.print(f"cache: {text}", style="yellow", soft_wrap=True)
    for line in dict.fromkeys("; ".join(changed(hook, Kind.REWRITING, Kind.TRACING)) for hook in hooks):
        if line:
            console.print(f"settings: {line}", soft_wrap=True)


def _distinct(modules: Iterable[Document]) -> int:
    """How many modules these are; in a job, one may have an entry for each thing that became of it."""
    return len({(module["name"], module["path"]) for module in modules})


def _processes(document: Document) -> Table:
    table = _table("process", "host", "rank", "mended", "hits", "misses", "ms")
    for index, process in enumerate(document["processes"]):
        modules = [module for module in document["modules"] if index in module["processes"]]
        mended = sum(module["status"] == Status.MENDED.value for module in modules)
        numbers = (mended, process["hits"], process["misses"], f"{process['seconds'] * 1000:.0f}")
        rank = "" if process["rank"] is None else str(process["rank"])
        table.add_row(f"  {process['pid']}", process["host"], rank, *map(str, numbers))
    return table


def _modules(document: Document) -> Table:
    counts = Counter(module["status"] for module in document["modules"])
    table = _table("modules", str(_distinct(document["modules"])))
    for status in Status:
        table.add_row(f"  {status.value}", str(counts[status.value]))
    return table


def _sites(document: Document) -> Table:
    counts = Counter((site["rule"], site["outcome"]) for module in document["modules"] for site in module["sites"])
    known = {(module["path"], site["line"]) for module in document["modules"] for site in module["sites"]}
    unknown = [item for item, *_ in left_places(document["traced"]) if (item["path"], item["line"]) not in known]
    counts.update((item["rule"], Outcome.LEFT.value) for item in unknown)
    table = _table("sites", *(outcome.value for outcome in Outcome))
    for rule in sorted({rule for rule, _outcome in counts}):
        table.add_row(f"  {rule}", *(str(counts[rule, outcome.value]) for outcome in Outcome))
    return table


def _table(*headings: str) -> Table:
    columns = [Column(heading, justify="left" if heading in (headings[0], "host") else "right") for heading in headings]
    return Table(*columns, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _reasons(document: Document) -> Iterator[tuple[str, str, str, str]]:
    """What became of each module and site, with the code and the sentence, if it is not mended, and the place."""
    for module in document["modules"]:
        for site in module["sites"]:
            if site["outcome"] != Outcome.LEFT.value:  # the places below have all the reasons
                yield site["outcome"], site["code"], site["reason"], _place(module["path"], site)
        if module["why"].startswith(("GM014", "GM016")):
            yield Outcome.DECLINED.value, *module["why"].split(": ", 1), shorten(module["path"])
        why = TOO_EARLY if module["status"] == Status.TOO_EARLY.value else module["why"]
        yield module["status"], "", why, f"{module['name']} ({shorten(module['path'])})"
    names = {
        (module["path"], site["line"]): site["function"] for module in document["modules"] for site in module["sites"]
    }
    for first, *later in left_places(document["traced"]):
        function = names.get((first["path"], first["line"]), first["function"])
        place = [_place(first["path"], {**first, "function": function})]
        place += [f"  also {item['code']}: {item['reason']}" for item in later]
        yield Outcome.LEFT.value, first["code"], first["reason"], "\n    ".join(place)
    for item in document["traced"]:
        if item["code"] in TOLD:
            yield "mended, and told from eager", item["code"], item["reason"], _place(item["path"], item)


def _place(path: str, site: Document) -> str:
    return f"{shorten(path)}:{site['line']} in {site['function']}"


def _print_reasons(title: str, noun: str, reasons: Sequence[tuple[str, str, str]], console: Console) -> None:
    """The most frequent code, or sentence without a code, first; each with the sentence of the first `noun` it counts.

    Lines are wrapped by the terminal, not by rich, so that a place can be copied whole.
    """
    found: dict[str, tuple[str, str, list[str]]] = {}
    for code, sentence, place in reasons:
        found.setdefault(code or sentence, (code and f"{code}, ", sentence, []))[2].append(place)
    if reasons:
        console.print()
        console.print(title, style="bold", soft_wrap=True)
    for _, (head, sentence, places) in sorted(found.items(), key=lambda item: (-len(item[1][2]), item[0])):
        console.print(f"  {head}{counted(len(places), noun)}: {sentence}", soft_wrap=True)
        for place in places[:_PLACES]:
            console.print(f"    {place}", soft_wrap=True)
        if len(places) > _PLACES:
            console.print(f"    and {len(places) - _PLACES} more", soft_wrap=True)
