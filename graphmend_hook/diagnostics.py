"""What the tool says about code: sites, their outcomes, and the stable codes behind every refusal."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

log = logging.getLogger("graphmend_hook")


class GraphmendError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(GraphmendError, ValueError):
    """A setting has a value that cannot be used; the message names the setting and the remedy."""


class StrictError(GraphmendError):
    """``GRAPHMEND_STRICT`` turned a warning of ours into an error."""


class DefectError(GraphmendError):
    """An exception that this package did not expect, in a process where that is fatal."""


class Outcome(Enum):
    """What became of a candidate site."""

    MENDED = "mended"
    DECLINED = "declined"
    LEFT = "left while tracing"  # mended, and yet a traced value showed that the original has to run: it breaks


class Code(NamedTuple):
    """A stable code, which is never used again for another meaning, and all that is said of it.

    sentence: what reports say; of a refusal while rewriting (GMnnn-Rnn) the obligation that a statement does not meet.
    remedy: what to do about it.  because: why, where the docs say more of it than the sentence.
    """

    code: str
    sentence: str
    remedy: str = ""
    because: str = ""

    @property
    def rule(self) -> str:
        return rule_of(self.code)

    @property
    def is_obligation(self) -> bool:
        return "-R" in self.code and bool(self.rule)


# By what a code begins with: several rules have effects and branches.
RULE_OF_CODE = {
    "GM101": "defer",
    "GM102": "where",
    "GM103": "trap",
    "GM104": "value",
    "GM105": "sweep",
    "GM106": "grad",
}
CODES: dict[str, Code] = {}  # of refusals, by their names, once `rules.codes` is imported


def rule_of(code: str) -> str:
    """The name of the rule that most often gives the code, "" for one that is no rule's."""
    return RULE_OF_CODE.get(code.partition("-")[0], "")


def code(name: str, sentence: str, remedy: str = "", because: str = "") -> str:
    """Write down what is said of the code of that name, and give the name: traced code hands on no more than that."""
    CODES[name] = Code(name, sentence, remedy, because)
    return name


def of_rules(*names: str, sentence: str, remedy: str, because: str) -> tuple[str, ...]:
    """The codes, of one or several rules, of an obligation that a rule finds while it takes a statement apart."""
    return tuple(code(name, sentence, remedy, because) for name in names)


@dataclass(frozen=True)
class Refusal:
    """Why a candidate is left alone: a stable code and the sentence that tells a person why and what to do."""

    code: str
    text: str


class Site(NamedTuple):
    """One candidate of one rule: where it stands and what became of it.

    ``function`` is the qualified name of the enclosing function, ``line`` is 1-based.  ``code`` and ``reason`` are
    those of the refusal, and empty for a mended site.
    """

    rule: str
    function: str
    line: int
    code: str = ""
    reason: str = ""

    @property
    def outcome(self) -> Outcome:
        return Outcome.DECLINED if self.code else Outcome.MENDED


# What to do about a module that was imported before the hook was installed.
TOO_EARLY = (
    "import graphmend_hook (or call graphmend_hook.install) before it, start the program with python -m "
    "graphmend_hook, or mend it as it is by install(..., late=True) or GRAPHMEND_LATE=1; `graphmend doctor` names who "
    "imports it"
)
# Messages about the tool's own work.  A code is never reused for another meaning.
NOTICES = {
    "GM001": "{module} was imported before graphmend_hook was installed and runs unmended; " + TOO_EARLY,
    "GM002": "{module} runs unmended: mending it failed with {error}; please report this, and set "
    "GRAPHMEND_DENY={module} to silence it",
    "GM003": "the cache directory {directory} is not {use}: {why}; {remedy}",
    "GM004": "nothing was mended in this process: no module matched {modules!r} with a site that a rule could mend; "
    "check GRAPHMEND_MODULES, or run with --report to see every module that was looked at",
    "GM005": "this torch ({torch}) generated code whose epilogue graphmend_hook {version} does not know; the function "
    "ran as it was written instead, and from now on effects are left where they stand (as without the hook)",
    "GM006": "a compiled graph raised {error}; {count} deferred effect(s) whose values are known are delivered now, "
    "those that eager would not have reached included; {lost} depended on the graph and cannot be delivered",
    "GM007": "graphmend_hook is disabled (GRAPHMEND_DISABLE, --disable or disable=True): nothing is mended",
    "GM008": "the cell {cell} runs unmended: mending it failed with {error}; please report this, and use "
    "%unload_ext graphmend_hook to silence it",
    "GM009": "the compiled graph of {function} raised {error}, which the function as it was written does not; that ran "
    "instead, from the start",
    "GM010": "{what} failed at {place} with {error} on torch {torch}: what it was asked about runs as it was written; "
    "please report this",
    "GM011": "on torch {torch} graphmend_hook {version} cannot rely on: {what}; what rests on it stays as it was "
    "written, and breaks as without the hook",
    "GM012": "{what} failed with {error}; the program goes on as without the hook; please report this",
    "GM013": "the GRAPHMEND_* variables are not read, because this process runs with the rights of another user than "
    "the one who started it; call graphmend_hook.install(...) in the program",
    "GM014": "{functions} of {module} runs unmended: {why}; mend it before other tools change it and after the "
    "last edit, or import its module under the hook",
    "GM015": "{launcher} runs the program itself, past every import hook, so its own functions are not mended (the "
    "modules that it imports are); write {instead}",
    "GM016": "{functions} of {module} runs unmended: {loader} has changed its code; leave the module out of that hook "
    "to have it mended",
    "GM017": "guards on tensors are assertions of the program that is exported, or compiled ahead of time: they raise "
    "RuntimeError with the text of the guard, on CUDA they end the process's use of the device, and ONNX drops them; "
    "GRAPHMEND_GUARDS=keep leaves them as they were written",
    "GM018": "{pattern!r}, one of the modules to mend, has matched nothing in this process: {why}",
    "GM019": "what was compiled before is dropped while other threads are alive: torch may crash if one of them runs a "
    "compiled function meanwhile; mend before they begin",
    "GM020": "{path}:{line}: {comment!r} switches nothing off; write `# graphmend: off`, or with the names of rules "
    "`# graphmend: off[NAME]`: {rules}",
}

_log = logging.getLogger("graphmend_hook")
_said: set[str] = set()  # what has been said: tasks that are known to have failed, and notices


def notice(code: str, **details: object) -> str:
    """The text of notice `code`, prefixed with the code itself."""
    try:
        return f"{code}: {NOTICES[code].format(**details)}"
    except Exception as error:  # the text of a detail, such as an exception of the program's
        return f"{code}: its text cannot be made ({type(error).__name__})"


def say_once(code: str) -> None:
    """Say the notice `code`, the first time that it is called for in this process."""
    if code not in _said:
        _said.add(code)
        _log.warning("%s", notice(code))


def defects_are_fatal() -> bool:
    """Does an exception of ours that was not expected end the program, as in this project's own tests?"""
    return os.environ.get("_GRAPHMEND_DEFECTS") == "raise"


def say_failed(task: str, subject: str, error: Exception) -> None:
    """Say once for each task that it failed for a subject; raises DefectError where that is fatal."""
    what = f"{task} {subject}"
    if defects_are_fatal():
        raise DefectError(f"{what} failed") from error
    if task not in _said:
        _said.add(task)
        _log.warning("%s", notice("GM012", what=what, error=repr(error)))
        _log.debug("the exception:", exc_info=error)
