"""A program ends under the hook as it ends under plain python: exit status, traceback, signal, what runs at exit."""

from __future__ import annotations

import signal
import sys

import pytest

# Every program has a function that is mended, so that it is mended code that ends here.
SITE = """\
def site(x):
    print("site", x)
    return x

"""
ENDINGS = {
    "falls off the end": "site(1)",
    "exit with int": "import sys; site(1); sys.exit(3)",
    "exit with text": "import sys; site(1); sys.exit('the reason')",
    "exit with None": "import sys; site(1); sys.exit()",
    "exit with True": "raise SystemExit(True)",
    "exit with zero": "raise SystemExit(0)",
    "exit with a float": "raise SystemExit(0.0)",
    "exit with a tuple": "raise SystemExit((1, 2))",
    "exit with a negative number": "raise SystemExit(-1)",
    "exit with a code set later": "end = SystemExit(); end.code = 7; raise end",
    "exit in a function": "def leave():\n    print('leaving')\n    raise SystemExit(4)\nleave()",
    "exit with a subclass": "class Leave(SystemExit): pass\nraise Leave(5)",
    "error": "site(1)\n1 / 0",
    "error in a mended function": "def fail(x):\n    print(x)\n    return x[0] / (x[1] + 1)\nfail((1, -1))",
    "error in the argument of a site": "def fail(x):\n    print('x', x, 1 / x)\nfail(0)",
    "error in nested calls": "def a(x):\n    print(x); b(x)\ndef b(x):\n    print(x); raise KeyError(x)\na('key')",
    "error with a cause": (
        "def a():\n    print('a')\n    1 / 0\ntry:\n    a()\nexcept ZeroDivisionError as e:\n"
        "    raise ValueError('second') from e"
    ),
    "error with a context": (
        "def a():\n    print('a')\n    1 / 0\ntry:\n    a()\nexcept ZeroDivisionError:\n    site(2)\n    [][1]"
    ),
    "error with its context suppressed": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError from None",
    "error of an own class": "class Mine(Exception):\n    def __str__(self): return 'my text'\nraise Mine",
    "error with no text": "class Mine(Exception):\n    def __str__(self): 1 / 0\nraise Mine",
    "error in a thread": (
        "import threading\ndef fail():\n    print('thread'); 1 / 0\nt = threading.Thread(target=fail, name='t')\n"
        "t.start(); t.join()"
    ),
    "error in __del__": "class A:\n    def __del__(self):\n        print('del'); 1 / 0\na = A(); del a",
    "failed assertion": "x = 1\nassert x == 2, site('message')",
    "base exception": "class Base(BaseException): pass\nraise Base(1)",
    "exception group": "raise ExceptionGroup('group', [ValueError(1), TypeError(2)])",
    "note on an error": "error = ValueError(1)\nerror.add_note('a note')\nraise error",
    "warning": (
        "import warnings\ndef old():\n    print('old')\n    warnings.warn('is old', DeprecationWarning, stacklevel=2)\n"
        "old()\nwarnings.warn('here')"
    ),
    "warning of the compiler": "def a(x):\n    print(x)\n    assert (x, 'always true')\n    return x is 1, '\\d'\na(1)",
    "failed import": "site(1)\nimport missing_module_of_nobody",
    "failed import from": "site(1)\nfrom os import missing_name",
    "error in exec": "exec('site(1)\\n\\n1/0')",
    "error in compiled code": "def f():\n    print('f')\n    exec(compile('1/0', 'made-up.py', 'exec'))\nf()",
    "recursion caught": (
        "def f(n):\n    print(end='')\n    f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    print('caught')"
    ),
    "interrupt": "import os, signal; site(1)\nos.kill(os.getpid(), signal.SIGINT)",
    "interrupt raised": "def f():\n    print('f')\n    raise KeyboardInterrupt('text')\nf()",
    "interrupt of an own class": "class Mine(KeyboardInterrupt): pass\nraise Mine",
    "interrupt after atexit": "import atexit; atexit.register(site, 'at exit'); raise KeyboardInterrupt",
    "killed": "import os, signal; site(1); os.kill(os.getpid(), signal.SIGTERM)",
    "os._exit": "import os; site(1); os._exit(9)",
    "abort": "import os; os.abort()",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0], a[1])\n1 / 0",
    "excepthook sees the traceback": (
        "import sys, traceback\ndef hook(kind, value, tb):\n    print('hook')\n    traceback.print_exception(value)\n"
        "    print(sys.last_traceback is tb is value.__traceback__, sys.last_value is value, __file__ != '')\n"
        "    print(sys.excepthook is hook)\nsys.excepthook = hook\nsite(1)\n1 / 0"
    ),
    "excepthook raises": (
        "import sys\ndef hook(kind, value, tb):\n    print('hook')\n    raise KeyError('in hook')\n"
        "sys.excepthook = hook\ndef f():\n    print('f')\n    1 / 0\nf()"
    ),
    "excepthook exits": "import sys\nsys.excepthook = lambda *a: sys.exit(6)\n1 / 0",
    "excepthook is None": "import sys\nsys.excepthook = None\n1 / 0",
    "excepthook for an interrupt": "import sys\nsys.excepthook = lambda *a: print('hook')\nraise KeyboardInterrupt",
    "traceback limit": "import sys\nsys.tracebacklimit = 1\ndef f():\n    print('f')\n    1 / 0\nf()",
    "traceback walked by the program": (
        "import traceback\ndef f():\n    print('f')\n    1 / 0\ntry:\n    f()\nexcept ZeroDivisionError:\n"
        "    traceback.print_exc()"
    ),
    "atexit": (
        "import atexit, sys\n"
        "def late():\n    print('late', late_value, sys.modules['__main__'].__dict__ is globals())\n"
        "atexit.register(late)\nlate_value = site(3)"
    ),
    "atexit and file": (
        "import atexit\n@atexit.register\ndef late():\n"
        "    print([name in globals() for name in ('__file__', '__cached__', '__loader__', '__spec__')])"
    ),
    "atexit and file after exit": (
        "import atexit, sys\n@atexit.register\ndef late():\n    print('__file__' in globals())\nsys.exit(0)"
    ),
    "atexit and file after an error": (
        "import atexit, sys\n@atexit.register\ndef late():\n"
        "    print('__file__' in globals(), sys.excepthook is sys.__excepthook__, sys.last_value)\n1 / 0"
    ),
    "atexit raises": "import atexit\n@atexit.register\ndef late():\n    print('late')\n    1 / 0",
    "thread outlives the main module": (
        "import threading\n"
        "def late():\n    threading.main_thread().join()\n    print('late', site(late_value), __name__)\n"
        "threading.Thread(target=late).start()\nlate_value = 3"
    ),
    "object outlives the main module": "class A:\n    def __del__(self):\n        print('del', __name__)\na = A()",
    "future annotations": (
        "from __future__ import annotations\ndef f(x: missing):\n    print(x)\nf(1)\nprint(f.__annotations__)"
    ),
    "asyncio": (
        "import asyncio\nasync def f():\n    print('f')\n    await asyncio.sleep(0)\n    1 / 0\nasyncio.run(f())"
    ),
    "logging": (
        "import logging\nlogging.basicConfig(format='%(pathname)s:%(lineno)d %(funcName)s %(module)s %(message)s')\n"
        "def f(x):\n    logging.warning('x is %s', x)\n    return x\nf(1)"
    ),
}
if sys.version_info < (3, 11):
    del ENDINGS["exception group"], ENDINGS["note on an error"]


