"""What a program sees of itself at its start is what plain python shows it: path, arguments, globals, spec, loader."""

from __future__ import annotations

import py_compile
import sys
import zipfile
from pathlib import Path

import pytest

PROBE = """
import sys
main = sys.modules["__main__"]
print(sys.argv, sys.path, sys.flags)
print(list(globals()), main.__dict__ is globals())
for name in ("__name__", "__doc__", "__package__", "__file__", "__cached__", "__annotations__", "__builtins__"):
    print(name, globals().get(name, "absent"))
print(__loader__ if isinstance(__loader__, type) else (type(__loader__), getattr(__loader__, "path", "no path")))
print(repr(main).replace(hex(id(__loader__)), "ADDRESS"))
if __spec__ is not None:
    print(__spec__.name, __spec__.parent, __spec__.origin, __spec__.cached, __spec__.has_location)
    print(__spec__.loader is __loader__, __spec__.submodule_search_locations)
"""
ARGUMENTS = ("--modules", "x", "--report", "-m", "--", "a b", "--help", "-c", "--disable")
FLAGS = {
    "no flag": (),
    "-P": ("-P",),
    "-I": ("-I",),
    "-O -B": ("-O", "-B"),
}
if sys.version_info < (3, 11):
    del FLAGS["-P"]


@pytest.fixture
def places(tmp_path: Path, write) -> dict[str, tuple[str, ...]]:
    """The probe in every form that python runs, by name: the command line to run it."""
    for name in ("probe.py", "sub/probe.py", "pkg/__main__.py", "pkg/inner.py", "dir/__main__.py", "latin name é.py"):
        write(name, PROBE)
    write("pkg/__init__.py", "")
    write("namespace/mod.py", PROBE)
    write("no_suffix", PROBE)
    (tmp_path / "link.py").symlink_to(tmp_path / "sub" / "probe.py")
    (tmp_path / "link_dir").symlink_to(tmp_path / "sub")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", PROBE)
    py_compile.compile(str(tmp_path / "probe.py"), cfile=str(tmp_path / "compiled.pyc"))
    (tmp_path / "no_suffix_compiled").write_bytes((tmp_path / "compiled.pyc").read_bytes())
    py_compile.compile(str(tmp_path / "probe.py"), cfile=str(tmp_path / "sourceless" / "mod.pyc"))
    (tmp_path / "sourceless" / "__init__.py").touch()
    return {
        "script": ("probe.py",),
        "script below": ("sub/probe.py",),
        "script with dots": ("./sub/../probe.py",),
        "script by absolute path": (str(tmp_path / "probe.py"),),
        "script with no suffix": ("no_suffix",),
        "script with an odd name": ("latin name é.py",),
        "symlink to a script": ("link.py",),
        "script in a linked directory": ("link_dir/probe.py",),
        "pyc": ("compiled.pyc",),
        "pyc with no suffix": ("no_suffix_compiled",),
        "directory": ("./dir",),
        "zip": ("app.zip",),
        "module": ("-m", "probe"),
        "module in a package": ("-m", "pkg.inner"),
        "module in a namespace package": ("-m", "namespace.mod"),
        "module without source": ("-m", "sourceless.mod"),
        "package": ("-m", "pkg"),
        "glued module": ("-mpkg",),
        "code": ("-c", PROBE),
        "glued code": (f"-c{PROBE}",),
    }


FORMS = [
    "script",
    "script below",
    "script with dots",
    "script by absolute path",
    "script with no suffix",
    "script with an odd name",
    "symlink to a script",
    "script in a linked directory",
    "pyc",
    "pyc with no suffix",
    "directory",
    "zip",
    "module",
    "module in a package",
    "module in a namespace package",
    "module without source",
    "package",
    "glued module",
    "code",
    "glued code",
]


@pytest.mark.parametrize("form", FORMS)
def test_program_sees_itself_as_under_plain_python(form, places, same):
    assert set(FORMS) == set(places)
    assert same(*places[form], *ARGUMENTS).returncode == 0


@pytest.mark.parametrize("flags", [name for name in FLAGS if name != "no flag"])
@pytest.mark.parametrize("form", ["script", "directory", "zip", "code"])
def test_flags_of_python_count_as_under_plain_python(form, flags, places, same):
    assert same(*places[form], flags=FLAGS[flags]).returncode == 0


def test_flags_that_keep_the_current_directory_out_hide_modules_there(places, same):
    assert same("-m", "probe", flags=["-I"]).returncode == 1


def test_safe_path_by_variable(places, same):
    assert same(*places["script"], PYTHONSAFEPATH="1").returncode == 0


def test_python_path_of_the_user_stays_as_it_is(places, same, tmp_path):
    ours = same(*places["script"], PYTHONPATH=f"{tmp_path / 'sub'}:")
    assert str(tmp_path / "sub") in ours.stdout


@pytest.mark.parametrize("arguments", [(), ARGUMENTS])
def test_program_on_stdin(arguments, places, same, tmp_path):
    ours = same("-", *arguments, stdin=tmp_path / "probe.py")
    assert "<stdin>" in ours.stdout


def test_script_in_another_directory_than_the_current_one(places, same, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    same("../probe.py", cwd=tmp_path / "elsewhere")
    same(str(tmp_path / "dir"), cwd=tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("encoding", "cookie"),
    [
        ("utf-8-sig", ""),
        ("latin-1", "# -*- coding: latin-1 -*-\n"),
        ("utf-8", "#!/bin/sh\n# vim: set fileencoding=utf-8 :\n"),
    ],
)
@pytest.mark.parametrize("kind", ["script", "module", "stdin"])
def test_encoded_source(kind, encoding, cookie, same, tmp_path):
    script = tmp_path / "encoded.py"
    script.write_text(cookie + "def show(x):\n    print(ascii('é'), x)\nshow('ü'.encode('utf-8'))\n", encoding=encoding)
    program = {"script": ("encoded.py",), "module": ("-m", "encoded"), "stdin": ("-",)}[kind]
    ours = same(*program, stdin=script if kind == "stdin" else None)
    assert ours.stdout == "'\\xe9' b'\\xc3\\xbc'\n"


def test_cookie_in_a_code_string_is_ignored(same):
    code = "# coding: latin-1\ndef show(x):\n    print(ascii('é'), x)\nshow(1)"
    assert same("-c", code).stdout == "'\\xe9' 1\n"


def test_stdin_stays_open_for_a_script(same, write, tmp_path):
    write("reader.py", "print(input(), input())\n")
    assert same("reader.py", stdin=write("lines.txt", "one\ntwo\n")).stdout == "one two\n"


def test_main_module_is_the_programs_while_its_package_is_imported(same, write):
    write("pkg/__init__.py", "import __main__; print(sorted(vars(__main__)), __main__.__spec__)")
    write("pkg/__main__.py", "print('main')")
    same("-m", "pkg")


def test_names_like_those_of_the_hook_are_the_programs(same, write):
    write("runner.py", "value = 'the runner of the program'")
    write("cli.py", "value = 'the cli of the program'")
    write("probe.py", "import runner, cli; print(runner.value, cli.value)")
    assert "the cli of the program" in same("probe.py").stdout
