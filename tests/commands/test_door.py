"""One door: the module is what the console script is; pipes that end early; completion; commands without torch."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from graphmend_hook import cli
from graphmend_hook.product import commands

MAIN = "import sys; from graphmend_hook.cli import main; sys.exit(main())"


def test_a_command_is_found_behind_the_module(python):
    ran = python("-m", "graphmend_hook", "rules", "GM018")
    assert (ran.returncode, ran.stdout.partition(":")[0], ran.stderr) == (0, "GM018", "")


@pytest.mark.parametrize("word", ["rules", "run"])
def test_a_script_of_that_name_wins_with_a_path(word, python, write):
    write(word, "import sys; print('the script', sys.argv)")
    ran = python("-m", "graphmend_hook", f"./{word}", "a")
    assert ran.stdout == f"the script ['./{word}', 'a']\n", ran.stderr
    assert python("-m", "graphmend_hook", "run", f"./{word}", "a").stdout == ran.stdout


@pytest.mark.parametrize("name", sorted(commands.NAMES))
def test_every_command_has_the_same_help_there(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["graphmend", name, "--help"])
    said = []
    for enter in (cli.main, cli.module_main):
        with pytest.raises(SystemExit):
            enter()
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != ""


@pytest.mark.parametrize(
    "words", [("rules",), ("cache", "info"), ("report", "show", "r.json"), ("--help",)], ids=" ".join
)
def test_a_reader_that_has_gone_is_no_error(words, clean_environment, tmp_path, python):
    python("-m", "graphmend_hook", "--report=r.json", "-c", "")
    reader, writer = os.pipe()
    os.close(reader)
    env = clean_environment(GRAPHMEND_CACHE_DIR=str(tmp_path / "c"))
    try:
        ran = subprocess.run(
            [sys.executable, "-c", MAIN, *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=env,
            cwd=tmp_path,
            check=False,
        )
    finally:
        os.close(writer)
    assert ran.stderr == b""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("graphmend do", {"doctor"}),
        ("graphmend cache ", {"info", "clear", "prune", "warm", "-h", "--help"}),
        ("graphmend run --gua", {"--guards"}),
        ("graphmend explain --base", {"--baseline"}),
    ],
)
def test_completion(line, expected, python, tmp_path):
    pytest.importorskip("argcomplete")
    out = tmp_path / "words"
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_IFS": "\n"}
    python("-c", MAIN, _ARGCOMPLETE_STDOUT_FILENAME=str(out), **asked)
    assert {word.strip() for word in out.read_text().split("\n")} - {""} == expected