# Every ending as a script, and in two of the other five ways to start a program, each in its turn.
WAYS = ["module", "code", "stdin", "package", "directory"]
PAIRS = [
    (name, kind)
    for turn, name in enumerate(ENDINGS)
    for kind in ("script", WAYS[turn % len(WAYS)], WAYS[(turn * 2 + 1) % len(WAYS)])
]


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*pair, marks=[pytest.mark.slow] * (pair[1] != "script")) for pair in sorted(set(PAIRS))],
)
def test_ends_as_under_plain_python(name, kind, same, write):
    source = SITE + ENDINGS[name] + "\n"
    if ENDINGS[name].startswith("from __future__"):
        source = ENDINGS[name] + "\n"
    if kind == "code":
        same("-c", source)
    elif kind == "stdin":
        same("-", stdin=write("program.py", source))
    elif kind == "package":
        write("program/__init__.py", "")
        write("program/__main__.py", source)
        same("-m", "program")
    else:
        write("program/__main__.py" if kind == "directory" else "program.py", source)
        same(*(("-m", "program") if kind == "module" else ("program" if kind == "directory" else "program.py",)))


@pytest.mark.parametrize("name", ["interrupt", "interrupt raised", "interrupt after atexit"])
def test_interrupt_ends_the_process_by_its_signal(name, same, write):
    write("program.py", SITE + ENDINGS[name])
    assert same("program.py").returncode == -signal.SIGINT


@pytest.mark.parametrize("site", ["", SITE], ids=["stock code", "mended code"])
@pytest.mark.parametrize("kind", ["script", "code"])
def test_program_has_no_future_feature_of_ours(kind, site, same, write):
    source = site + "def f(x: int): pass\nprint(f.__annotations__)\n"
    write("program.py", source)
    assert same(*(("-c", source) if kind == "code" else ("program.py",))).stdout == "{'x': <class 'int'>}\n"


def test_second_run_shows_the_same_warnings_of_the_compiler(same, write):
    write("program.py", ENDINGS["warning of the compiler"])
    assert same("program.py").stderr == same("program.py").stderr != ""


@pytest.mark.parametrize("flags", [("-W", "error"), ("-W", "ignore"), ("-O",), ("-X", "dev")])
def test_flags_of_python_rule_warnings_and_assertions(flags, same, write):
    write("program.py", ENDINGS["warning of the compiler"] + "\n" + ENDINGS["failed assertion"].replace("site", "str"))
    same("program.py", flags=flags)


