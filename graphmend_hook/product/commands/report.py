"""``graphmend report``: the table of report files, and one report of all the processes of a job."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from ...version import __version__
from ..report import files
from ..report.ledger import SCHEMA, Document
from ..report.merging import ReportError, merge
from ..report.text import PLAIN, draw

HELP = "show report files (GRAPHMEND_REPORT=PATH), or merge those of a job"
_SCHEMA = Path(files.__file__).with_name("schema.json")
# What JSON Schema calls the values that `json` reads.
_TYPES = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean"}


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


def load(file: str) -> Document:
    """The report in `file`.  Raises ReportError."""
    try:
        document: Document = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise ReportError(f"{file}: {error.strerror}") from None
    except ValueError as error:  # neither UTF-8 nor JSON
        raise ReportError(f"{file}: this is not JSON: {error}") from None
    if not isinstance(document, dict) or "schema" not in document:
        raise ReportError(f"{file}: this is not a report of graphmend_hook: it has no field 'schema'")
    if document["schema"] != SCHEMA:
        raise ReportError(
            f"{file}: its schema is {document['schema']!r}, and graphmend_hook {__version__} reads {SCHEMA}; "
            "use the version that wrote it"
        )
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    for complaint in _complaints(document, schema, schema["$defs"], ""):
        raise ReportError(f"{file}: {complaint}")
    known = range(len(document["processes"]))
    entries = (*document["modules"], *document["traced"])
    if any(index not in known for entry in entries for index in entry["processes"]):
        raise ReportError(f"{file}: an entry names a process that 'processes' does not have")
    return document


def _complaints(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any], place: str) -> Iterator[str]:
    """What in `value` is not as `schema` says, the first above all; knows the keywords that decide how it is read."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is {value!r}, not one of {', '.join(map(repr, schema['enum']))}"
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    kind = _TYPES.get(type(value), "null")
    if names and kind not in names and not (kind == "integer" and "number" in names):
        yield f"{place} is {value!r}, which is not of type {' or '.join(names)}"
    if "minItems" in schema and len(value) < schema["minItems"]:
        yield f"{place} is empty"
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place} has no field {name!r}" if place else f"there is no field {name!r}"
    for name, form in schema.get("properties", {}).items():
        if name in value:  # a report of an earlier version has no field that was added later
            yield from _complaints(value[name], form, definitions, f"{place}.{name}" if place else name)
    for index, item in enumerate(value if "items" in schema else ()):
        yield from _complaints(item, schema["items"], definitions, f"{place}[{index}]")
