"""The code of the pages is code: Python compiles it, and the commands, options and variables in them exist."""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pages
import pytest

from graphmend_hook import pytest_plugin
from graphmend_hook.product import commands
from graphmend_hook.settings.config import SETTINGS
from graphmend_hook.settings.options import run_parser

PYTHON = [block for page in pages.PAGES for block in pages.blocks(page, "python")]
# Of what these pages have, some is wrong on purpose, or was there once.
WRONG_ON_PURPOSE = {"wrong-uses.md", "CHANGELOG.md"}
CHECKED = [page for page in pages.PAGES if page.name not in WRONG_ON_PURPOSE]
INLINE = re.compile(r"`((?:graphmend|python -m graphmend_hook) [\w ./=,*:-]+)`")
LINE = re.compile(
    r"^(?:\$ | *- run: |RUN )?(?:\w+=\S* )*((?:graphmend(?! \w+:)|python -m graphmend_hook) .*?)(?: +#.*| \|.*| 2>.*)?$",
    re.MULTILINE,
)


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_is_python(block: pages.Block) -> None:
    compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@cache
def options_of(command: str) -> tuple[set[str], bool]:
    """The options of a command and of those below it; does it take a program, whose words are not ours?"""
    if command == "run":
        return {word for action in run_parser("x")._actions for word in action.option_strings}, True
    parser = argparse.ArgumentParser()
    importlib.import_module(f"graphmend_hook.product.commands.{command}").add_arguments(parser)
    found, actions = set(), list(parser._actions)
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            actions += [inner for each in action.choices.values() for inner in each._actions]
        found |= set(action.option_strings)
    return found, command in ("explain", "doctor")


def wrong_words(line: str) -> Iterator[str]:
    """The words of a command line of ours that the command does not know."""
    words = shlex.split(line.replace("...", " ").replace("|", " "))
    words = words[1:] if words[0] == "graphmend" else words[3:]
    is_command = words and words[0] in commands.NAMES
    if line.startswith("graphmend ") and words[0] not in (*commands.NAMES, "run", "COMMAND", "--version"):
        yield words[0]
    known, takes_program = options_of(words[0] if is_command else "run")
    for word in words[is_command or words[:1] == ["run"] :]:
        if takes_program and (word in ("-m", "-c") or (re.search(r"\.pyz?$", word) and "=" not in word)):
            return
        if word.startswith("--") and word.partition("=")[0] not in known | {"--help", "--version"}:
            yield word


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_commands_and_options_exist(page: Path) -> None:
    lines = [line for block in pages.blocks(page, "", "console", "yaml") for line in LINE.findall(block.text)]
    lines += INLINE.findall(pages.without_blocks(page.read_text(encoding="utf-8")))
    wrong = {line: words for line in lines if (words := list(wrong_words(line)))}
    assert not wrong


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("graphmend explan train.py", ["explan"]),
        ("graphmend explain --jsn - train.py --jsn", ["--jsn"]),
        ("python -m graphmend_hook --moduls=x train.py --lr 3", ["--moduls=x"]),
        ("python -m graphmend_hook explain --json - train.py", []),
        ("graphmend cache prune --max-age 3 --age", ["--age"]),
    ],
)
def test_a_wrong_word_is_found(line: str, wrong: list[str]) -> None:
    assert list(wrong_words(line)) == wrong


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_settings_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    variables = {setting.variable() for setting in SETTINGS}
    assert set(re.findall(r"(?<![\w{])GRAPHMEND_[A-Z_]+\b(?!\*)", text)) <= variables
    options = {pytest_plugin._option(setting) for setting in SETTINGS}
    assert set(re.findall(r"--graphmend[a-z-]*\b", text)) <= options


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_sessions_and_modules_exist(page: Path) -> None:
    """What prints the numbers of the pages."""
    text = page.read_text(encoding="utf-8")
    tree = ast.parse((pages.ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for words in re.findall(r"nox -s ((?:[a-z_]+ ?)+)", text):
        assert set(words.split()) & sessions, words
    for module in re.findall(r"python -m ((?:bench|tests)[\w.]*\w)", text):
        place = pages.ROOT / module.replace(".", "/")
        assert place.with_suffix(".py").exists() or (place / "__main__.py").exists(), module


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_tests_exist(page: Path) -> None:
    for name in re.findall(r"`(?:\w+=\S+ )*pytest (tests/[\w/]+\.py)", page.read_text(encoding="utf-8")):
        assert (pages.ROOT / name).exists(), name
