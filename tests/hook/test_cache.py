"""The cache: many writers, killed writers, damage of every kind, places that cannot be used or trusted."""

from __future__ import annotations

import errno
import importlib.util
import logging
import marshal
import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest
from hook_cases import MENDABLE, PLAIN, RULES, Ran, entries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphmend_hook.hook import cache as cache_module
from graphmend_hook.hook.cache import Cache, fingerprint
from graphmend_hook.rewrite import rewrite

SOURCE = MENDABLE.encode()
OTHER = MENDABLE.replace("value", "other").encode()
USE = "import app; print(app.f(7))"
RIGHT = "value 7\n7\n"
Write = Callable[[str, str], Path]
Hooked = Callable[..., Ran]


def store(cache: Cache, path: str, source: bytes = SOURCE) -> Path:
    """Put the right entry for `source` at `path`, and give its file."""
    cache.put(path, source, rewrite(source, path, RULES))
    file = Path(cache._file(path))
    assert file.is_file()
    return file


@pytest.fixture
def cache(cache_dir: Path) -> Cache:
    return Cache(cache_dir, RULES)


# Damage


def test_what_was_put_is_read(cache: Cache) -> None:
    store(cache, "/src/app.py")
    found = cache.get("/src/app.py", SOURCE)
    assert found == rewrite(SOURCE, "/src/app.py", RULES)
    assert found.code is not None
    assert found.mended == 1


def test_entry_cut_off_at_every_length_is_a_miss(cache: Cache) -> None:
    file = store(cache, "/src/app.py")
    data = file.read_bytes()
    for length in range(len(data)):
        file.write_bytes(data[:length])
        assert cache.get("/src/app.py", SOURCE) is None, length
    file.write_bytes(data)
    assert cache.get("/src/app.py", SOURCE) is not None


def test_entry_with_any_flipped_bit_is_a_miss(cache: Cache) -> None:
    file = store(cache, "/src/app.py")
    data = file.read_bytes()
    for index in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[index] ^= 1 << bit
            file.write_bytes(damaged)
            assert cache.get("/src/app.py", SOURCE) is None, (index, bit)


@given(start=st.integers(0, 2000), size=st.integers(0, 2000), filling=st.binary(max_size=200))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_entry_with_any_part_replaced_is_a_miss(cache: Cache, start: int, size: int, filling: bytes) -> None:
    file = store(cache, "/src/app.py")
    data = file.read_bytes()
    damaged = data[:start] + filling + data[start + size :]
    file.write_bytes(damaged)
    assert (cache.get("/src/app.py", SOURCE) is None) == (damaged != data)


def test_parts_of_two_entries_are_a_miss(cache: Cache) -> None:
    """Each of the three parts may come from an entry for another source; only whole entries count."""
    files = [store(cache, "/src/app.py", source).read_bytes() for source in (SOURCE, OTHER)]
    file = Path(cache._file("/src/app.py"))
    cuts = [(0, 20), (20, 36), (36, None)]
    for choice in range(1, 7):
        parts = [files[choice >> index & 1][start:end] for index, (start, end) in enumerate(cuts)]
        file.write_bytes(b"".join(parts))
        assert cache.get("/src/app.py", SOURCE) is None, choice
        assert cache.get("/src/app.py", OTHER) is None, choice


def test_entry_under_the_name_of_another_module_is_a_miss(cache: Cache) -> None:
    """Two modules with the same text: the code knows the file that it was made for."""
    file = store(cache, "/src/app.py")
    os.rename(file, cache._file("/src/twin.py"))
    assert cache.get("/src/twin.py", SOURCE) is None


def test_directory_in_the_place_of_an_entry_is_a_miss(cache: Cache) -> None:
    file = store(cache, "/src/app.py")
    file.unlink()
    file.mkdir()
    assert cache.get("/src/app.py", SOURCE) is None
    cache.put("/src/app.py", SOURCE, rewrite(SOURCE, "/src/app.py", RULES))
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_rejected_reads_are_traced_with_their_reason(cache: Cache, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "graphmend_hook.cache")
    cache.get("/src/app.py", SOURCE)
    file = store(cache, "/src/app.py")
    data = file.read_bytes()
    cache.get("/src/app.py", OTHER)
    for damaged in (data[:10], data[:-1], data[:3], b"XXXX" + data[4:]):
        file.write_bytes(damaged)
        cache.get("/src/app.py", SOURCE)
    reasons = [message.rpartition(": ")[2] for message in caplog.messages]
    expected = ["No such file or directory", "made from another source"]
    assert reasons == [*expected, "damaged", "damaged", "not an entry", "not an entry"]


