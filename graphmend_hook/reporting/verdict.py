"""What the tool has to say of a line where Dynamo stops, out of a report as `document.as_json` gives it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ..diagnostics import TOO_EARLY
from .sources import Frame, module_of, statement_at
from .text import shorten

Json = dict[str, Any]
Start = tuple[str, int]  # of a statement: its file, its first line


class Verdict(NamedTuple):
    """A sentence, and what to do about it; the code is that of a refusal, else ""."""

    code: str
    said: str
    advice: str


class Verdicts:
    """What a report says of the lines of the program that it is about."""

    def __init__(self, report: Json) -> None:
        self._modules = {module["path"]: module for module in report["modules"]}
        self._sites = {(module["path"], site["line"]): site for module in report["modules"] for site in module["sites"]}
        self._traced: dict[Start, Json] = {}
        for refusal in report["traced"]:
            self._traced.setdefault(_start(refusal["path"], refusal["line"]), refusal)

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
        return self._of_module(start[0]) or Verdict(
            "",
            "the statement is mended, and Dynamo stops at it for another reason"
            if start in self._sites
            else "no rule is about this kind of statement",
            _hint(reason),
        )

    def _of_module(self, file: str) -> Verdict | None:
        """Why nothing in the file was mended; None where it was looked at."""
        module = self._modules.get(file)
        if module is None:
            name = module_of(file)
            said = f"{name} is not among the modules that are mended"
            return Verdict("", said, f"add it: --modules (or GRAPHMEND_MODULES) with {name.partition('.')[0]}")
        name, status = module["name"], module["status"]
        if status == "imported too early":
            return Verdict("GM001", f"{name} was imported before the hook was installed, and runs as it is", TOO_EARLY)
        if status == "passed over":
            said = f"{name} is passed over: no compiled function was known to reach it"
            return Verdict("", said, f"name the module itself: --modules (or GRAPHMEND_MODULES) with {name}")
        if status in ("not eligible", "failed"):
            return Verdict("", f"{name} runs as it is, {status}: {module['why']}", "graphmend doctor")
        return None


def _start(file: str, line: int) -> Start:
    return file, statement_at(file, line).line


def _refused(code: str, said: str) -> Verdict:
    return Verdict(code, said, f"graphmend rules {code}")


def _hint(reason: str) -> str:
    """Dynamo's own first hint."""
    hints = [line.strip().removeprefix("Hint:").strip() for line in reason.splitlines() if "Hint:" in line]
    return f"PyTorch's hint: {hints[0]}" if hints else "change the code, or leave the break"
