"""The breaks that remain, in the forms that services for CI read: GitHub's annotations, SARIF, JUnit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from xml.etree import ElementTree

from ...version import __version__
from .join import Break, Explanation

# What fails the run is an error, what is known of is a warning.
Failing = Collection[Break]


def github(found: Explanation, failing: Failing) -> str:
    """Workflow commands, a line each: https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""
    lines = []
    for each in found.remaining:
        level = "error" if each in failing else "warning"
        place = f"file={_property(_path(each))},line={each.line},title={_property(f'graph break: {each.kind}')}"
        lines.append(f"::{level} {place}::{_escaped(_message(each))}\n")
    return "".join(lines)


def sarif(found: Explanation, failing: Failing) -> str:
    """A log of SARIF 2.1.0, whose rules are Dynamo's kinds of breaks."""
    results = [
        {
            "ruleId": each.kind,
            "level": "error" if each in failing else "warning",
            "message": {"text": _message(each)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(each)},
                        "region": {"startLine": each.line, "snippet": {"text": each.text}},
                    }
                }
            ],
            "partialFingerprints": {"key": each.key},
        }
        for each in found.remaining
    ]
    driver = {
        "name": "graphmend explain",
        "version": __version__,
        "rules": [{"id": kind} for kind in dict.fromkeys(each.kind for each in found.remaining)],
    }
    runs = [{"tool": {"driver": driver}, "results": results}]
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": runs}, indent=1) + "\n"


def junit(found: Explanation, failing: Failing) -> str:
    """A test case for each break: one that is gone passes, one that fails the run fails, any other is skipped."""
    suite = ElementTree.Element("testsuite", name="graphmend explain", tests=str(len(found.breaks)))
    suite.set("failures", str(sum(each in failing for each in found.breaks)))
    remaining = found.remaining
    suite.set("skipped", str(len(remaining) - sum(each in failing for each in remaining)))
    for each in found.breaks:
        name = f"{_path(each)}:{each.line} {each.text}"
        case = ElementTree.SubElement(suite, "testcase", classname=each.function, name=name)
        if each in remaining:
            kind = "failure" if each in failing else "skipped"
            ElementTree.SubElement(case, kind, message=each.headline).text = _message(each)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


FORMATS: dict[str, Callable[[Explanation, Failing], str]] = {"github": github, "sarif": sarif, "junit": junit}


def _message(each: Break) -> str:
    parts = [each.text, f"Dynamo: {each.headline}", f"{each.code} {each.said}".strip(), each.advice]
    return "\n".join(filter(None, parts))


def _path(each: Break) -> str:
    """Below the current directory as the repository has it, else as it is."""
    path = os.path.relpath(each.file)
    return each.file if path.startswith(os.pardir) else path.replace(os.sep, "/")


def _uri(each: Break) -> str:
    path = _path(each)
    return Path(path).as_uri() if os.path.isabs(path) else path


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
