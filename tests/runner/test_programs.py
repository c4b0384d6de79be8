"""Larger things that programs do with their own ``__main__``: pickle it, import it, start processes, look at source."""

from __future__ import annotations

import sys

import pytest

SITE = """\
def site(x):
    print("site", x)
    return x

"""
PROGRAMS = {
    "pickle": """\
import pickle, pickletools
class A:
    class B:
        value = 3
    def __init__(self, x):
        print("made", x)
        self.x = x
data = pickle.dumps([A(1), A.B(), site])
print(data, [getattr(item, "__dict__", None) for item in pickle.loads(data)])
print(pickle.loads(data)[2] is site, A.__module__, A.B.__qualname__)
""",
    "copy and dataclass": """\
import copy, dataclasses, enum, typing
@dataclasses.dataclass
class A:
    x: "int"
    def show(self):
        print("A", self.x)
class E(enum.Enum):
    A = 1
copy.deepcopy(A(2)).show()
print(typing.get_type_hints(A), repr(A(1)), repr(E.A), copy.copy(E.A) is E.A)
""",
    "import of main": """\
import __main__, sys
print(__main__ is sys.modules["__main__"], __main__.site is site, __main__.__dict__ is globals())
""",
    "import of itself": """\
if __name__ == "__main__":
    import program
    print(program.site is site, program.__name__, program.site.__module__)
""",
    "source": """\
import inspect
def f(x):  # a comment
    print("f", x)
    return x
print(inspect.getsource(f), inspect.getsourcelines(f)[1], inspect.getmodule(f).__name__, inspect.signature(f))
print(f.__code__.co_filename == inspect.getfile(f), f.__code__.co_firstlineno, f.__code__.co_name, f.__qualname__)
""",
    "doctest": '''\
import doctest
def double(x):
    """
    >>> double(2)
    here
    4
    >>> double(3)
    here
    7
    """
    print("here")
    return 2 * x
print(doctest.testmod())
''',
    "subinterpreter of the same file": """\
import runpy, sys
if len(sys.argv) == 1:
    sys.argv.append("again")
    result = runpy.run_path("program.py", run_name="__main__")
    print(sorted(name for name in result if not name.startswith("_")))
else:
    print("again", __name__, __file__)
""",
    "reload": """\
import importlib
import library
print(library.f(1) is importlib.reload(library).f(1), library.__spec__.origin, library.__loader__.get_source("library"))
""",
    "argparse": """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--report")
parser.print_usage()
print(parser.parse_args([]))
parser.parse_args(["--modules"])
""",
    "relative files": """\
import os, pathlib, library
print(os.getcwd(), pathlib.Path(__file__).resolve(), library.__file__, library.__cached__)
""",
    "local variables": """\
def f(x):
    print(locals())
    print(sorted(vars()))
    return sorted(locals())
print(f(1), site.__code__.co_argcount, site.__closure__, site.__defaults__)
""",
    "exec and eval of names": """\
def f(x):
    print("f")
    return eval("x + 1"), exec("y = x"), [name for name in dir() if not name.startswith("_")]
print(f(1))
""",
    "redirected stdout": """\
import contextlib, io
with contextlib.redirect_stdout(io.StringIO()) as out:
    site(1)
print(repr(out.getvalue()))
""",
    "replaced print": """\
def g():
    print("first")
g()
real = print
def print(*args):
    real("replaced", *args)
g()
""",
}
PROCESSES = """
import multiprocessing, sys
import library

class Item:
    def __init__(self, x):
        self.x = x

def work(item):
    print("work", item.x, flush=True)
    return item.x + 1, library.f(item.x), __name__, sys.argv, __spec__ and __spec__.name

def fail(x):
    print("fail", x, flush=True)
    raise ValueError(x)

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with context.Pool(1) as pool:
        print(pool.map(work, [Item(1), Item(2)]))
        try:
            pool.apply(fail, (3,))
        except ValueError as error:
            print(repr(error))
    process = context.Process(target=sys.exit, args=(4,))
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.fixture
def library(write):
    """A first-party module with a site."""
    return write("library.py", "def f(x):\n    print('library', x, flush=True)\n    return [x]\n")


@pytest.mark.parametrize("kind", ["script", "module"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_runs_as_under_plain_python(name, kind, same, write, library):
    write("program.py", SITE + PROGRAMS[name])
    same(*{"script": ("program.py",), "module": ("-m", "program")}[kind])


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("fork", "script"),
        ("fork", "module"),
        ("fork", "package"),  # other children cannot unpickle what a __main__.py defines, under plain python either
        ("fork", "directory"),
        ("spawn", "script"),
        ("spawn", "module"),
        ("forkserver", "script"),
        ("forkserver", "module"),
    ],
)
def test_processes_of_the_program(method, kind, same, write, library):
    source = PROCESSES.replace("{method}", method)
    if kind in ("package", "directory"):
        write("program/__init__.py", "")
        write("program/__main__.py", source)
        write("program/library.py", library.read_text())
    else:
        write("program.py", source)
    commands = {"script": ("program.py",), "directory": ("program",)}
    assert same(*commands.get(kind, ("-m", "program"))).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_fork(same, write):
    write(
        "program.py",
        "import os, sys\ndef f(x):\n    print(x)\n    sys.stdout.flush()\npid = os.fork()\n"
        "f('child') if not pid else (os.waitpid(pid, 0), f('parent'))\n",
    )
    same("program.py", options=["--report=report.json"])


def test_module_that_its_package_has_imported_is_warned_of(python, hooked, write):
    """Only the place differs that the warning names: it is runpy's own line."""
    write("pkg/__init__.py", "from . import tool")
    write("pkg/tool.py", "print(__name__)")
    plain, ours = python("-m", "pkg.tool"), hooked("-m", "pkg.tool")
    assert ours.stdout == plain.stdout == "pkg.tool\n__main__\n"
    message = plain.stderr.partition("RuntimeWarning")[2].splitlines()[0]
    assert message in ours.stderr


@pytest.mark.parametrize("module", ["timeit", "json.tool", "this"])
def test_module_of_the_standard_library(module, same, tmp_path):
    (tmp_path / "data.json").write_text('{"a": 1}')
    same("-m", module, *{"timeit": ("-h",), "json.tool": ("data.json",)}.get(module, ()))


def test_profiler_runs_the_program(hooked, write):
    write("program.py", SITE + "site(1)")
    ours = hooked("-m", "cProfile", "-s", "name", "program.py")
    assert ours.returncode == 0
    assert "site 1" in ours.stdout
    assert "(site)" in ours.stdout
