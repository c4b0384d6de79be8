"""``graphmend cache``: what it reports, that it deletes only entries, and that a later import finds what it made."""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend_hook.cli import main
from graphmend_hook.diagnostics import ConfigError
from graphmend_hook.hook import cache as cache_module
from graphmend_hook.hook.cache import Cache, fingerprint
from graphmend_hook.hook.locate import modules, source_file
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES

MENDABLE = 'def f(x):\n    print("value", x)\n    return x\n'
RULES = active_rules(RULE_NAMES)
FILES = ("__init__", "a", "b", "inner/__init__", "inner/c", "space/d", "e1", "e2", "e3", "e4", "e5", "e6")
NAMES = {"pkg", "pkg.a", "pkg.b", "pkg.inner", "pkg.inner.c", "pkg.space.d", *(f"pkg.e{n}" for n in range(1, 7))}
Write = Callable[[str, str], Path]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    return tmp_path / "graphmend-cache"


@pytest.fixture
def cache(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> Run:
    """Run the command in `tmp_path` with its cache there, and give its status, output and errors."""
    for name in [name for name in os.environ if name.startswith("GRAPHMEND_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(tmp_path / "graphmend-cache"))
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.WARNING, "graphmend_hook")  # so that it is set back afterwards

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["cache", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def package(write: Write) -> None:
    """A package of 12 modules, of which "a" and "inner.c" have something to mend; none survives an import."""
    for file in FILES:
        text = MENDABLE if file in ("a", "inner/c") else "x = 1\n"
        write(f"pkg/{file}.py", f"{text}import os\nif 'IMPORTABLE' not in os.environ: raise SystemExit('imported')\n")
    write("pkg/data.txt", MENDABLE)
    write("pkg/not-a-module.py", MENDABLE)
    write("pkg/__pycache__/cached.py", MENDABLE)


def entries(cache_dir: Path) -> list[Path]:
    return sorted(cache_dir.glob("*/*.gmc"))


def put(cache_dir: Path, name: str, rules: str = "") -> None:
    chosen = active_rules([rules]) if rules else RULES
    cache = Cache(cache_dir, chosen)
    cache.writable = True
    path = f"/src/{name}.py"
    cache.put(path, MENDABLE.encode(), rewrite(MENDABLE.encode(), path, chosen))


# Warming


@pytest.mark.parametrize("arguments", [("--jobs", "1"), ("--jobs", "2")])
@pytest.mark.usefixtures("package")
def test_what_is_warmed_is_found_by_the_hook(
    arguments: tuple[str, ...], python: Callable[..., object], write: Write, tmp_path: Path, cache_dir: Path
) -> None:
    """Also from a console script, where the image switches off pyc files and has the hook's settings."""
    write("graphmend", "import sys\nfrom graphmend_hook.cli import main\nif __name__ == '__main__': sys.exit(main())\n")
    settings = {"GRAPHMEND_MODULES": "pkg", "GRAPHMEND_REPORT": str(tmp_path / "{pid}.json"), "GRAPHMEND_STRICT": "1"}
    warmed = python("graphmend", "cache", "warm", *arguments, PYTHONDONTWRITEBYTECODE="1", **settings)
    assert (warmed.returncode, warmed.stderr) == (0, "")
    assert warmed.stdout.startswith("12 modules: 2 mended, 10 unchanged, 0 failed; 0 of them were in the cache; ")
    assert len(entries(cache_dir)) == 12
    assert list(tmp_path.glob("*.json")) == []  # no hook was installed, here or in a worker

    code = "import graphmend_hook, importlib\n" + "".join(f"importlib.import_module({n!r})\n" for n in sorted(NAMES))
    hooked = python("-c", code, IMPORTABLE="1", **settings)
    assert (hooked.returncode, hooked.stderr) == (0, "")
    (report,) = tmp_path.glob("*.json")
    found = {module["name"]: module for module in json.loads(report.read_text(encoding="utf-8"))["modules"]}
    assert found.keys() == NAMES
    assert all(module["cached"] for module in found.values())
    mended = {name for name, module in found.items() if module["status"] == "mended"}
    assert mended == {"pkg.a", "pkg.inner.c"}


@pytest.mark.usefixtures("package")
def test_warming_again_finds_everything(cache: Run) -> None:
    cache("warm", "pkg", "--jobs=1")
    status, out, err = cache("warm", "pkg", "--jobs=1")
    assert (status, err) == (0, "")
    assert "12 modules: 2 mended, 10 unchanged, 0 failed; 12 of them were in the cache; " in out


@pytest.mark.usefixtures("package")
def test_module_that_cannot_be_mended_is_named(cache: Run, write: Write, tmp_path: Path) -> None:
    write("pkg/broken.py", "def f(:\n    print(1)\n")
    status, out, err = cache("warm", "pkg", "--jobs=2")
    assert status == 1
    assert out.startswith("13 modules: 2 mended, 10 unchanged, 1 failed; ")
    place = tmp_path / "pkg/broken.py"
    assert err == f"failed: pkg.broken ({place}): SyntaxError: invalid syntax (broken.py, line 1)\n"


@pytest.mark.usefixtures("package")
def test_rules_of_the_runs_to_come(cache: Run, cache_dir: Path) -> None:
    cache("warm", "pkg", "--rules=where", "--jobs=1")
    assert {entry.parent.name for entry in entries(cache_dir)} == {fingerprint(active_rules(["where"]))}


PATTERNS = {
    "pkg.inner": {"pkg.inner", "pkg.inner.c"},
    "pkg.inner.c": {"pkg.inner.c"},
    "pkg.space": {"pkg.space.d"},
    "pkg.space.d": {"pkg.space.d"},
    "pkg.e?": {f"pkg.e{n}" for n in range(1, 7)},
    "pkg.*.c": {"pkg.inner.c"},
    "./pkg/inner": {"__init__", "c"},
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.usefixtures("package")
def test_patterns(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(modules([pattern]).values()) == PATTERNS[pattern]


@pytest.mark.usefixtures("package")
def test_denied_modules_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(modules(["pkg"], ["pkg.inner", "pkg.e*"]).values()) == {"pkg", "pkg.a", "pkg.b", "pkg.space.d"}


BAD = {
    ("warm",): "name the modules to mend, or set GRAPHMEND_MODULES",
    ("warm", "absent"): "there is no module 'absent': this python",
    ("warm", "pkg", "--jobs=0"): "--jobs: 0 processes cannot work; use 1 or more",
    (
        "warm",
        "pkg",
        "--rules=wear",
    ): "--rules: there is no rule 'wear'; did you mean 'where'? use all, none, or names out of",
    ("warm", "pkg.x*"): "'pkg.x*' matches no module that could be mended",
    ("warm", "p*.a"): "'p*.a': the name of the package cannot be a glob here; write it out",
    ("warm", "./absent"): "'./absent' is not a directory",
    ("warm", "torch"): "MODULES: 'torch' cannot be mended; name the libraries that run inside torch.compile",
    ("warm", "sys"): "MODULES: 'sys' cannot be mended; name the libraries that run inside torch.compile",
}


@pytest.mark.parametrize("arguments", BAD)
@pytest.mark.usefixtures("package")
def test_arguments_that_cannot_be_used(arguments: tuple[str, ...], cache: Run) -> None:
    status, out, err = cache(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"graphmend cache: error: {BAD[arguments]}")


def test_module_with_another_loader() -> None:
    with pytest.raises(ConfigError, match="'sys' does not come from a plain source file"):
        source_file("sys")


@pytest.mark.usefixtures("package")
def test_directory_that_is_not_trusted(cache: Run, cache_dir: Path) -> None:
    cache_dir.mkdir()
    cache_dir.chmod(0o777)
    text = (
        f"GM003: the cache directory {cache_dir} is not used: others may write to it; set GRAPHMEND_CACHE_DIR to a "
        "directory that only you can write to\n"
    )
    assert cache("warm", "pkg") == (2, "", f"graphmend cache: error: {text}")
    assert cache("clear") == (2, "", f"graphmend cache: error: {text}")
    status, out, err = cache("info")
    assert (status, err) == (1, "")
    assert out.endswith(text)
    assert list(cache_dir.iterdir()) == []


def test_what_is_not_trusted_is_said_once(python: Callable[..., object], write: Write, cache_dir: Path) -> None:
    write("app.py", MENDABLE)
    cache_dir.mkdir()
    cache_dir.chmod(0o777)
    code = "import sys; from graphmend_hook.cli import main; sys.exit(main(['cache', 'warm', 'app']))"
    done = python("-c", code)
    assert (done.returncode, done.stdout, done.stderr.count("GM003")) == (2, "", 1)


@pytest.mark.usefixtures("package")
def test_full_disk(cache: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(cache_module, "new_file", fail)
    status, out, err = cache("warm", "pkg", "--jobs=1")
    assert (status, out) == (2, "")
    assert err.startswith("graphmend cache: error: cannot write ")
    assert err.endswith(f"{os.strerror(errno.ENOSPC)}\n")


# Looking


def test_info_of_nothing_creates_nothing(cache: Run, cache_dir: Path) -> None:
    expected = (
        f"directory    {cache_dir}\n"
        f"fingerprint  {fingerprint(RULES)} (rules: defer, trap, sweep, where, value, grad)\n"
        "current      0 entries, 0 bytes\n"
        "stale        0 entries, 0 bytes (another version, python or choice of rules)\n"
    )
    assert cache("info") == (0, expected, "")
    assert not cache_dir.exists()


def test_info(cache: Run, cache_dir: Path) -> None:
    for name in ("a", "b"):
        put(cache_dir, name)
    put(cache_dir, "a", "where")
    _, out, _ = cache("info")
    size = sum(file.stat().st_size for file in (cache_dir / fingerprint(RULES)).iterdir())
    assert out.splitlines()[2].startswith(f"current      2 entries, {size / 1000:.1f} kB")
    assert out.splitlines()[3].startswith("stale        1 entry, ")
    _, out, _ = cache("info", "--rules", "where")
    assert out.splitlines()[1] == f"fingerprint  {fingerprint(active_rules(['where']))} (rules: where)"
    assert out.splitlines()[2].startswith("current      1 entry, ")
    _, out, _ = cache("info", "--cache-dir", "elsewhere")
    assert out.splitlines()[0] == f"directory    {cache_dir.parent / 'elsewhere'}"


def test_info_of_a_stale_directory_that_is_not_trusted(cache: Run, cache_dir: Path) -> None:
    put(cache_dir, "a", "where")
    folder = entries(cache_dir)[0].parent
    folder.chmod(0o770)
    status, out, _ = cache("info")
    assert status == 1
    assert f"GM003: the cache directory {folder} is not used: others may write to it" in out


def test_info_of_a_file(cache: Run, cache_dir: Path) -> None:
    cache_dir.write_text("in the way")
    status, out, _ = cache("info")
    assert status == 1
    assert f"GM003: the cache directory {cache_dir} is not used: [Errno {errno.ENOTDIR}]" in out


# Clearing


def test_clear_deletes_entries_only(cache: Run, cache_dir: Path, write: Write, tmp_path: Path) -> None:
    put(cache_dir, "a")
    put(cache_dir, "b", "where")
    entry, other = entries(cache_dir)
    write(f"outside/{entry.name}", "of somebody else")
    own = "0123456789abcdef"
    kept = [
        write(f"graphmend-cache/{entry.name}", "not in the directory of a fingerprint"),
        write(f"graphmend-cache/notes/{entry.name}", "not in the directory of a fingerprint"),
        write(f"graphmend-cache/{own}/notes.gmc", "not the name of an entry"),
        write(f"graphmend-cache/{own}/{entry.name}/inside", "a directory of that name"),
        write(f"graphmend-cache/{entry.parent.name}/.x.tmp", "a writer at work"),
        tmp_path / "outside" / entry.name,
    ]
    (cache_dir / "fedcba9876543210").symlink_to(tmp_path / "outside", target_is_directory=True)
    size = entry.stat().st_size + other.stat().st_size
    status, out, err = cache("clear")
    assert (status, err) == (0, "")
    assert out == f"deleted 2 entries, {size} bytes in {cache_dir}\n"
    assert all(file.exists() for file in kept)
    assert not entry.exists()
    assert not other.parent.exists()  # nothing else was in it


def test_clear_stale(cache: Run, cache_dir: Path) -> None:
    put(cache_dir, "a")
    put(cache_dir, "b", "where")
    _, out, _ = cache("clear", "--stale")
    assert out.startswith("deleted 1 entry, ")
    assert [file.parent.name for file in entries(cache_dir)] == [fingerprint(RULES)]
    assert cache("clear", "--stale")[1].startswith("deleted 0 entries, ")


def test_entry_that_cannot_be_deleted(cache: Run, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache_dir, "a")

    def refuse(file: Path, *args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))

    monkeypatch.setattr(Path, "unlink", refuse)
    (file,) = entries(cache_dir)
    expected = f"graphmend cache: error: cannot delete {file}: Permission denied\n"
    assert cache("clear") == (2, "", expected)


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("--max-age", "10"), {"b", "c"}),
        (("--max-age", "0"), set()),
        (("--max-size", "0.0003"), {"b", "c"}),
        (("--max-size", "0.00015"), {"c"}),  # "a" was used before "b", and goes with it
        (("--max-size", "0"), set()),
        (("--max-age", "1", "--max-size", "1"), {"c"}),
        (("--max-age", "100", "--max-size", "1"), {"a", "b", "c"}),
    ],
)
def test_prune_by_age_and_size(arguments: tuple[str, ...], left: set[str], cache: Run, cache_dir: Path) -> None:
    folder = cache_dir / ("0" * 16)
    folder.mkdir(parents=True, mode=0o700)
    for name, days, size in (("a", 30, 50), ("b", 5, 200), ("c", 0.5, 100)):
        entry = folder / f"{name}.{'0' * 32}.gmc"
        entry.write_bytes(bytes(size))
        os.utime(entry, (time.time() - days * 86400,) * 2)
    (folder / "notes.txt").write_text("not ours")
    status, said, errors = cache("prune", *arguments)
    assert (status, errors) == (0, "")
    assert said.startswith(f"deleted {3 - len(left)} entr")
    assert {file.name[0] for file in folder.glob("*.gmc")} == left
    assert (folder / "notes.txt").exists()
