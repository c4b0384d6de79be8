"""The IPython extension: a session with it does what a session without it does, and its cells are one graph."""

from __future__ import annotations

import importlib.util
import json
import re
import textwrap

import pytest

if importlib.util.find_spec("IPython") is None:
    pytest.skip("needs IPython", allow_module_level=True)

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs torch")
SESSION = """
import json, sys, traceback
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
seen = []
for cell in json.loads(sys.argv[1]):
    result = shell.run_cell(cell, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    seen.append(repr(error) if error else None)
print("ERRORS", json.dumps(seen))
"""
LOAD = "%load_ext graphmend_hook"
F = """
import logging
log = logging.getLogger("cell")

def f(x):
    log.warning("a record")
    return x + 1
"""


@pytest.fixture
def session(python, write, tmp_path):
    """Run `cells` in a fresh shell; gives the process, whose stdout ends with the error of each cell."""
    write("session.py", SESSION)

    def run(*cells, **env):
        texts = [textwrap.dedent(cell) for cell in cells]
        done = python("session.py", json.dumps(texts), IPYTHONDIR=str(tmp_path / "ipython"), **env)
        assert done.returncode == 0, done.stderr
        done.stdout = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)  # colours
        return done

    return run


def values(done, *, errors=False):
    """What the cells printed; without `errors`, none of them may have failed."""
    printed, _, found = done.stdout.rpartition("ERRORS ")
    assert errors or not any(json.loads(found)), done.stdout + done.stderr
    return printed.splitlines()


REPORT = "print(graphmend_hook.report())"


def test_a_cell_is_mended_from_then_on(session):
    before = F.replace("f(x)", "before(x)")
    done = session(before, LOAD, F, "import graphmend_hook", REPORT, "f(41)")
    lines = values(done)
    assert any(line.startswith("1 site mended in 1 of 1 module; ") for line in lines)
    assert lines[-1] == "Out[6]: 42"
    assert "a record" in done.stderr


def test_nothing_is_mended_after_unloading(session):
    check = "print('_@graphmend' in f.__code__.co_names, len(get_ipython().ast_transformers))"
    done = session(LOAD, F, check, "%unload_ext graphmend_hook", F, check, LOAD, F, check)
    assert values(done)[-3:] == ["True 1", "False 0", "True 1"]
    assert "AST transformer" not in done.stderr
    done = session(LOAD, "%unload_ext graphmend_hook", "%graphmend_report")
    assert "UsageError: Line magic function `%graphmend_report` not found." in done.stderr


def test_unloading_gives_the_compiler_back(session):
    done = session(
        "compiler = get_ipython().compile",
        LOAD,
        "print(get_ipython().compile is compiler)",
        "from __future__ import annotations",
        "%unload_ext graphmend_hook",
        "print(get_ipython().compile is compiler)",
        "def f(x: missing): pass",  # the future import of a cell holds for the cells after it
    )
    assert values(done) == ["False", "True"]


def test_source_of_a_mended_function_is_found(session):
    done = session(LOAD, F, "import inspect", "print(inspect.getsource(f))", "print(inspect.getsourcelines(f)[1])")
    assert values(done) == ["def f(x):", '    log.warning("a record")', "    return x + 1", "", "4"]


def test_magics_and_comments_keep_their_places(session):
    cell = """
    %precision 3
    # a comment
    def f(x):
        print("on")
        print("off")  # graphmend: off
        !true
        return x
    """
    show = """
    from graphmend_hook.product.report.ledger import ledger
    for record in ledger.records:
        print(record.name, [(site.line, site.outcome.value, site.code) for site in record.sites])
    """
    lines = values(session(LOAD, cell, show))
    assert lines[-1] == "In[2] [(4, 'mended', ''), (5, 'declined', 'GM100-R01')]"


