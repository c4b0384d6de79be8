"""The pytest plugin: runs any test suite under the hook, and gives tests the assertions of `graphmend_hook.testing`.

``pytest --graphmend=MODULES`` installs the hook before the first conftest is imported, in every xdist worker too.
Without it (and without ``graphmend_modules`` or ``GRAPHMEND_MODULES``) nothing of the hook is imported.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .hook.install import Hook

# By option: the setting that it stands for, and what its help says.
_OPTIONS = {
    "graphmend": ("GRAPHMEND_MODULES", "MODULES", "graphmend_modules", "mend these modules while the tests run"),
    "graphmend_deny": ("GRAPHMEND_DENY", "MODULES", "graphmend_deny", "modules to leave alone all the same"),
    "graphmend_rules": ("GRAPHMEND_RULES", "RULES", "graphmend_rules", "rules to apply: all, none, NAME, -NAME"),
}
_MARKER = (
    "graphmend(modules=(), rules=()): skip the test unless the hook mends these modules (any, if none is named) with "
    "these rules"
)
_WORKER_OUTPUT = "graphmend"
_PYTEST_LOADER = "_pytest.assertion.rewrite.AssertionRewritingHook"
_OWN = pytest.StashKey["Hook"]()  # the hook that was asked for here, installed or not


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("graphmend", "graph breaks (graphmend_hook)")
    for destination, (_, metavar, ini, text) in _OPTIONS.items():
        option = f"--{destination.replace('_', '-')}"
        group.addoption(option, dest=destination, metavar=metavar, default=None, help=f"{text}; also {ini} in the ini")
        parser.addini(ini, f"{text} ({option})", type="string", default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the hook if it is asked for: this is the last moment before conftests import libraries."""
    modules, deny, rules = (_given(early_config, destination) for destination in _OPTIONS)
    if not modules:
        return
    from .diagnostics import GraphmendError

    try:
        hook = _install(modules, deny, rules)
    except GraphmendError as error:
        raise pytest.UsageError(
            re.sub("|".join(_BY_SETTING), lambda match: _BY_SETTING[match[0]], str(error))
        ) from None
    early_config.add_cleanup(hook.uninstall)
    early_config.stash[_OWN] = hook


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = [
        f"graphmend: on for {', '.join(hook.settings.modules)}; rules {', '.join(hook.settings.rules) or 'none'}"
        for hook in _hooks()
    ]
    own = config.stash.get(_OWN, None)
    if own is None:
        return lines
    from .diagnostics import notice
    from .reporting.ledger import Status, ledger

    if own.settings.disable:
        return [f"graphmend: {notice('GM007')}"]
    # It was logged when pytest had begun to capture, so nobody has seen it.
    early = [record.name for record in ledger.with_status(Status.TOO_EARLY)]
    return lines + [f"graphmend: {notice('GM001', module=', '.join(early))}"] * bool(early)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("graphmend"):
        why = _why_not(**marker.kwargs) if not marker.args else "the marker graphmend takes modules= and rules= only"
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: {why}")
        if why:
            pytest.skip(why)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In an xdist worker: send the ledger to the controller, which prints the summary."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is None or not _hooks():
        return
    from .dynamo import refusals
    from .reporting.ledger import ledger

    output[_WORKER_OUTPUT] = ([record.as_tuple() for record in ledger.records], list(refusals.seen))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the xdist controller: add what a worker has mended to what this process has."""
    sent = getattr(node, "workeroutput", {}).get(_WORKER_OUTPUT)  # a worker that crashed has none
    if sent is None:
        return
    from .dynamo import refusals
    from .reporting.ledger import ModuleRecord, ledger

    records, seen = sent
    for record in records:
        ledger.add(ModuleRecord.from_tuple(record))
    refusals.seen += [place for place in map(tuple, seen) if place not in refusals.seen]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    hooks = _hooks()
    if not hooks:
        return
    from .diagnostics import notice
    from .reporting.exit import nothing_was_mended
    from .reporting.ledger import Ledger, ledger
    from .reporting.text import as_text

    # Test modules and conftests of an allowlisted package are pytest's to rewrite; there may be hundreds.
    shown = Ledger({record.name: record for record in ledger.records if _PYTEST_LOADER not in record.why})
    terminalreporter.section("graphmend")
    terminalreporter.line(as_text(shown))
    if nothing_was_mended():
        modules = ",".join(module for hook in hooks for module in hook.settings.modules)
        terminalreporter.line(notice("GM004", modules=modules))


@pytest.fixture(scope="session")
def assert_single_graph() -> Callable[..., Any]:
    """`graphmend_hook.testing.assert_single_graph`: compile, call once, and fail unless it was one graph."""
    from . import testing

    return testing.assert_single_graph


@pytest.fixture(scope="session")
def assert_same_as_eager() -> Callable[..., None]:
    """`graphmend_hook.testing.assert_same_as_eager`: compile, and fail unless it does what eager does."""
    from . import testing

    return testing.assert_same_as_eager


def _given(config: pytest.Config, destination: str) -> str | None:
    """What the command line says, else what the ini file says; None if neither does."""
    option: str | None = getattr(config.known_args_namespace, destination)
    return option if option is not None else config.getini(_OPTIONS[destination][2]) or None


def _install(modules: str, deny: str | None, rules: str | None) -> Hook:
    import graphmend_hook

    graphmend_hook.uninstall()  # the one of GRAPHMEND_MODULES: what is said to pytest wins
    return graphmend_hook.install(modules, deny=deny or (), rules=rules)


_BY_SETTING = {f"{setting}:": f"--{destination.replace('_', '-')}:" for destination, (setting, *_) in _OPTIONS.items()}


def _hooks() -> tuple[Hook, ...]:
    """The hooks of this process, whoever installed them; without an import if there cannot be one."""
    module = sys.modules.get("graphmend_hook.hook.install")
    return () if module is None else module.active()


def _why_not(modules: str | Iterable[str] = (), rules: str | Iterable[str] = ()) -> str:
    """Why a test that needs the hook for `modules` with `rules` cannot run, "" if it can."""
    names = [modules] if isinstance(modules, str) else list(modules)
    needed = {rules} if isinstance(rules, str) else set(rules)
    hint = f"run pytest --graphmend={','.join(names) or 'MODULES'}"
    hooks = _hooks()
    if not hooks:
        return f"needs graphmend_hook: {hint}"
    if not names and not any(needed <= set(hook.settings.rules) for hook in hooks):
        return f"needs graphmend_hook with the rules {', '.join(sorted(needed))}: see --graphmend-rules"
    for name in names:
        why = _why_not_mended(name, needed)
        if why:
            return f"needs {name} mended by graphmend_hook: {why.format(hint=hint)}"
    return ""


def _why_not_mended(name: str, rules: set[str]) -> str:
    from .hook.loader import MendingLoader

    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return "there is no such module"
    if not isinstance(spec.loader, MendingLoader):
        return "it was not loaded by the hook; {hint}"
    missing = rules - set(spec.loader.rules)
    return f"without the rules {', '.join(sorted(missing))}; see --graphmend-rules" if missing else ""
