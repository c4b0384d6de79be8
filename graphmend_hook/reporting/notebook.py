"""The report as a notebook shows it: an HTML table, and the plain text everywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape

from ..diagnostics import Outcome, Site
from ..dynamo import refusals
from ..rules.codes import REFUSALS
from ..version import __version__
from .ledger import Ledger, ModuleRecord, Status
from .text import as_text

Row = tuple[str, str, str, str]  # what, how many, why, for example


class NotebookReport:
    """What `ledger` holds at the time it is shown."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __repr__(self) -> str:
        return as_text(self._ledger)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in ("", "count", "why", "for example"))
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self._rows())
        caption = f"<caption>graphmend_hook {__version__}, process {os.getpid()}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _rows(self) -> Iterator[Row]:
        for status in Status:
            records = self._ledger.with_status(status)
            if records:
                yield f"modules {status.value}", str(len(records)), records[0].why, records[0].name
        sites: dict[str, list[tuple[ModuleRecord, Site]]] = {}
        for record in self._ledger.records:
            for site in record.sites:
                mended = site.outcome is Outcome.MENDED
                what = f"sites mended by {site.rule}" if mended else f"declined {site.code}"
                sites.setdefault(what, []).append((record, site))
        for what, found in sites.items():
            record, site = found[0]
            yield what, str(len(found)), site.reason, f"{record.name}:{site.line} in {site.function}"
        traced = [code for code, *_ in refusals.seen]
        for code in dict.fromkeys(traced):
            path, line, function = next(place for found, *place in refusals.seen if found == code)
            what = f"left in place while tracing {code}"
            yield what, str(traced.count(code)), REFUSALS[code], f"{path}:{line} in {function}"