SYNTAX_ERRORS = {
    "unclosed bracket": "x = (1,\ny = 2\n",
    "unclosed string": "x = '''\nand so on\n",
    "bad indentation": "def f():\nprint(1)\n",
    "unindent": "if 1:\n        x = 1\n    y = 2\n",
    "tabs and spaces": "if 1:\n        x = 1\n\ty = 2\n",
    "misspelt keyword": "fro x in y: pass\n",
    "return outside": "x = 1\nreturn x\n",
    "await outside": "def f():\n    print(1)\n    await x\n",
    "name after use as global": "def f():\n    print(x)\n    global x\n",
    "bad escape": "x = '\\N{no such name}'\n",
    "bad future": "from __future__ import braces\n",
    "late future": "x = 1\nfrom __future__ import annotations\n",
    "print statement": "def f():\n    print('a')\n    print 'b'\n",
    "no newline at the end": "if 1:\n    x = (",
    "star assignment": "*a = 1\nprint(1)\n",
    "duplicate argument": "def f(a, a):\n    print(a)\n",
}


@pytest.mark.parametrize(
    "kind",
    ["script", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("module", "code", "stdin", "directory"))],
)
@pytest.mark.parametrize("name", list(SYNTAX_ERRORS))
def test_syntax_error_in_the_program(name, kind, same, tmp_path):
    source = SYNTAX_ERRORS[name]
    (tmp_path / "program").mkdir()
    program = tmp_path / ("program/__main__.py" if kind == "directory" else "program.py")
    program.write_text(source)
    commands = {
        "script": ("program.py",),
        "module": ("-m", "program"),
        "code": ("-c", source),
        "stdin": ("-",),
        "directory": ("program",),
    }
    if kind == "module":
        (tmp_path / "program").rmdir()
    assert same(*commands[kind], stdin=program if kind == "stdin" else None).returncode == 1


@pytest.mark.parametrize("source", [b"# coding: klingon\n", b"x = '\xe9'\n"])
def test_undecodable_script_is_a_syntax_error(source, python, hooked, tmp_path):
    """The text of the error is that of an import: only the interpreter itself can read a file as it reads a script."""
    (tmp_path / "program.py").write_bytes(source)
    plain, ours = python("program.py"), hooked("program.py")
    assert plain.returncode == ours.returncode == 1
    assert (plain.stdout, ours.stdout) == ("", "")
    assert "Traceback" not in plain.stderr + ours.stderr
    assert ours.stderr.splitlines()[-1].startswith("SyntaxError: ")


MODULES = {
    "error while importing": "def f(x):\n    print(x)\n    1 / 0\nf(1)\n",
    "error when called": "def f(x):\n    print(x)\n    1 / 0\n",
    "syntax error": "def f(x):\n    print(x)\nx = (\n",
    "indentation error": "def f(x):\n    print(x)\n  y\n",
    "error of the compiler": "def f(x):\n    print(x)\n    nonlocal y\n",
    "undecodable": "def f(x):\n    print('é')\n",
    "exit while importing": "import sys\ndef f(x):\n    print(x)\nsys.exit(8)\n",
    "failed import": "def f(x):\n    print(x)\nimport missing_module_of_nobody\n",
    "circular import": "def f(x):\n    print(x)\nfrom program import nothing\n",
    "itself": "def f(x):\n    print(x)\nfrom library import nothing\n",
    "warning": (
        "import warnings\ndef f(x):\n    print(x)\n    warnings.warn('w', stacklevel=2)\n"
        "warnings.warn('x', stacklevel=2)\n"
    ),
    "warning of the compiler": "def f(x):\n    print(x)\n    return x is 1, '\\d'\n",
    "interrupt": "def f(x):\n    print(x)\n    raise KeyboardInterrupt\n",
}
PROGRAMS = {
    "plain": "import library\nprint('imported')\nlibrary.f(2)\n",
    "in a function": "def main():\n    print('main')\n    import library\n    library.f(2)\nmain()\n",
    "importlib": "import importlib\nlibrary = importlib.import_module('library')\nlibrary.f(2)\n",
}


# Without a .pyc file all is as with one, whatever the program does.
@pytest.mark.parametrize(
    ("program", "flags"),
    [*((name, ()) for name in PROGRAMS), pytest.param("plain", ("-B",), marks=pytest.mark.slow)],
    ids=[*PROGRAMS, "no pyc"],
)
@pytest.mark.parametrize("module", list(MODULES))
def test_error_in_a_first_party_module(module, program, flags, same, tmp_path):
    encoding = "latin-1" if module == "undecodable" else "utf-8"
    (tmp_path / "library.py").write_text(MODULES[module], encoding=encoding)
    (tmp_path / "program.py").write_text(PROGRAMS[program])
    same("program.py", flags=flags)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "warning"])  # it is laid on runpy, or on us
def test_error_in_the_package_of_the_program(module, same, tmp_path):
    (tmp_path / "library").mkdir()
    encoding = "latin-1" if module == "undecodable" else "utf-8"
    (tmp_path / "library" / "__init__.py").write_text(MODULES[module], encoding=encoding)
    (tmp_path / "library" / "__main__.py").write_text("import library\nlibrary.f(2)\n")
    same("-m", "library")
