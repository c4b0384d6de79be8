"""Every field of `Settings` is wherever a setting has to be: a field that is added later cannot be forgotten."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import graphmend_hook
from graphmend_hook import cli
from graphmend_hook.diagnostics import ConfigError
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.hook.cache import fingerprint
from graphmend_hook.product import commands
from graphmend_hook.product.commands import demo, doctor, explain
from graphmend_hook.product.doctor import environment
from graphmend_hook.product.report.ledger import HookRecord, Ledger, as_json
from graphmend_hook.rewrite import active_rules
from graphmend_hook.settings.config import SETTINGS, Kind, Setting, Settings, changed
from graphmend_hook.settings.options import run_parser

ROOT = Path(__file__).parents[2]
# By setting: a text, and the value that it means, which is no default.
EXAMPLES = {
    "modules": ("app, lib.*", ("app", "lib.*")),
    "deny": ("app.x", ("app.x",)),
    "rules": ("defer,where", ("defer", "where")),
    "guards": ("keep", "keep"),
    "values": ("grid_*,n", ("grid_*", "n")),
    "cache_dir": ("/some where/else", Path("/some where/else")),
    "strict": ("1", True),
    "report": ("/tmp/r.json", "/tmp/r.json"),
    "log": ("error", "ERROR"),
    "late": ("1", True),
    "disable": ("1", True),
}
# By setting: a text, and another value of Python's, that no setting of its kind takes.
BAD = {
    "modules": ("a-b", 3),
    "deny": ("1x", [None]),
    "rules": ("bogus", 3),
    "guards": ("none", 3),
    "values": (None, 3),
    "cache_dir": ("~nobody-of-that-name/x", 3),
    "strict": ("maybe", 3),
    "report": (None, 3),
    "log": ("loud", 10),
    "late": ("maybe", 3),
    "disable": ("2", []),
}
MENDING = set(Kind) - {Kind.PROCESS}
# By command, the kinds of settings that are options of it.
OPTIONS = {
    "run": set(Kind),
    "cache info": {Kind.REWRITING, Kind.STORAGE},
    "cache clear": {Kind.REWRITING, Kind.STORAGE},
    "cache prune": {Kind.REWRITING, Kind.STORAGE},
    "cache warm": {Kind.MODULES, Kind.REWRITING, Kind.STORAGE},
    "demo": {Kind.REWRITING, Kind.TRACING, Kind.STORAGE},
    "diff": {Kind.REWRITING},
    "doctor": MENDING,
    "explain": MENDING,
    "report show": set(),
    "report merge": set(),
    "rules": set(),
}
each_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)


def words(setting: Setting) -> list[str]:
    """The option, with the example's value."""
    return [f"{setting.option()}={EXAMPLES[setting.name][0]}" if setting.metavar else setting.option()]


def every_option(*kinds: Kind) -> list[str]:
    return [word for setting in SETTINGS if setting.kind in kinds for word in words(setting)]


def parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield "run", run_parser("graphmend run")
    for name in commands.NAMES:
        parser = argparse.ArgumentParser(name)
        importlib.import_module(f"graphmend_hook.product.commands.{name}").add_arguments(parser)
        actions = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        for action in actions:
            yield from ((f"{name} {word}", inner) for word, inner in action.choices.items())
        if not actions:
            yield name, parser


def test_the_tables_of_this_file_are_complete() -> None:
    names = [setting.name for setting in SETTINGS]
    assert list(EXAMPLES) == list(BAD) == names
    assert all(value != getattr(Settings(), name) for name, (_, value) in EXAMPLES.items())


@each_setting
def test_texts(setting: Setting) -> None:
    text, value = EXAMPLES[setting.name]
    default = getattr(Settings(), setting.name)
    assert (setting.read(text), setting.read(""), setting.read(value)) == (value, default, value)
    for each in (value, default):
        assert setting.read(setting.write(each)) == each
        json.dumps(setting.as_json(each))


