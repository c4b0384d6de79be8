"""``graphmend report``: the table of report files, and one report of all the processes of a job."""

from __future__ import annotations

import argparse

from rich.console import Console

from ..reporting import files
from ..reporting.merge import ReportError, load, merge
from ..reporting.text import PLAIN, draw

HELP = "show report files (GRAPHMEND_REPORT=PATH), or merge those of a job"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print the table of each file")
    show.add_argument("files", nargs="+", metavar="FILE")
    union = actions.add_parser("merge", help="unite the reports of a job, and print the table of the whole")
    union.add_argument("files", nargs="+", metavar="FILE")
    union.add_argument("-o", "--output", metavar="OUT", help="write the united report as JSON")


def run(options: argparse.Namespace) -> int:
    """Print tables on stdout.  Raises ReportError for a file that cannot be read or written; returns 0."""
    reports = [(file, load(file)) for file in options.files]
    console = Console(**PLAIN)
    if options.action == "show":
        for number, (file, document) in enumerate(reports):
            console.print(f"{'' if number == 0 else chr(10)}{file}", style="bold", soft_wrap=True)
            draw(document, console)
        return 0
    united = merge(reports)
    if options.output:
        try:
            files.replace(united, options.output)
        except OSError as error:
            raise ReportError(f"{options.output}: cannot be written: {error.strerror}") from None
    draw(united, console)
    return 0