@pytest.mark.parametrize("magic", ["%%time", "%%capture", "%%timeit -n1 -r1"])
def test_cell_magics_run_the_cell(magic, session):
    body = 'def g(x):\n    print("text")\n    return x\ng(1)\n'
    done = session(LOAD, f"{magic}\n{body}")
    assert "Traceback" not in done.stdout + done.stderr
    values(done)


def test_time_of_an_expression_is_still_its_value(session):
    done = session(LOAD, "%time (lambda: 41)() + 1")
    assert values(done)[-1] == "Out[2]: 42"


def test_last_expression_is_displayed_and_a_cell_with_a_future_import_runs(session):
    cell = """
    from __future__ import annotations
    def f(x):
        print("text")
        return x
    f(7)
    """
    lines = values(session(LOAD, cell))
    assert lines[-2:] == ["text", "Out[2]: 7"]


def test_names_of_other_cells_keep_their_values(session):
    """What tells the rules about them is not run."""
    done = session(LOAD, "n = 41", "def f():\n    print(n)\n    return n + 1", "f()", "print(n)")
    assert values(done) == ["41", "Out[4]: 42", "41"]


def test_traceback_shows_the_cell(session):
    cell = """
    def f(x):
        print("text")
        raise KeyError(x)
    f(1)
    """
    plain, mended = session("pass", cell), session(LOAD, cell)
    assert plain.stdout.replace("In[1]", "In[2]") == mended.stdout.replace("In[1]", "In[2]")
    assert "\nKeyError: 1\n" in mended.stdout


FAIL = """
import graphmend_hook.cells as extension
stock = extension.rewrite_tree
def broken(tree, text, rules):
    extension.rewrite_tree = stock
    tree.body[-1].body.clear()
    raise RuntimeError("an error of ours")
extension.rewrite_tree = broken
"""


def test_failure_of_ours_leaves_the_cell_alone_and_is_said_once(session):
    done = session(LOAD, FAIL, F, "print(f(1))", "print(len(get_ipython().ast_transformers))")
    assert values(done) == ["2", "1"]
    assert done.stderr.count("GM008") == 1
    assert (
        "GM008: the cell In[3] runs unmended: mending it failed with RuntimeError('an error of ours'); please report "
        "this, and use %unload_ext graphmend_hook to silence it"
    ) in done.stderr


def test_kill_switch_and_rules(session):
    check = "print('_@graphmend' in f.__code__.co_names)"
    assert values(session(LOAD, F, check, GRAPHMEND_DISABLE="1")) == ["False"]
    assert values(session(LOAD, F, check, GRAPHMEND_RULES="-defer")) == ["False"]


def test_syntax_error_is_that_of_ipython(session):
    cell = "def f(x):\n    print(x\n"
    plain, mended = session("pass", cell), session(LOAD, cell)
    assert plain.stdout == mended.stdout
    assert "SyntaxError" in mended.stdout or "IncompleteInputError" in mended.stdout  # from Python 3.13 on


def test_tree_of_another_transformer_is_left_alone(session):
    """It may not have come from the text that we know."""
    other = """
    import ast
    class Other:
        def visit(self, tree):
            return ast.parse(ast.unparse(tree))
    get_ipython().ast_transformers.insert(0, Other())
    """
    done = session(LOAD, other, F, "print('_@graphmend' in f.__code__.co_names)")
    assert values(done) == ["False"]


def test_names_of_other_cells_are_what_they_are_there(session):
    """A `print` of the user's is no effect, and a logging module under another name is one."""
    done = session(
        LOAD,
        "print = lambda *args: None\nimport warnings as w",
        "def f(x):\n    print(x)\ndef g(x):\n    w.warn(x)",
        "import builtins",
        "builtins.print('_@graphmend' in f.__code__.co_names, '_@graphmend' in g.__code__.co_names)",
    )
    assert values(done) == ["False True"]


def test_report_magic_is_text_in_a_terminal_and_html_in_a_notebook(session):
    done = session(LOAD, F, "%graphmend_report", "print(_._repr_html_())")
    lines = values(done)
    assert lines[0].startswith("Out[3]: ")
    assert sum(line.startswith("1 site mended in 1 of 1 module; ") for line in lines) == 2
    assert sum(line.startswith("<pre") for line in lines) == 1