@each_setting
def test_variable(setting: Setting) -> None:
    text, value = EXAMPLES[setting.name]
    made = Settings.from_env({setting.variable(): text})
    assert getattr(made, setting.name) == value
    assert Settings.from_env(made.as_env()) == made
    assert made.as_env().keys() == Settings().as_env().keys() == {each.variable() for each in SETTINGS}


def test_options_of_the_commands() -> None:
    found = dict(parsers())
    assert found.keys() == OPTIONS.keys()
    for command, parser in found.items():
        has = {word for action in parser._actions for word in action.option_strings}
        expected = {setting.option() for setting in SETTINGS if setting.kind in OPTIONS[command]}
        if command == "cache warm":
            expected.remove("--modules")  # its positional arguments
        assert has & {setting.option() for setting in SETTINGS} == expected, command


def test_children_of_a_run_have_every_option(python: Callable[..., Any]) -> None:
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, '-c', "
        "'from graphmend_hook.settings.config import Settings; print(Settings.from_env().as_env())'], cwd='/')"
    )
    options = [word for setting in SETTINGS if setting.name != "disable" for word in words(setting)]
    ran = python("-m", "graphmend_hook", *options, "-c", code, GRAPHMEND_CACHE_DIR="", GRAPHMEND_GUARDS="async")
    expected = Settings(**{name: value for name, (_, value) in EXAMPLES.items() if name != "disable"})
    assert ast.literal_eval(ran.stdout) == expected.as_env(), ran.stderr


def test_explain_hands_every_option_on(monkeypatch: pytest.MonkeyPatch) -> None:
    arms = []

    def run(_what: str, _program: list[str], variables: dict[str, str]) -> Any:
        arms.append(Settings.from_env(variables))
        return {"regions": []}, False

    monkeypatch.setattr(explain, "_run", run)
    assert cli.main(["explain", *every_option(*MENDING), "train.py"]) == 2  # "compiled nothing"
    every = {each.name: EXAMPLES[each.name][1] for each in SETTINGS if each.kind in MENDING}
    assert arms == [Settings(disable=True), Settings(**every)]


def test_demo_hands_every_option_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ran = []

    def run(command: list[str], env: dict[str, str], **_kwargs: object) -> subprocess.CompletedProcess[str]:
        ran.append(Settings.from_env(env))
        return subprocess.CompletedProcess(command, 1, "", "stopped")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(demo, "require", lambda *_packages: None)
    assert cli.main(["demo", *every_option(*OPTIONS["demo"])]) == 1
    every = {each.name: EXAMPLES[each.name][1] for each in SETTINGS if each.kind in OPTIONS["demo"]}
    assert ran == [Settings(cache_dir=Settings.from_env().cache_dir), Settings(**every)]


def test_doctor_looks_as_every_option_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def check_settings(env: dict[str, str]) -> Any:
        seen.append(Settings.from_env(env))
        raise ConfigError("seen")

    monkeypatch.setattr(environment, "check_settings", check_settings)
    monkeypatch.setattr(doctor, "_print", lambda finding: None)
    assert cli.main(["doctor", *every_option(*MENDING)]) == 2
    assert seen == [
        Settings(**{each.name: EXAMPLES[each.name][1] for each in SETTINGS if each.kind is not Kind.PROCESS})
    ]


def test_arguments_of_install(fresh_imports: Path) -> None:
    parameters = inspect.signature(graphmend_hook.install).parameters
    assert list(parameters) == [*(setting.name for setting in SETTINGS), "children"]
    documented = re.findall(r"\b(\w+)(?=[\w, ]*: )", graphmend_hook.install.__doc__ or "")
    assert {setting.name for setting in SETTINGS} <= set(documented)
    values = {name: value for name, (_, value) in EXAMPLES.items()}
    assert graphmend_hook.install(**values).settings == Settings(**values)
    texts = {name: text for name, (text, _) in EXAMPLES.items()}
    assert graphmend_hook.install(**texts).settings == Settings(**values)
    assert graphmend_hook.install("app").settings == Settings(modules=("app",))


