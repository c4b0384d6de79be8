"""Settings: every variable, every malformed value, and the round trip through a child's environment."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphmend_hook
from graphmend_hook.diagnostics import ConfigError, GraphmendError
from graphmend_hook.rules import order
from graphmend_hook.settings.config import GUARD_MODES, RULE_NAMES, Settings
from graphmend_hook.settings.syntax import check_mendable, is_directory_pattern, join_list, split_list

VALUES = [
    # variable, text, field, value
    ("MODULES", "transformers", "modules", ("transformers",)),
    ("MODULES", "a,b.c , d.*.e\t./src\n", "modules", ("a", "b.c", "d.*.e", "./src")),
    ("MODULES", '"/my project/src",a', "modules", ("/my project/src", "a")),
    ("MODULES", '"/a ""quoted"", path/x"', "modules", ('/a "quoted", path/x',)),
    ("MODULES", "/o'brien/src", "modules", ("/o'brien/src",)),
    ("MODULES", " , ", "modules", ()),
    ("DENY", "a.b,torch,*", "deny", ("a.b", "torch", "*")),
    ("RULES", "", "rules", RULE_NAMES),
    ("RULES", "all", "rules", RULE_NAMES),
    ("RULES", "none", "rules", ()),
    ("RULES", "defer", "rules", ("defer",)),
    ("RULES", "-defer", "rules", tuple(name for name in RULE_NAMES if name != "defer")),
    ("RULES", "all,-defer", "rules", tuple(name for name in RULE_NAMES if name != "defer")),
    ("GUARDS", "", "guards", "exact"),
    ("GUARDS", " Async", "guards", "async"),
    ("GUARDS", "keep", "guards", "keep"),
    ("VALUES", "", "values", ()),
    ("VALUES", "image_grid_thw, *_shapes", "values", ("image_grid_thw", "*_shapes")),
    ("CACHE_DIR", "", "cache_dir", None),
    ("CACHE_DIR", "/var/cache/mine", "cache_dir", Path("/var/cache/mine")),
    ("CACHE_DIR", "~/mine", "cache_dir", Path("~/mine").expanduser()),
    *[("STRICT", text, "strict", True) for text in ("1", "true", "YES", " on ")],
    *[("STRICT", text, "strict", False) for text in ("", "0", "False", "no", "off", " ")],
    *[("REPORT", text, "report", "-") for text in ("1", "on", "-", "yes")],
    *[("REPORT", text, "report", "") for text in ("", "0", "off", " ")],
    ("REPORT", "/tmp/report-{pid}.json", "report", "/tmp/report-{pid}.json"),
    ("LOG", "", "log", ""),
    ("LOG", "debug", "log", "DEBUG"),
    ("LOG", " Warning", "log", "WARNING"),
    *[("LATE", text, "late", True) for text in ("1", "true")],
    *[("LATE", text, "late", False) for text in ("", "0")],
    *[("DISABLE", text, "disable", True) for text in ("1", "true", "YES", "on")],
    *[("DISABLE", text, "disable", False) for text in ("", "0", "no", "OFF")],
]


@pytest.mark.parametrize(("variable", "text", "field", "value"), VALUES)
def test_values(variable: str, text: str, field: str, value: object) -> None:
    settings = Settings.from_env({f"GRAPHMEND_{variable}": text, "PATH": "/bin"})
    assert getattr(settings, field) == value
    others = [other.name for other in fields(Settings) if other.name != field]
    assert [getattr(settings, name) for name in others] == [getattr(Settings(), name) for name in others]


def test_every_setting_has_a_test() -> None:
    assert {variable.lower() for variable, *_ in VALUES} == {field.name for field in fields(Settings)}


MALFORMED = [
    # variable, text, what the message says beside the variable
    ("MODULES", "my-package", "'my-package' is not a module pattern; use a dotted name such as"),
    ("MODULES", "a..b", "'a..b' is not a module pattern"),
    ("MODULES", "pkg.", "'pkg.' is not a module pattern"),
    ("MODULES", "a;b", "'a;b' is not a module pattern"),
    ("MODULES", "1st", "'1st' is not a module pattern"),
    ("MODULES", "pkg.class", "'pkg.class' is not a module pattern"),
    ("MODULES", "pkg[x]", "'pkg[x]' is not a module pattern"),
    ("MODULES", '"a b"', "'a b' is not a module pattern"),
    ("MODULES", "torch.nn", "'torch' cannot be mended; name the libraries that"),
    ("MODULES", "transformers,os.path", "'os' cannot be mended"),
    ("MODULES", "graphmend_hook", "'graphmend_hook' cannot be mended"),
    ("MODULES", "*", "'*' would match every module; start it with a package name"),
    ("MODULES", "*.models", "'*.models' would match every module"),
    ("DENY", "my-package", "'my-package' is not a module pattern"),
    ("RULES", "bogus", "there is no rule 'bogus'; use all, none, or names out of defer"),
    ("RULES", "defer,-bogus", "there is no rule '-bogus'"),
    ("RULES", "--defer", "there is no rule '--defer'"),
    ("RULES", "-all", "there is no rule '-all'"),
    ("GUARDS", "none", "'none' is not a way to treat guards; use exact, async, keep"),
    ("CACHE_DIR", "~nobody-of-that-name/cache", "use an absolute path"),
    ("STRICT", "maybe", "'maybe' is neither on nor off; use 1 or 0"),
    ("DISABLE", "2", "'2' is neither on nor off; use 1 or 0"),
    ("LOG", "verbose", "'verbose' is not a level; use debug, info, warning or error"),
    ("MODULE", "transformers", "is not a setting of graphmend_hook; did you mean GRAPHMEND_MODULES?"),
]


@pytest.mark.parametrize(("variable", "text", "message"), MALFORMED)
def test_malformed_values(variable: str, text: str, message: str) -> None:
    name = f"GRAPHMEND_{variable}"
    with pytest.raises(ConfigError) as raised:
        Settings.from_env({name: text})
    assert str(raised.value).startswith(name)
    assert message in str(raised.value)
    assert isinstance(raised.value, (GraphmendError, ValueError))


@pytest.mark.parametrize(("variable", "text", "message"), MALFORMED)
def test_kill_switch_wins_over_malformed_values(variable: str, text: str, message: str) -> None:
    settings = {f"GRAPHMEND_{variable}": text, "GRAPHMEND_DISABLE": "1"}
    if variable != "DISABLE":
        assert Settings.from_env(settings) == Settings(disable=True)


@pytest.mark.parametrize("variable", ["MODULES", "STRICT", "REPORT"])
def test_malformed_value_stops_the_import_with_a_message(
    variable: str, python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    env = {"GRAPHMEND_MODULES": "app", f"GRAPHMEND_{variable}": "a-b"}
    ran = python("-c", "import graphmend_hook", **env)
    assert ran.stderr.count(f"graphmend_hook: error: GRAPHMEND_{variable}: 'a-b' is") == (variable != "REPORT")


def test_arguments_are_checked_too(fresh_imports: Path) -> None:
    for options in ({"modules": "my-package"}, {"deny": ["a b"]}, {"rules": "bogus"}):
        with pytest.raises(ConfigError):
            graphmend_hook.install(**{"modules": "app", **options})  # type: ignore[arg-type]


def test_arguments_add_to_the_environment(fresh_imports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMEND_DENY", "app.one")
    monkeypatch.setenv("GRAPHMEND_RULES", "none")
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(fresh_imports / "cache"))
    hook = graphmend_hook.install("app lib", deny=["app.two"], strict=True)
    settings = hook.settings
    assert settings.modules == ("app", "lib")
    assert settings.deny == ("app.one", "app.two")
    assert (settings.rules, settings.strict, settings.cache_dir) == ((), True, fresh_imports / "cache")
    assert graphmend_hook.install("app", rules="all").settings.rules == RULE_NAMES
    assert graphmend_hook.install("app", rules=()).settings.rules == ()


def test_the_environment_of_a_set_uid_program_is_not_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever started it made that, and has other rights."""
    monkeypatch.setenv("GRAPHMEND_MODULES", "app")
    assert Settings.from_env().modules == ("app",)
    assert caplog.records == []
    monkeypatch.setattr("os.getuid", lambda: os.geteuid() + 1)
    assert Settings.from_env() == Settings()
    assert [record.getMessage()[:6] for record in caplog.records] == ["GM013:"]
    monkeypatch.delenv("GRAPHMEND_MODULES")
    Settings.from_env()
    assert len(caplog.records) == 1
    assert Settings.from_env({"GRAPHMEND_MODULES": "app"}).modules == ("app",)