# Writers


# Each statement replaces something that `Cache.put` calls by the end of the process.
KILLED_AT = {
    "before the temporary file": "cache.new_file = die",
    "at the first byte": "cut_at = 0",
    "within the header": "cut_at = 21",
    "within the payload": "cut_at = 200",
    "at the last byte": "cut_at = -1",
    "before the rename": "os.replace = die",
    "after the rename": "replace = os.replace; os.replace = lambda *paths: (replace(*paths), die())",
}
KILLED_WRITER = """
import os, signal
from graphmend_hook.hook import cache
cut_at = None
def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)
{statement}
class CutOff:
    def __init__(self, descriptor):
        self.descriptor = descriptor
    def __enter__(self):
        return self
    def __exit__(self, *exc_info):
        pass
    def write(self, data):
        os.write(self.descriptor, data[:cut_at])
        die()
if cut_at is not None:
    cache.open = lambda file, mode: CutOff(file) if mode == "wb" else open(file, mode)
import app
print("alive")
"""


@pytest.mark.parametrize("moment", KILLED_AT)
def test_killed_writer_leaves_no_wrong_entry(
    moment: str, write: Write, python: Callable[..., subprocess.CompletedProcess[str]], hooked: Hooked, cache_dir: Path
) -> None:
    write("app.py", MENDABLE)
    code = "import graphmend_hook" + KILLED_WRITER.format(statement=KILLED_AT[moment])
    killed = python("-c", code, GRAPHMEND_MODULES="app")
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, ""), killed.stderr
    renamed = moment == "after the rename"
    assert len(entries(cache_dir)) == renamed
    impatient = "from graphmend_hook.hook import claims; claims.PATIENCE = 0.1; "
    for hit in (renamed, True):
        ran = hooked(impatient + USE)
        assert ran.stdout == RIGHT
        assert (ran.modules["app"]["status"], ran.modules["app"]["cached"]) == ("mended", hit)