ONE_GRAPH = """
import torch
graphs = []
def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward
print(torch.compile(f, backend=backend)(torch.zeros(1)).item(), len(graphs))
"""
RECORDS = """
import logging
class Handler(logging.Handler):
    def emit(self, record):
        print(record.getMessage(), record.funcName, record.lineno, record.pathname == f.__code__.co_filename)
logging.getLogger("cell").addHandler(Handler())
logging.getLogger("cell").propagate = False
"""
BROKEN = """
def f(x):
    log.warning("a record")
    x = x + 1
    log.warning("another")
    return x * 2
"""


@needs_torch
@pytest.mark.parametrize("torch_first", [False, True])
@pytest.mark.slow
def test_function_of_a_cell_is_one_graph_with_its_records(torch_first, session):
    setup = "import torch, torch._dynamo" if torch_first else "pass"
    cells = (setup, F, BROKEN, RECORDS, ONE_GRAPH)
    records = ["a record f 2 True", "another f 4 True"]
    assert values(session(LOAD, *cells)) == [*records, "2.0 1"]
    *before, graphs = values(session("pass", *cells))
    assert (before[0].split(" f")[0], graphs) == ("a record", "2.0 2")


@needs_torch
@pytest.mark.slow
def test_torch_may_have_been_imported_between_the_package_and_the_extension(session):
    early = "import graphmend_hook; text = graphmend_hook.report()"
    connected = "import sys; print('graphmend_hook.runtime' in sys.modules and graphmend_hook.runtime.connected)"
    lines = values(session(early, "import torch, torch._dynamo", connected, LOAD, connected, F, RECORDS, ONE_GRAPH))
    assert lines == ["False", "True", "a record f 5 True", "1.0 1"]


@needs_torch
@pytest.mark.slow
def test_branch_and_guard_of_a_cell(session):
    cell = """
    import torch
    LIMIT = 3
    class TooBig(ValueError):
        pass
    """
    guarded = """
    def f(x):
        if x.max() > 3:
            raise TooBig("too big")
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return y
    """
    raising = """
    try:
        torch.compile(f, backend=backend)(torch.full((1,), 4.0))
    except TooBig as error:
        print("TooBig", error, len(graphs))
    """
    assert values(session(LOAD, cell, guarded, ONE_GRAPH, raising)) == ["-1.0 1", "TooBig too big 1"]


@needs_torch
def test_variable_of_another_cell_is_read_where_the_guard_stands(session):
    """So it is of a variable of the guard's own module."""
    guarded = """
    import torch
    def f(x):
        if x.max() > 3:
            raise ValueError(f"call {count}")
        return x
    """
    raising = """
    compiled = torch.compile(f, backend="eager", fullgraph=True)
    for count in (1, 2):
        try:
            compiled(torch.tensor([4.0]))
        except ValueError as error:
            print(error)
    """
    assert values(session(LOAD, "count = 0", guarded, raising)) == ["call 1", "call 2"]


MENDED = 'print("_@graphmend" in {}.__code__.co_names)'


@pytest.mark.parametrize("load", [LOAD, "pass"])
def test_script_that_run_has_run(load, session, write, tmp_path):
    """And one that is changed and run again; without the extension it stays as it is."""
    write("script.py", F + "class C:\n    def g(self):\n        log.warning('g')\n")
    cells = [load, "%run script.py", MENDED.format("f"), MENDED.format("C.g"), "print(f(1))"]
    changed = (
        "import pathlib; path = pathlib.Path('script.py'); _ = path.write_text(path.read_text().replace('+ 1', '+ 2'))"
    )
    done = session(*cells, changed, "%run script.py", MENDED.format("f"), "print(f(1))")
    mended = str(load == LOAD)
    assert values(done) == [mended, mended, "2", mended, "3"]
    assert done.stderr.splitlines() == ["a record", "a record"]


