"""What is said of a break, and what to do about it: from the hook's report of the lines of the program."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...diagnostics import TOO_EARLY
from ...engine.attempt.refusals import ENDED_BY_DYNAMO
from ...rules.value.codes import OF_AN_INPUT
from ..report.sources import Frame, module_of, statement_at
from ..report.text import shorten
from .together import default_set

ADD = "add it: "  # the advice for a module that is not among those that are mended
_TO_PYTORCH = "file an issue"  # a hint with this in it is for the developers of PyTorch
Report = dict[str, Any]
Start = tuple[str, int]  # of a statement: its file, its first line


class Verdict(NamedTuple):
    """A sentence, and what to do about it; the code is that of a refusal, else ""."""

    code: str
    said: str
    advice: str


class Ways(NamedTuple):
    """How one says, where the program is run, which modules are to be mended, and which inputs have few values."""

    modules: str
    values: str


COMMAND_LINE = Ways("--modules={}", "--values={}")
PYTEST = Ways("pytest --graphmend={}", "pytest --graphmend-values={}")
PROGRAM = Ways("graphmend_hook.install({})", "graphmend_hook.install(..., values={})")
# Its extension has the settings of the environment, and a process traces under one choice of values.
NOTEBOOK = Ways(PROGRAM.modules, "%env GRAPHMEND_VALUES={}, then %reload_ext graphmend_hook, and run the cells again")


class Verdicts:
    """What a report says of the lines of the program that it is about.

    ways: how settings are given, where the program is run.
    missing: the packages that hold breaks of which was asked, and are not among those that are mended.
    """

    def __init__(self, report: Report, ways: Ways = COMMAND_LINE) -> None:
        hooks = [hook for process in report.get("processes", ())[:1] for hook in process["hooks"]]  # not of children
        self._ways = ways
        self._values = [name for hook in hooks for name in hook["values"]]
        self._set = [pattern for hook in hooks for pattern in hook["modules"]]
        self.missing: list[str] = []
        self._modules = {module["path"]: module for module in report["modules"]}
        self._sites = {(module["path"], site["line"]): site for module in report["modules"] for site in module["sites"]}
        self._traced: dict[Start, Report] = {}
        for each in report["traced"]:  # the first counts, but for one that an option takes away
            start = start_of(each["path"], each["line"])
            if start not in self._traced or each["code"] == OF_AN_INPUT:
                self._traced[start] = each

    def of_removed(self, stack: list[Frame]) -> Verdict:
        """Which rule took the break away: that of the innermost statement around it that is mended."""
        for file, line, _ in reversed(stack):
            site = self._sites.get(start_of(file, line))
            if site is not None and site["outcome"] != "declined":
                return Verdict("", f"mended by [{site['rule']}] at {shorten(file)}:{site['line']}", "")
        return Verdict("", "gone with another break that was mended", "")

    def of(self, start: Start, stack: Iterable[Frame], reason: str) -> Verdict:
        """What is said of a break at `start`, inside the calls of `stack`, outermost first, for Dynamo's `reason`.

        One inside a check function is that of the guard that calls it.
        """
        for file, line, _ in reversed(list(stack)):
            caller = start_of(file, line)
            known = self._sites.get(caller)
            if caller != start and (known is None or known["rule"] != "trap"):
                continue
            refusal = self._traced.get(caller)
            if refusal is not None and refusal["code"] != ENDED_BY_DYNAMO:
                return _refused(refusal["code"], f"left in place while tracing: {refusal['reason']}")
            if known is not None and known["outcome"] == "declined":
                return _refused(known["code"], f"declined: {known['reason']}")
        mended = "the statement is rewritten, and Dynamo stops at it for another reason"
        hints = [line.strip().removeprefix("Hint:").strip() for line in reason.splitlines() if "Hint:" in line]
        hints = [hint for hint in hints if _TO_PYTORCH not in hint]
        return self._of_module(start[0]) or Verdict(
            "",
            mended if start in self._sites else "no rule is about this kind of statement",
            f"PyTorch's hint: {hints[0]}" if hints else "move it out of what is compiled, or leave the break",
        )

    def flag(self, *names: str) -> str:
        """What adds the modules to those that are set, with the libraries that belong to one of them."""
        return _filled(self._ways.modules, [*self._set, *(each for name in names for each in default_set(name))])

    def values_flag(self, *names: str) -> str:
        """What adds the inputs to those that are set."""
        return _filled(self._ways.values, [*self._values, *names])

    def _of_module(self, file: str) -> Verdict | None:
        """Why nothing in the file was mended; None where it was looked at."""
        module = self._modules.get(file)
        if module is None:
            name = module_of(file)
            package = name.partition(".")[0]
            self.missing += [package] if package not in self.missing else []
            return Verdict("", f"{name} is not among the modules that are mended", f"{ADD}{self.flag(package)}")
        name, status = module["name"], module["status"]
        if status == "imported too early":
            return Verdict("GM001", f"{name} was imported before the hook was installed, and runs as it is", TOO_EARLY)
        if status == "passed over":
            said = f"{name} is passed over: no compiled function was known to reach it"
            return Verdict("", said, f"name the module itself: {self.flag(name)}")
        if status in ("not eligible", "failed"):
            return Verdict("", f"{name} runs as it is, {status}: {module['why']}", "graphmend doctor")
        return None


def start_of(file: str, line: int) -> Start:
    return file, statement_at(file, line).line


def _filled(way: str, names: Iterable[str]) -> str:
    text = ",".join(dict.fromkeys(names))
    return way.format(repr(text) if way.endswith(")") else shlex.quote(text))


def _refused(code: str, said: str) -> Verdict:
    return Verdict(code, said, f"graphmend rules {code}")
