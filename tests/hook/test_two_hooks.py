"""Two hooks in one process: what each may have of its own, what they share, and that nothing stays of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphmend_hook
from graphmend_hook.diagnostics import ConfigError, StrictError
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.hook.install import active, install_settings
from graphmend_hook.settings.config import Setting, Settings
from graphmend_hook.settings.syntax import RULE_NAMES

Install = Callable[..., Any]
WITHOUT_VALUE = ", ".join(name for name in RULE_NAMES if name != "value")


def traced_under() -> tuple[Any, ...]:
    return queue.guards, queue.values, queue.specialise


DEFAULTS = ("exact", (), True)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            {"guards": "async"},
            {"guards": "keep"},
            "guards: keep is asked for b, c, but async for a, whose hook is installed, and a process traces all modules "
            "under one choice of guards; give both the same, or uninstall that hook first",
        ),
        ({}, {"guards": "async"}, "guards: async is asked for b, c, but exact for a, whose hook"),
        ({"values": "n,grid"}, {"values": ()}, "values: none is asked for b, c, but n, grid for a, whose hook"),
        (
            {"rules": "all"},
            {"rules": "-value"},
            f"rules: {WITHOUT_VALUE} is asked for b, c, but {', '.join(RULE_NAMES)} for a, whose hook is installed, and a "
            "process traces all modules with the rule value, or all without; give both the same, or uninstall that hook",
        ),
    ],
)
def test_another_choice_is_refused(first: Any, second: Any, message: str, install: Install) -> None:
    hook = install("a", **first)
    before = traced_under()
    with pytest.raises(ConfigError) as raised:
        install("b", "c", **second)
    assert str(raised.value).startswith(message)
    assert (active(), traced_under()) == ((hook,), before)
    hook.uninstall()
    assert install("b", "c", **second).installed


@pytest.mark.parametrize(
    "options",
    [
        {"deny": "b.x"},
        {"cache_dir": "/elsewhere"},
        {"rules": "defer"},
        {"rules": "where,value"},
        {"strict": True},
        {"report": "-"},
        {"log": "error"},
    ],
)
def test_other_modules_and_all_other_settings_are_a_hooks_own(options: Any, install: Install) -> None:
    first = install("a", guards="async", values="n")
    second = install("b", guards="async", values=["n"], **options)
    assert active() == (first, second)
    assert traced_under() == ("async", ("n",), True)


def test_what_nobody_chose_is_as_the_installed_hook_has_it(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    first = install("a", guards="async", values="n")
    monkeypatch.setenv("GRAPHMEND_GUARDS", "keep")
    second = install("b")
    assert (second.settings.guards, second.settings.values) == ("async", ("n",))
    assert install("a") is first
    graphmend_hook.uninstall()
    assert install("b").settings.guards == "keep"


def test_rules_that_do_not_ask_for_values_may_differ_in_it(install: Install) -> None:
    install("a", rules="defer")
    assert queue.specialise is True
    install("b", rules="where")
    assert queue.specialise is False
    with pytest.raises(ConfigError, match=r"^rules: where, value is asked for c, but where for b, "):
        install("c", rules="where,value")


def test_uninstalling_leaves_what_the_remaining_hook_says(install: Install) -> None:
    first = install("a", rules="defer", guards="async", values="n")
    second = install("b", rules="where")
    assert traced_under() == ("async", ("n",), False)
    first.uninstall()
    assert traced_under() == ("async", ("n",), False)
    second.uninstall()
    assert traced_under() == DEFAULTS
    with install("a", guards="keep"):
        assert traced_under() == ("keep", *DEFAULTS[1:])
    assert traced_under() == DEFAULTS


def test_uninstalling_gives_the_logger_back(install: Install, caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("graphmend_hook")
    before = (log.level, log.propagate, list(log.handlers))
    first, second = install("a", log="debug"), install("b", log="error")
    assert (log.level, log.propagate, len(log.handlers)) == (logging.ERROR, False, len(before[2]) + 1)
    second.uninstall()
    assert (log.level, log.propagate) == (logging.DEBUG, False)
    first.uninstall()
    assert (log.level, log.propagate, list(log.handlers)) == before


def test_handlers_of_the_programs_own_are_kept(install: Install) -> None:
    log, own = logging.getLogger("graphmend_hook"), logging.NullHandler()
    log.addHandler(own)
    try:
        with install("a", log="info"):
            assert (log.level, log.handlers, log.propagate) == (logging.INFO, [own], True)
        assert (log.level, log.handlers) == (logging.NOTSET, [own])
    finally:
        log.removeHandler(own)


def test_an_installation_that_failed_leaves_nothing(install: Install) -> None:
    log = logging.getLogger("graphmend_hook")
    with pytest.raises(StrictError):
        install("pytest", strict=True, log="debug", guards="keep")
    assert (active(), traced_under(), log.level) == ((), DEFAULTS, logging.NOTSET)


def test_the_setting_is_named_as_it_was_given(install: Install, tmp_path: Path) -> None:
    install("a", guards="async")
    for form, name in ((Setting.option, "--guards"), (Setting.variable, "GRAPHMEND_GUARDS")):
        with pytest.raises(ConfigError, match=rf"^{name}: exact is asked for the cells of this notebook, but async"):
            install_settings(Settings(), form)


def test_a_program_that_asks_for_another_choice_is_told(python: Any, write: Any) -> None:
    """The command line's choice reaches the program's own call, which may also leave it open."""
    write("a.py", "import graphmend_hook\nprint(graphmend_hook.install('b').settings.guards)\n")
    for more in ((), ("--no-children",)):
        assert python("-m", "graphmend_hook", "--guards=keep", *more, "a.py").stdout == "keep\n"
    write("a.py", "import graphmend_hook\ngraphmend_hook.install('b', guards='async')\n")
    ran = python("-m", "graphmend_hook", "--guards=keep", "a.py")
    assert "ConfigError: guards: async is asked for b, but keep for transformers, " in ran.stderr
