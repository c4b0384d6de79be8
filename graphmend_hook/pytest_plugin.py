"""The pytest plugin: runs any test suite under the hook, and gives tests the assertions of `graphmend_hook.testing`.

``pytest --graphmend=MODULES`` installs the hook before the first conftest is imported, in every xdist worker too.
Without it (and without ``graphmend_modules`` or ``GRAPHMEND_MODULES``) nothing of the hook is imported, but for the
declaration of its settings, from which the options come.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from .settings.config import SETTINGS, Kind, Setting, changed
from .settings.syntax import read_list

if TYPE_CHECKING:
    from .hook.install import Hook

_WORKER_OUTPUT = "graphmend"
_PYTEST_LOADER = "_pytest.assertion.rewrite.AssertionRewritingHook"
_OWN = pytest.StashKey["Hook"]()  # the hook that was asked for here, installed or not


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("graphmend", "graph breaks (graphmend_hook)")
    for setting in SETTINGS:
        flag = {"action": "store_const", "const": setting.bare}
        takes = {"metavar": setting.metavar} if setting.metavar else flag
        text = f"{setting.help}; also {_ini(setting)} in the ini"
        group.addoption(_option(setting), dest=_ini(setting), default=None, help=text, **takes)
        parser.addini(_ini(setting), f"{setting.help} ({_option(setting)})", type="string", default="")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install the hook if it is asked for: this is the last moment before conftests import libraries."""
    words = vars(early_config.known_args_namespace)
    options = {setting.name: words[_ini(setting)] for setting in SETTINGS if words[_ini(setting)] is not None}
    ini = {setting.name: text for setting in SETTINGS if (text := early_config.getini(_ini(setting)))}
    given = ini | options
    if options and "modules" not in given:
        given["modules"] = os.environ.get("GRAPHMEND_MODULES", "")
    if not given.get("modules"):
        alone = [_option(setting) for setting in SETTINGS if setting.name in options]
        if alone and not {"modules", "disable"}.intersection(options):
            raise pytest.UsageError(f"{alone[0]}: no modules are mended; name them by --graphmend=MODULES")
        return
    from .diagnostics import GraphmendError
    from .hook.install import install_arguments, uninstall
    from .product.report import status

    def said(setting: Setting) -> str:
        return f"{_ini(setting)} in the ini file" if setting.name in ini.keys() - options else _option(setting)

    uninstall()  # the one of GRAPHMEND_MODULES: what is said to pytest wins
    try:
        hook = install_arguments(given, said)
    except GraphmendError as error:
        raise pytest.UsageError(str(error)) from None
    early_config.add_cleanup(hook.uninstall)
    early_config.stash[_OWN] = hook
    status.leave_to_runner()


def pytest_configure(config: pytest.Config) -> None:
    what = "skip the test unless the hook mends these modules (any, if none is named) with these rules"
    config.addinivalue_line("markers", f"graphmend(modules=(), rules=()): {what}")


def pytest_report_header(config: pytest.Config) -> list[str]:
    lines = [
        f"graphmend: on for {', '.join(hook.settings.modules)}; rules {', '.join(hook.settings.rules) or 'none'}"
        + "".join(f"; {text}" for text in changed(hook.settings.as_json(), Kind.TRACING))
        for hook in _hooks()
    ]
    own = config.stash.get(_OWN, None)
    if own is None:
        return lines
    from .diagnostics import notice
    from .product.report.ledger import Status, ledger

    if own.settings.disable:
        return [f"graphmend: {notice('GM007')}"]
    # It was logged when pytest had begun to capture, so nobody has seen it.
    early = [record.name for record in ledger.with_status(Status.TOO_EARLY)]
    return lines + [f"graphmend: {notice('GM001', module=', '.join(early))}"] * bool(early)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("graphmend"):
        if marker.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker graphmend takes modules= and rules= only")
        why = _why_not(**marker.kwargs)
        if why:
            pytest.skip(why)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where the setting `strict` asks for it, fail a run in which nothing was mended.

    In an xdist worker: send the ledger to the controller, which judges, and prints the summary.
    """
    own = session.config.stash.get(_OWN, None)
    if own is None and not _hooks():
        return
    from .engine.attempt import refusals
    from .product.report.exit import failed_strictly
    from .product.report.ledger import ledger

    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is None:
        if own is not None and failed_strictly(own.settings) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return
    output[_WORKER_OUTPUT] = pickle.dumps((ledger.records, refusals.left()))  # xdist sends plain values only


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the xdist controller: add what a worker has mended to what this process has."""
    sent = getattr(node, "workeroutput", {}).get(_WORKER_OUTPUT)  # a worker that crashed has none
    if sent is None:
        return
    from .engine.attempt import refusals
    from .product.report.ledger import ledger

    records, seen = pickle.loads(sent)
    for record in records:
        ledger.add(record)
    for left, operation in seen.items():
        refusals.seen.setdefault(left, operation)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    hooks = _hooks()
    if not hooks:
        return
    from .diagnostics import notice
    from .product.report.exit import nothing_was_mended
    from .product.report.ledger import Ledger, ledger
    from .product.report.text import as_text

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


def _option(setting: Setting) -> str:
    return "--graphmend" if setting.name == "modules" else f"--graphmend-{setting.option().removeprefix('--')}"


def _ini(setting: Setting) -> str:
    return f"graphmend_{setting.name}"


def _hooks() -> tuple[Hook, ...]:
    """The hooks of this process, whoever installed them; without an import if there cannot be one."""
    module = sys.modules.get("graphmend_hook.hook.install")
    return () if module is None else module.active()


def _why_not(modules: str | Iterable[str] = (), rules: str | Iterable[str] = ()) -> str:
    """Why a test that needs the hook for `modules` with `rules` cannot run, "" if it can."""
    names, needed = read_list(modules), set(read_list(rules))
    hint = f"run pytest --graphmend={','.join(names) or 'MODULES'}"
    hooks = _hooks()
    if not hooks:
        return f"needs graphmend_hook: {hint}"
    if not names and not any(needed <= set(hook.settings.rules) for hook in hooks):
        return f"needs graphmend_hook with the rules {', '.join(sorted(needed))}: see --graphmend-rules"
    from .hook.loader import MendingLoader

    for name in names:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            why = "there is no such module"
        elif not isinstance(spec.loader, MendingLoader):
            why = f"it was not loaded by the hook; {hint}"
        elif missing := needed - set(spec.loader.rules):
            why = f"without the rules {', '.join(sorted(missing))}; see --graphmend-rules"
        else:
            continue
        return f"needs {name} mended by graphmend_hook: {why}"
    return ""