@each_setting
def test_report(setting: Setting) -> None:
    _, value = EXAMPLES[setting.name]
    settings = Settings(**{setting.name: value})
    ledger = Ledger(hooks=[HookRecord(settings, None)])
    [hook] = as_json(ledger)["processes"][0]["hooks"]
    assert hook[setting.name] == setting.as_json(value)
    shown = changed(hook, *Kind)
    assert shown == [f"{setting.name} {setting.show(value)}"]
    assert changed({}, *Kind) == changed(Settings().as_json(), *Kind) == []


@each_setting
def test_cache_key(setting: Setting) -> None:
    """A setting is part of the key if, and only if, it changes what rewritten code is."""
    settings = Settings(**{setting.name: EXAMPLES[setting.name][1]})
    keys = {fingerprint(active_rules(each.rules)) for each in (settings, Settings())}
    assert len(keys) == (2 if setting.kind is Kind.REWRITING else 1)


@each_setting
def test_traced_code_finds_it(setting: Setting, fresh_imports: Path) -> None:
    if setting.kind is not Kind.TRACING:
        assert not hasattr(queue, setting.name)
        return
    default, (_, value) = getattr(Settings(), setting.name), EXAMPLES[setting.name]
    assert getattr(queue, setting.name) == default
    with graphmend_hook.install("app", **{setting.name: value}):
        assert getattr(queue, setting.name) == value
    assert getattr(queue, setting.name) == default


def test_table_of_the_readme() -> None:
    """One row for each setting, in order: its names, and a meaning that begins as its help does."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(GRAPHMEND_\w+)` \| `(--[a-z-]+)` \| (.*) \|$", text, re.MULTILINE)
    assert [row[:2] for row in rows] == [(setting.variable(), setting.option()) for setting in SETTINGS]
    for setting, (*_, meaning) in zip(SETTINGS, rows, strict=True):
        assert meaning.replace("`", "").startswith(setting.help), setting.name


# Values that cannot be used


BAD_TEXTS = [(setting, text) for setting in SETTINGS for text in BAD[setting.name][:1] if text is not None]


@pytest.mark.parametrize(("setting", "text"), BAD_TEXTS, ids=lambda part: getattr(part, "name", ""))
def test_bad_text_is_named_as_it_was_given(
    setting: Setting, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError) as raised:
        Settings.from_env({setting.variable(): text})
    name, _, said = str(raised.value).partition(": ")
    assert (name, "; use" in said or "; name" in said) == (setting.variable(), True)
    with pytest.raises(ConfigError, match=rf"^{setting.name}: {re.escape(said)}$"):
        graphmend_hook.install(**{"modules": "app", setting.name: text})
    if not setting.metavar:
        return
    target = {"run": ["x.py"], "explain": ["x.py"], "doctor": [], "demo": [], "diff": ["x.py"], "cache warm": ["x"]}
    for command, kinds in OPTIONS.items():
        if setting.kind not in kinds or (command, setting.name) == ("cache warm", "modules"):
            continue
        if command == "diff":
            monkeypatch.setattr("graphmend_hook.product.commands.diff._read", lambda path: b"")
        given = [f"{setting.option()}={text}", *target.get(command, [])]
        if command == "run":  # `main` would take an entry of this process's path away
            status = cli.run_main(given, "graphmend run")
        else:
            status = cli.main([*command.split(), *given])
        assert status == 2, command
        error = capsys.readouterr().err
        assert error == f"graphmend {command.split()[0]}: error: {setting.option()}: {said}\n", command


@each_setting
def test_bad_argument_is_named(setting: Setting) -> None:
    with pytest.raises(ConfigError, match=rf"^{setting.name}: .*; use "):
        graphmend_hook.install(**{"modules": "app", setting.name: BAD[setting.name][1]})


def test_kill_switch_of_the_environment_wins(monkeypatch: pytest.MonkeyPatch, fresh_imports: Path) -> None:
    monkeypatch.setenv("GRAPHMEND_DISABLE", "1")
    hook = graphmend_hook.install("app", disable=False)
    assert (hook.settings.disable, hook.installed) == (True, False)
    monkeypatch.delenv("GRAPHMEND_DISABLE")
    assert not graphmend_hook.install("app", disable=True).installed
