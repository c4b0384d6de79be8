"""Each wrong use is told of in one line that names it, and the page of the docs shows what is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import wrong_uses
from wrong_uses import USES, Use

PAGE = Path(__file__).parents[2] / "docs" / "wrong-uses.md"


@pytest.mark.parametrize("use", USES, ids=str)
def test_is_told_of(use: Use) -> None:
    with wrong_uses.folder():
        said, status = wrong_uses.answer(use)
    assert said
    assert "Traceback" not in said
    named = (
        [use.comment, *use.env] if not use.words else use.words[-1:] if len(use.words) > 1 else ["program", "required"]
    )
    assert any(name.removesuffix("s") in said for name in named if name) or status == 2
    assert status == (0 if use.comment else 1 if use.env else status or 1)


def test_the_page_shows_what_is_said() -> None:
    assert len(USES) >= 40
    assert PAGE.read_text() == wrong_uses.page()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import graphmend_hook; print('kept')", 1),
        ("import graphmend_hook; open('kept', 'w').write('kept'); raise ValueError", 1),
        ("import graphmend_hook, atexit; atexit.register(print, 'kept')", 1),
        ("import graphmend_hook; file = open('kept', 'w'); file.write('kept')", 1),  # flushed by the interpreter alone
        ("import graphmend_hook, app", 0),
    ],
)
def test_strict_has_a_status_in_a_program_of_its_own(code: str, status: int, python, write, tmp_path: Path) -> None:
    """Also by a plain import, and nothing is lost by it."""
    write("app.py", "def f(x):\n    print(x)\n")
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_STRICT="1", GRAPHMEND_CACHE_DIR=str(tmp_path / "cache"))
    assert ran.returncode == status
    assert ("GM004" in ran.stderr) is bool(status)
    kept = tmp_path / "kept"
    assert not status or "kept" in ran.stdout + (kept.read_text() if kept.exists() else "")


def test_a_wrong_setting_is_one_line(python) -> None:
    ran = python("-c", "import graphmend_hook", GRAPHMEND_MODULES="1x?")
    assert ran.returncode == 1
    assert ran.stderr.startswith("graphmend_hook: error: GRAPHMEND_MODULES: '1x?'")
    assert len(ran.stderr.splitlines()) == 1
    ran = python("-c", "import graphmend_hook; 1 / 0", GRAPHMEND_MODULES="app")
    assert ran.stderr.startswith("Traceback")


def test_a_misspelt_variable_is_told_of(python) -> None:
    ran = python("-c", "import graphmend_hook; print('goes on')", GRAPHMEND_MODULE="transformers")
    assert (ran.stdout, "did you mean GRAPHMEND_MODULES?" in ran.stderr) == ("goes on\n", True)


def test_a_misspelt_comment_is_told_of_from_the_cache_too(python, write, tmp_path: Path) -> None:
    write("app.py", "def f(x):\n    print(x)  # graphmend: of\n")
    for _ in range(2):
        ran = python(
            "-c", "import graphmend_hook, app", GRAPHMEND_MODULES="app", GRAPHMEND_CACHE_DIR=str(tmp_path / "c")
        )
        assert f"GM020: {tmp_path}/app.py:2: '# graphmend: of' switches nothing off" in ran.stderr


def test_strict_leaves_workers_alone(python, write, tmp_path: Path) -> None:
    """A worker that mends nothing has done its part of the work, which its parent sees by its status."""
    write("app.py", "def f(x):\n    print(x)\n")
    script = write(
        "main.py",
        "import graphmend_hook, multiprocessing, os\n"
        "if __name__ == '__main__':\n"
        "    import app\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=os.getpid)\n"
        "    worker.start(); worker.join(); print(worker.exitcode)\n",
    )
    env = {"GRAPHMEND_MODULES": "app", "GRAPHMEND_STRICT": "1", "GRAPHMEND_CACHE_DIR": str(tmp_path / "cache")}
    ran = python(str(script), **env)
    assert (ran.returncode, ran.stdout) == (0, "0\n")


def test_a_report_for_programs(python, write, tmp_path: Path) -> None:
    write("app.py", "def f(x):\n    print(x)\n")
    code = "import graphmend_hook, app; print(graphmend_hook.report(as_dict=True)['modules'][0]['status'])"
    ran = python("-c", code, GRAPHMEND_MODULES="app", GRAPHMEND_CACHE_DIR=str(tmp_path / "cache"))
    assert ran.stdout == "mended\n"


@pytest.mark.parametrize(
    ("words", "left"), [(("--max-age", "30"), 1), (("--max-size", "0"), 0), (("--max-age", "1"), 1)]
)
def test_a_cache_is_pruned(words: tuple[str, ...], left: int, python, write, tmp_path: Path) -> None:
    """By when an entry was used last."""
    cache = tmp_path / "cache"
    for name in ("old", "new"):
        write(f"{name}.py", "def f(x):\n    print(x)\n")
    python("-c", "import graphmend_hook, old, new", GRAPHMEND_MODULES="old,new", GRAPHMEND_CACHE_DIR=str(cache))
    (old,) = cache.glob("*/old.*.gmc")
    os.utime(old, (0, 0))
    ran = python("-m", "graphmend_hook", "cache", "prune", f"--cache-dir={cache}", *words)
    assert ran.returncode == 0, ran.stderr
    assert [file.name.partition(".")[0] for file in cache.glob("*/*.gmc")] == ["new"] * left


def test_a_shell_is_told_what_may_follow(python, tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    out = tmp_path / "completions"
    code = "from graphmend_hook.cli import main; main([])"
    line = "graphmend cache "
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(out),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    python("-c", code, **asked)
    assert {"clear", "info", "prune", "warm"} <= set(
        out.read_text().replace("\x0b", "\n").replace("\x0c", "\n").split()
    )