@pytest.mark.parametrize("way", ["hook", "late"])
def test_module_that_autoreload_has_reloaded(way, session, write):
    """IPython 9 compiles the one function that was edited, with lines of its own; it is mended before the cell runs."""
    text = F + "\nclass C:\n    def g(self):\n        log.warning('g')\n        return 1\n"
    write("gm_module.py", text)
    first = "import graphmend_hook, sys; sys.path.insert(0, '.'); hook = graphmend_hook.install('gm_module')"
    late = "import sys; sys.path.insert(0, '.'); import gm_module, graphmend_hook; _ = graphmend_hook.mend(gm_module)"
    edit = """
    import os, pathlib
    def edit(old, new, time):
        path = pathlib.Path("gm_module.py")
        path.write_text(path.read_text().replace(old, new))
        os.utime(path, (time, time))
    """
    show = f"print(f(1), C().g()); {MENDED.format('f')}; {MENDED.format('C.g')}; print(f.__code__.co_firstlineno)"
    done = session(
        *(
            LOAD,
            first if way == "hook" else late,
            "%load_ext autoreload\n%autoreload 2",
            "from gm_module import f, C",
            edit,
        ),
        *("edit('+ 1', '+ 2', 2_000_000_000)", show, "edit('return 1', 'return 3', 2_000_000_100)", show),
    )
    assert values(done) == ["3 1", "True", "True", "5", "3 3", "True", "True", "5"]
    assert "GM0" not in done.stderr


def test_what_was_run_and_cannot_be_mended(session, write):
    """An error of ours is said once, and the cells go on."""
    write("script.py", F)
    broken = """
    from graphmend_hook.hook.reach import late
    def fail(*_):
        raise MemoryError("ours")
    late.mend = fail
    """
    done = session(LOAD, broken, "%run script.py", "print(f(1))", "%run script.py", _GRAPHMEND_DEFECTS="")
    assert values(done) == ["2"]
    assert done.stderr.count("GM012: the extension mending what %run has run failed with MemoryError('ours')") == 1


INSTALL = "import graphmend_hook; graphmend_hook.install('zzz', guards='keep')"
GUARDS = "from graphmend_hook.hook.install import active; print([each.settings.guards for each in active()])"


def test_cells_are_traced_as_the_installed_hook_says(session):
    assert values(session(f"{INSTALL};", LOAD, GUARDS, GRAPHMEND_GUARDS="async")) == ["['keep', 'keep']"]


def test_a_hook_that_asks_for_another_choice_than_the_cells_is_refused(session):
    done = session(LOAD, f"{INSTALL};", GUARDS)
    assert (
        "ConfigError: guards: keep is asked for zzz, but exact for the cells of this notebook, whose hook"
        in done.stdout
    )
    assert "['exact']" in done.stdout


PICKED = """
import torch, graphmend_hook
NAMES = ["a", "b", "c", "d"]

def picked(x, of):
    x = x * 2
    torch._dynamo.graph_break()  # what follows a break takes no value for granted
    if NAMES[int(of["lengths"].max())] == "b":
        x = x.sin()
    return x + 1

def explained():
    return graphmend_hook.explain(picked)(torch.ones(8), {"lengths": torch.tensor([3, 0])})
"""


@needs_torch
def test_the_advice_of_explain_is_for_a_notebook_and_helps(session):
    show = "print(explained().breaks[-1].advice)"
    advice = "%env GRAPHMEND_VALUES=lengths, then %reload_ext graphmend_hook, and run the cells again"
    follow = ("%env GRAPHMEND_VALUES=lengths", "%reload_ext graphmend_hook", PICKED, "print(len(explained().breaks))")
    printed = values(session(LOAD, PICKED, show, *follow))
    assert printed == [f"if few values are met: {advice}", "env: GRAPHMEND_VALUES=lengths", "1"]