def test_every_rule_of_the_engine_has_its_place() -> None:
    assert order._BY_NAME.keys() == set(RULE_NAMES)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Settings().strict = True  # type: ignore[misc]


# The environment of a child

names = st.from_regex(r"[a-z_]{2,5}9", fullmatch=True)
dotted = st.lists(names, min_size=1, max_size=3).map(".".join)
globs = st.tuples(names, st.lists(names | st.sampled_from(["*", "model_*", "v?"]), max_size=2)).map(
    lambda parts: ".".join([parts[0], *parts[1]])
)
characters = st.characters(blacklist_characters="\0", blacklist_categories=("Cs",))
directories = st.text(characters, min_size=1, max_size=8).map(lambda text: os.path.normpath(f"/{text}/src"))
patterns = st.lists(dotted | globs | directories, max_size=4).map(tuple)
valid = st.builds(
    Settings,
    modules=patterns,
    deny=patterns,
    rules=st.sets(st.sampled_from(RULE_NAMES)).map(lambda some: tuple(rule for rule in RULE_NAMES if rule in some)),
    guards=st.sampled_from(GUARD_MODES),
    values=st.lists(globs, max_size=3).map(tuple),
    cache_dir=st.none() | directories.map(Path),
    strict=st.booleans(),
    report=st.sampled_from(["", "-", "/tmp/x.json", "/tmp/a b,{pid}.json"]),
    log=st.sampled_from(["", "DEBUG", "ERROR"]),
    late=st.booleans(),
    disable=st.booleans(),
)