@pytest.mark.parametrize("step", ["new_file", "write", "replace"])
def test_full_disk(step: str, cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left behind, nobody is bothered, and the next entry is not tried."""
    tries = []

    def fail(*args: object, **kwargs: object) -> object:
        tries.append(step)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class FullStream:
        def __init__(self, descriptor: int, mode: str) -> None:
            self.close = os.fdopen(descriptor, mode).close

        def __enter__(self) -> SimpleNamespace:
            return SimpleNamespace(write=fail)

        def __exit__(self, *exc_info: object) -> None:
            self.close()

    assert cache.directory is not None
    if step == "write":
        monkeypatch.setattr(cache_module, "open", FullStream, raising=False)
    else:
        monkeypatch.setattr(cache_module if step == "new_file" else os, step, fail)
    for path in ("/src/app.py", "/src/more.py"):
        cache.put(path, SOURCE, rewrite(SOURCE, path, RULES))
    assert tries == [step]
    assert list(cache.directory.iterdir()) == []


def test_long_and_strange_file_names(cache: Cache) -> None:
    for name in ("m" * 250, "я" * 120, "bad\udcff"):
        path = f"/src/{name}.py"
        store(cache, path)
        assert cache.get(path, SOURCE) is not None


# Places that cannot be used


def blocked_places(tmp_path: Path) -> dict[str, str]:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("in the way")
    return {"a file": str(in_the_way), "below a file": str(in_the_way / "deep" / "er"), "/proc": "/proc/1/nowhere"}


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc"])
@pytest.mark.parametrize("variable", ["GRAPHMEND_CACHE_DIR", "HOME"])
def test_unwritable_place_costs_only_the_cache(
    place: str, variable: str, write: Write, hooked: Hooked, tmp_path: Path
) -> None:
    write("app.py", MENDABLE)
    changes = {"GRAPHMEND_CACHE_DIR": "", "XDG_CACHE_HOME": "", variable: blocked_places(tmp_path)[place]}
    ran = hooked(USE, GRAPHMEND_LOG="info", **changes)
    assert ran.stdout == RIGHT
    assert ran.modules["app"]["status"] == "mended"
    assert ran.stderr.count("GM003") == 1


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES], ids=errno.errorcode.get)
def test_read_only_directory_is_still_read(
    code: int, cache: Cache, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(cache, "/src/app.py")

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(cache_module, "new_file", refuse)
    again = Cache(cache_dir, RULES)
    assert again.get("/src/app.py", SOURCE) is not None
    again.put("/src/more.py", SOURCE, rewrite(SOURCE, "/src/more.py", RULES))
    assert len(entries(cache_dir)) == 1


def test_user_without_a_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a number without a name: ``~`` then stays ``~``."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    cache = Cache(None, RULES)
    assert cache.directory is None
    cache.put("/src/app.py", SOURCE, rewrite(SOURCE, "/src/app.py", RULES))
    assert cache.get("/src/app.py", SOURCE) is None
    assert list(tmp_path.iterdir()) == []


def test_home_that_is_not_known_to_an_older_platformdirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves ``~`` as it is, which would be a directory of that name wherever the process happens to be."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *args, **kwargs: Path("~/.cache/graphmend_hook"))
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Cache(None, RULES).directory is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "environment",
    [{"HOME": "/home/x"}, {"HOME": "/home/x", "XDG_CACHE_HOME": "/c"}, {"HOME": "/home/x", "XDG_CACHE_HOME": ""}],
)
def test_the_place_is_that_of_platformdirs(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    expected = platformdirs.user_cache_path("graphmend_hook", appauthor=False)
    assert cache_module.cache_root(None) == expected
    if sys.platform == "linux":  # and without asking it, which takes milliseconds at each start of python
        monkeypatch.setattr(platformdirs, "user_cache_path", lambda *args, **kwargs: 1 / 0)
        assert cache_module.cache_root(None) == expected


@pytest.mark.parametrize("umask", ["0", "0o002", "0o022", "0o077"])
def test_default_place_is_private_under_every_umask(umask: str, write: Write, hooked: Hooked, tmp_path: Path) -> None:
    """With the umask 002 of many distributions a plain mkdir would make a directory that we refuse ourselves."""
    write("app.py", MENDABLE)
    code = f"import os; os.umask({umask}); import graphmend_hook.hook.install as i; from graphmend_hook.settings.config import "
    code += "Settings; i.install_settings(Settings.from_env().with_given({'modules': 'app'}, str)); " + USE
    for _ in range(2):
        ran = hooked(code, HOME=str(tmp_path / "home"), XDG_CACHE_HOME="", GRAPHMEND_CACHE_DIR="", GRAPHMEND_MODULES="")
        assert (ran.stdout, ran.stderr) == (RIGHT, "")
    assert ran.modules["app"]["cached"] is True
    root = tmp_path / "home/.cache/graphmend_hook"
    assert [path.stat().st_mode & 0o777 for path in (root, next(root.iterdir()), *entries(root))] == [0o700] * 2 + [
        0o600
    ]


def test_relative_cache_directory_stays_where_it_was(write: Write, hooked: Hooked, tmp_path: Path) -> None:
    write("app.py", MENDABLE)
    ran = hooked(
        f"import os; os.mkdir('else'); os.chdir('else'); {USE}", GRAPHMEND_CACHE_DIR="mine", PYTHONPATH=str(tmp_path)
    )
    assert ran.stdout == RIGHT
    assert len(entries(tmp_path / "mine")) == 1


# Places that cannot be trusted


@pytest.fixture(params=["root", "fingerprint"])
def trusted(request: pytest.FixtureRequest, cache: Cache, cache_dir: Path, write: Write) -> Iterator[Path]:
    """One of the two directories of a cache whose entry for ``app`` would print the wrong text."""
    path = str(write("app.py", MENDABLE))
    code = compile("def f(x):\n    return 'planted'\n", path, "exec")
    file = store(cache, path)
    checked = cache_module._digest(SOURCE) + marshal.dumps((code, ()))
    file.write_bytes(cache_module._MAGIC + cache_module._digest(checked) + checked)
    place = cache_dir if request.param == "root" else cache_dir / fingerprint(RULES)
    yield place
    if os.geteuid() == 0:
        os.chown(place, 0, 0)


def test_planted_entry_would_be_run_in_a_trusted_place(trusted: Path, hooked: Hooked) -> None:
    """The two tests below can fail."""
    assert hooked(USE).stdout == "planted\n"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_place_that_others_can_write_to_is_refused(mode: int, trusted: Path, hooked: Hooked) -> None:
    trusted.chmod(mode)
    ran = hooked(USE)
    assert ran.stdout == RIGHT
    assert ran.stderr.startswith(f"GM003: the cache directory {trusted} is not used: others may write to it; set")
    assert ran.stderr.count("GM003") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("flags", [(), ("-B",)])
def test_place_of_another_user_is_refused(flags: tuple[str, ...], trusted: Path, hooked: Hooked) -> None:
    os.chown(trusted, 12345, 12345)
    ran = hooked(USE, *flags)
    assert ran.stdout == RIGHT
    assert f"GM003: the cache directory {trusted} is not used: it belongs to user 12345, not to 0" in ran.stderr


def test_place_that_appears_later_is_not_read(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without permission to write we make no directory; one that somebody makes afterwards was never checked."""
    with monkeypatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        reader = Cache(cache_dir, RULES)
        assert reader.get("/src/app.py", SOURCE) is None
    store(Cache(cache_dir, RULES), "/src/app.py")
    cache_dir.chmod(0o777)
    assert reader.get("/src/app.py", SOURCE) is None


# What decides which entry is used


def test_optimisation_levels_do_not_mix(write: Write, hooked: Hooked, cache_dir: Path) -> None:
    write("app.py", MENDABLE.replace("    print", '    """doc"""\n    assert x == 7, x\n    print'))
    code = "import app\ntry: app.f(8)\nexcept AssertionError: print('assert')\nprint(app.f.__doc__)"
    expected = {(): "assert\ndoc\n", ("-O",): "value 8\ndoc\n", ("-OO",): "value 8\nNone\n"}
    for hit in (False, True):
        for flags, output in expected.items():
            ran = hooked(code, *flags)
            assert (ran.stdout, ran.modules["app"]["cached"]) == (output, hit)
    assert len(entries(cache_dir, "app")) == 3
    assert len({entry.parent for entry in entries(cache_dir)}) == 3


def test_no_bytecode_option_reads_but_does_not_write(
    write: Write, hooked: Hooked, cache_dir: Path, tmp_path: Path
) -> None:
    write("app.py", MENDABLE)
    for setting in ({"PYTHONDONTWRITEBYTECODE": "1"}, {}, {"PYTHONDONTWRITEBYTECODE": "1"}):
        before = cache_dir.exists()
        ran = hooked(USE, **setting)
        assert ran.stdout == RIGHT
        assert ran.modules["app"]["cached"] is before
        assert cache_dir.exists() is (before or not setting)
        assert (tmp_path / "__pycache__").exists() is cache_dir.exists()


def test_same_size_same_time_other_text(write: Write, hooked: Hooked) -> None:
    path = write("app.py", MENDABLE)
    time = path.stat().st_mtime_ns
    assert hooked(USE).stdout == RIGHT
    path.write_bytes(OTHER)
    os.utime(path, ns=(time, time))
    ran = hooked(USE)
    assert (ran.stdout, ran.modules["app"]["cached"]) == ("other 7\n7\n", False)


def test_moved_tree_tells_of_its_new_place(write: Write, hooked: Hooked, tmp_path: Path) -> None:
    write("old/app.py", MENDABLE + "def g():\n    f(1)\n    raise ValueError\n")
    code = "import traceback, app; print(app.f.__code__.co_filename)\n"
    code += "try: app.g()\nexcept ValueError: traceback.print_exc()"
    for place in ("old", "new"):
        for hit in (False, True):
            ran = hooked(code, PYTHONPATH=str(tmp_path / place))
            file = str(tmp_path / place / "app.py")
            assert ran.stdout.splitlines()[0] == file
            assert f'File "{file}", line 6, in g' in ran.stderr
            assert (ran.modules["app"]["cached"], ran.modules["app"]["path"]) == (hit, file)
        if place == "old":
            shutil.move(tmp_path / "old", tmp_path / "new")


def test_settings_of_rules_do_not_mix(write: Write, hooked: Hooked, cache_dir: Path) -> None:
    write("app.py", MENDABLE)
    for hit in (False, True):
        for rules, status in (("defer", "mended"), ("none", "unchanged")):
            ran = hooked(USE, GRAPHMEND_RULES=rules)
            assert ran.stdout == RIGHT
            assert (ran.modules["app"]["status"], ran.modules["app"]["cached"]) == (status, hit)
    assert len(entries(cache_dir)) == 2


def test_fingerprint_of_a_package_without_source_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_PACKAGE", tmp_path / "package.zip")
    assert fingerprint(RULES) != fingerprint(())


def test_fingerprint_sees_an_edit_of_the_rewriter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    shutil.copytree(cache_module._PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(cache_module, "_PACKAGE", package)
    seen = {fingerprint(RULES)}
    for name in ("rewrite.py", "rules/defer/rewrite.py", "rules/base.py", "source/scopes.py", "diagnostics.py"):
        (package / name).write_bytes((package / name).read_bytes() + b"\n")
        seen.add(fingerprint(RULES))
    assert len(seen) == 6
    traced = package / "rules" / "defer" / "traced.py"  # is no part of what rewritten modules are made by
    traced.write_bytes(traced.read_bytes() + b"\n")
    assert fingerprint(RULES) in seen


# The stock pyc


def test_the_stock_pyc_of_a_mended_module_is_the_stock_one(write: Write, hooked: Hooked, cache_dir: Path) -> None:
    path = write("app.py", MENDABLE)
    pyc = Path(importlib.util.cache_from_source(str(path)))
    assert hooked(USE).stdout == RIGHT
    assert len(entries(cache_dir, "app")) == 1
    written = pyc.read_bytes()
    pyc.unlink()
    hooked(USE, GRAPHMEND_MODULES="other")
    assert written == pyc.read_bytes()
    assert hooked(USE).modules["app"]["cached"] is True
    assert pyc.read_bytes() == written


DECLINED = 'def f(x):\n    try:\n        print("value", x)\n    except OSError:\n        pass\n    return x\n'


@pytest.mark.parametrize(("source", "sites"), [(PLAIN, 0), (DECLINED, 1)], ids=["no candidate", "declined"])
def test_nothing_to_mend_uses_the_stock_pyc(
    source: str, sites: int, write: Write, hooked: Hooked, cache_dir: Path
) -> None:
    path = write("app.py", source)
    pyc = Path(importlib.util.cache_from_source(str(path)))
    for hit in (False, True):
        module = hooked("import app; app.f(7)").modules["app"]
        assert (module["status"], module["cached"], len(module["sites"])) == ("unchanged", hit, sites)
        assert len(entries(cache_dir, "app")) == 1
        assert pyc.is_file()
    replacement = compile("def f(x):\n    return 'from the pyc'\n", str(path), "exec")
    pyc.write_bytes(pyc.read_bytes()[:16] + marshal.dumps(replacement))
    assert hooked("import app; print(app.f(7))").stdout == "from the pyc\n"


def test_pycache_prefix(write: Write, hooked: Hooked, tmp_path: Path) -> None:
    write("app.py", MENDABLE + "import plain\n")
    write("plain.py", PLAIN)
    ran = hooked(USE, PYTHONPYCACHEPREFIX=str(tmp_path / "prefix"), GRAPHMEND_MODULES="app,plain")
    assert ran.stdout == RIGHT
    assert not (tmp_path / "__pycache__").exists()
    assert [path.name.partition(".")[0] for path in (tmp_path / "prefix").rglob("plain*.pyc")] == ["plain"]


# What is kept for how long, and what is said where nothing is


def test_entries_of_old_fingerprints_are_removed(cache_dir: Path, write: Write, hooked: Hooked, tmp_path: Path) -> None:
    """When a new one begins: those to which nobody has added for two months, and nothing else in the directory."""
    write("app.py", MENDABLE)
    old, young, other = cache_dir / ("a" * 16), cache_dir / ("b" * 16), cache_dir / "notes"
    target = tmp_path / "elsewhere"
    for place in (old, young, other, target):
        place.mkdir(parents=True)
        (place / "x.gmc").touch()
    (cache_dir / ("c" * 16)).symlink_to(target)
    for place in (old, other, target):
        os.utime(place, (0, 0))
    hooked(USE, GRAPHMEND_CACHE_DIR=str(cache_dir))
    assert not old.exists()
    assert all((place / "x.gmc").exists() for place in (young, other, target))
    os.utime(young, (0, 0))
    hooked(USE, GRAPHMEND_CACHE_DIR=str(cache_dir))
    assert young.exists()  # the fingerprint was there


@pytest.mark.parametrize("way", ["variable", "option", "neither"])
def test_report_says_why_nothing_is_kept(way: str, write: Write, hooked: Hooked, cache_dir: Path) -> None:
    write("app.py", MENDABLE)
    flags = ["-B"] if way == "option" else []
    env = {"PYTHONDONTWRITEBYTECODE": "1"} if way == "variable" else {}
    settings = {"GRAPHMEND_CACHE_DIR": str(cache_dir), "GRAPHMEND_REPORT": "1"}
    cache_dir.mkdir()
    said = f"cache: GM003: the cache directory {cache_dir} is not written to: PYTHONDONTWRITEBYTECODE or -B says"
    assert (said in hooked(USE, *flags, **env, **settings).stderr) is (way != "neither")