@given(settings=valid)
def test_round_trip(settings: Settings) -> None:
    assert Settings.from_env(settings.as_env()) == settings


@given(settings=valid, inherited=valid)
def test_child_settings_replace_inherited_ones(settings: Settings, inherited: Settings) -> None:
    assert Settings.from_env({**inherited.as_env(), **settings.as_env()}) == settings


@given(items=st.lists(st.text(characters, min_size=1)))
def test_lists_round_trip(items: list[str]) -> None:
    assert split_list(join_list(items)) == tuple(items)


@given(text=st.text())
def test_any_text_parses_or_is_refused(text: str) -> None:
    """Nothing but ConfigError, whatever the variables hold."""
    for field in fields(Settings):
        with contextlib.suppress(ConfigError):
            Settings.from_env({f"GRAPHMEND_{field.name.upper()}": text})


def test_relative_places_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(modules=("./src", "app"), deny=("..",), cache_dir=Path("cache"), report="out.json")
    env = settings.as_env()
    assert env["GRAPHMEND_MODULES"] == f"{tmp_path}/src,app"
    assert env["GRAPHMEND_DENY"] == str(tmp_path.parent)
    assert env["GRAPHMEND_CACHE_DIR"] == f"{tmp_path}/cache"
    assert env["GRAPHMEND_REPORT"] == f"{tmp_path}/out.json"


def test_child_process_has_the_settings(python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """Through a real environment, with a directory that needs quotes."""
    settings = Settings(modules=("app", "/my project/src"), deny=("app.x",), report="-", strict=True)
    code = "import graphmend_hook.settings.config as c; print(c.Settings.from_env())"
    ran = python("-c", code, **{**settings.as_env(), "GRAPHMEND_REPORT": ""})
    assert ran.stdout == f"{Settings(modules=settings.modules, deny=settings.deny, strict=True)}\n", ran.stderr


@pytest.mark.parametrize("pattern", [".", "..", "./src", "/", "/abs", "src/", "~/x", "a/b"])
def test_directories_are_told_from_names(pattern: str) -> None:
    assert is_directory_pattern(pattern)
    check_mendable(pattern)


@pytest.mark.parametrize(
    ("text", "rules"), [("defer", ("defer",)), (["defer"], ("defer",)), (None, RULE_NAMES), ("all", RULE_NAMES)]
)
def test_rules_argument(text: str | list[str] | None, rules: tuple[str, ...], fresh_imports: Path) -> None:
    assert graphmend_hook.install("app", rules=text, cache_dir=fresh_imports / "c").settings.rules == rules


@pytest.mark.parametrize("level", ["debug", "ERROR"])
def test_log_level(level: str, python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("def f():\n    print(1)\n")
    ran = python("-c", "import graphmend_hook, app", GRAPHMEND_MODULES="app", GRAPHMEND_LOG=level)
    lines = ran.stderr.splitlines()
    assert any(line.endswith("DEBUG mended app: 1 of 1 sites") for line in lines) is (level == "debug")
    assert all(line.startswith("graphmend_hook[") for line in lines)
    assert logging.getLogger("graphmend_hook").handlers == []
