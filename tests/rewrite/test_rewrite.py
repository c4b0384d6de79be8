"""The rewriter: what it emits, what it declines and why, and what it leaves as it was."""

from __future__ import annotations

import ast
import dis
import gc
import textwrap
import weakref
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from called_names import CALLED

from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import active_rules, rewrite, rewrite_tree
from graphmend_hook.settings.config import RULE_NAMES
from graphmend_hook.source.scopes import ModuleScope
from graphmend_hook.source.templates import OWN, RUNTIME

RULES = active_rules(("defer",))
CASES = [
    file
    for file in sorted((Path(__file__).parents[1] / "compiled").glob("*_cases.py"))
    if not file.name.startswith("test_")
]


def rewritten(text: str) -> Any:
    return rewrite(textwrap.dedent(text).encode(), "module.py", RULES)


def codes(code: CodeType) -> dict[str, CodeType]:
    """All code objects below `code`, by qualified name."""
    found = {}

    def walk(outer: CodeType, prefix: str) -> None:
        for constant in outer.co_consts:
            if isinstance(constant, CodeType):
                found[prefix + constant.co_name] = constant
                walk(constant, f"{prefix}{constant.co_name}.")

    walk(code, "")
    return found


def test_the_form_that_is_emitted() -> None:
    source = b"def f(x):\n    logger.warning_once(f'{x!r:>3} and {x.shape}')\n"
    tree = ast.parse(source)
    rewrite_tree(tree, source, RULES)
    text = ast.unparse(tree).replace(RUNTIME, "GM").replace(f"{OWN}target", "TARGET").replace(f"{OWN}values", "VALUES")
    expected = """\
        import graphmend_hook.runtime as GM
        def f(x):
            if GM.tracing():
                TARGET = logger
                VALUES = (x, x.shape)
                if GM.deferrable(TARGET, 'warning_once', VALUES):
                    GM.defer(lambda TARGET, VALUES: TARGET.warning_once(f'{VALUES[0]!r:>3} and {VALUES[1]}'), TARGET, 'warning_once', VALUES)
                else:
                    TARGET.warning_once(f'{VALUES[0]!r:>3} and {VALUES[1]}')
            else:
                logger.warning_once(f'{x!r:>3} and {x.shape}')"""
    assert text == ast.unparse(ast.parse(textwrap.dedent(expected)))


def test_rewritten_code_calls_only_what_the_runtime_has() -> None:
    source = b"import logging\ndef f(x):\n    log = logging.getLogger('a')\n    log.info(x)\n"
    tree = ast.parse(source)
    rewrite_tree(tree, source, RULES)
    called = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == RUNTIME
    }
    assert called <= CALLED


DECLINED = {
    "logger.warning('x', exc_info=True)": "GM101-R01",
    "logger.warning('x', stack_info=flag)": "GM101-R01",
    "warnings.warn('x', UserWarning, 2, None, skip_file_prefixes=files)": "GM101-R01",
    "print(*x)": "GM101-R02",
    "print(x, **options)": "GM101-R02",
    "print(x, file=stream)": "GM101-R06",
    "y = print(x)": "GM101-R08",
    "print(f'{x}', x.append(1))": "GM101-R09",
    "logger.info(f'{x} {next(x)}')": "GM101-R09",
    "print('a' + f'{x}' + '%s' % x.pop())": "GM101-R09",
    "return warnings.warn('x')": "GM101-R08",
    "started = datetime.datetime.now()": "GM101-R11",
    "logger.info('x', in_order=True)": "GM101-R01",
}
MENDED = [
    "print(x)",
    "print(x, file=sys.stderr)",
    "logger.warning('x', exc_info=False, stacklevel=1)",
    "logger.info('x', extra={'a': x})",
    "self.logger.warning('x')",
    "logger.warning('x', stacklevel=2)",
    "warnings.warn('x', UserWarning, stacklevel=level)",
    "warnings.warn('x')",
    "w('x')",
    "logging.error('x')",
    "logging.getLogger(__name__).info('x')",
    "log = logging.getLogger()",
    "log = logging.getLogger('a.b')",
    "print(f'{x} {len(x)} {x.size()}')",
    "print(x, x.append(1))",
    "print(next(x), f'{x}')",
]
IGNORED = ["log = logging.getLogger(x)", "x.append(1)", "y = math.log(x)", "y = x.info()", "printer(x)", "'print(x)'"]
IMPORTS = "import sys, logging, warnings, math, time, datetime\nfrom warnings import warn as w\n"


@pytest.mark.parametrize("statement", DECLINED)
def test_declined_with_its_code(statement: str) -> None:
    result = rewritten(f"{IMPORTS}def f(self, x):\n    {statement}\n")
    assert result.code is None
    assert [(site.outcome, site.code, site.line) for site in result.sites] == [
        (Outcome.DECLINED, DECLINED[statement], 4)
    ]
    assert "{" not in result.sites[0].reason


@pytest.mark.parametrize("statement", MENDED)
def test_mended(statement: str) -> None:
    result = rewritten(f"{IMPORTS}def f(self, x):\n    {statement}\n")
    assert [site.outcome for site in result.sites] == [Outcome.MENDED]


@pytest.mark.parametrize("statement", IGNORED)
def test_no_business_of_this_rule(statement: str) -> None:
    assert rewritten(f"{IMPORTS}def f(self, x):\n    {statement}\n").sites == ()


PLACES = {
    "def f(x):\n    try:\n        print(x)\n    except OSError:\n        pass\n": "GM101-R03",
    "def f(x):\n    print(x)\n    return locals()\n": "GM101-R04",
    "import sys\ndef f(x):\n    print(x)\n    return sys._getframe()\n": "GM101-R04",
    "import numba\n@numba.njit\ndef f(x):\n    print(x)\n": "GM101-R05",
    "from numba import njit\n@njit(cache=True)\ndef f(x):\n    print(x)\n": "GM101-R05",
    "async def f(x):\n    print(x)\n": "GM101-R07",
    "def f(x):\n    try:\n        pass\n    except OSError:\n        print(x)\n": "",
    "def f(x):\n    try:\n        print(x)\n    finally:\n        pass\n": "",
    "class A:\n    def f(self):\n        def g():\n            print(1)\n        return g\n": "",
    "def f(x):\n    match x:\n        case 1:\n            print(x)\n": "",
}


@pytest.mark.parametrize("text", PLACES)
def test_where_the_statement_stands(text: str) -> None:
    assert [site.code for site in rewritten(text).sites] == [PLACES[text]]


@pytest.mark.parametrize(
    "text",
    [
        "print('at import')\n",
        "class A:\n    print('in a class body')\n",
        "def f(print):\n    print(1)\n",
        "def print(x): ...\ndef f(x):\n    print(x)\n",
        "from rich import print\ndef f(x):\n    print(x)\n",
        "def f(x):\n    return x  # print(x)\n",
    ],
)
def test_not_a_site(text: str) -> None:
    assert rewritten(text).sites == ()


SOURCE = '''\
"""Docstring."""
from __future__ import annotations
import logging
log = logging.getLogger(__name__)

class Model:
    """A class."""
    size: int = 3

    def plain(self, x, *, y=(1, 2)):
        z = [i for i in range(self.size) if i]
        return super().plain(x, z) or (lambda q: q + y[0])

    def speaking(self, x):
        x = x + 1
        log.warning("said %s", x)
        return x * 2

def outer(a):
    def inner(b):
        nonlocal a
        a = b
        return __name__
    return inner
'''


def test_functions_without_a_site_compile_as_they_always_did() -> None:
    stock, mended = (
        codes(compile(SOURCE, "module.py", "exec")),
        codes(rewrite(SOURCE.encode(), "module.py", RULES).code),
    )
    changed = {name for name in stock if stock[name] != mended[name]}
    assert changed == {"Model", "Model.speaking"}
    assert set(mended) - set(stock) == {"Model.speaking.speaking"}


def test_docstring_future_and_first_line_stay() -> None:
    code = rewrite(SOURCE.encode(), "module.py", RULES).code
    namespace: dict[str, Any] = {"__name__": "m"}
    exec(code, namespace)
    assert namespace["__doc__"] == "Docstring."
    assert namespace["Model"].__annotations__ == {"size": "int"}
    assert code.co_firstlineno == 1
    assert RUNTIME.startswith("_"), "import * leaves it out"


@pytest.mark.skipif(not hasattr(CodeType, "co_positions"), reason="Python 3.11 has positions")
def test_positions_of_the_original_statements_are_preserved() -> None:
    source = "def f(x):\n    y = x  +  1\n    print(  y,\n        x )\n    return y\n"
    stock = codes(compile(source, "m.py", "exec"))["f"]
    mended = codes(rewrite(source.encode(), "m.py", RULES).code)["f"]

    def places(code: CodeType) -> set[Any]:
        return {i.positions for i in dis.get_instructions(code) if i.positions and i.opname not in {"RESUME", "NOP"}}

    assert places(stock) <= places(mended)
    new = {(place.lineno, place.end_lineno) for place in places(mended) - places(stock)}
    assert all(3 <= first <= last <= 4 for first, last in new), "what is added stands where the statement stands"


def test_a_deferred_call_is_made_from_the_function_it_stands_in() -> None:
    code = rewrite(SOURCE.encode(), "module.py", RULES).code
    delivery = codes(code)["Model.speaking.speaking"]
    assert (delivery.co_name, delivery.co_firstlineno, delivery.co_filename) == ("speaking", 16, "module.py")


def test_what_a_rewriter_cannot_parse_it_reports_as_python_does() -> None:
    with pytest.raises(SyntaxError) as caught:
        rewrite(b"def f(:\n    print(x)\n", "module.py", RULES)
    assert (caught.value.filename, caught.value.lineno) == ("module.py", 1)


def test_a_rewritten_tree_is_gone_at_once_and_not_left_to_the_garbage_collector() -> None:
    source = b"import torch\ndef f(x: torch.Tensor):\n    if x.sum() > 0:\n        x = x + 1\n    return x[x > 0]\n"
    tree = ast.parse(source)
    node = weakref.ref(tree)
    gc.disable()
    try:
        assert rewrite_tree(tree, source, active_rules(RULE_NAMES))
        del tree
        assert node() is None
    finally:
        gc.enable()


PRIVATE = """
class _Box:
    def f(self):
        def g(): return self.__x, self.__x__, self.x
        class _:
            def h(self): return self.__x
def free(self): return self.__x
"""


@pytest.mark.parametrize(
    ("function", "spelling", "attribute"),
    [
        ("_Box.f", "__x", "_Box__x"),
        ("_Box.f", "__x__", "__x__"),
        ("_Box.f", "x", "x"),
        ("_Box.f.<locals>.g", "__x", "_Box__x"),
        ("_Box.f.<locals>._.h", "__x", "__x"),
        ("free", "__x", "__x"),
    ],
)
def test_a_private_name_is_that_of_its_class(function: str, spelling: str, attribute: str) -> None:
    """As Python has it: a class whose name has nothing but underscores gives none."""
    scope = ModuleScope(ast.parse(PRIVATE), PRIVATE.encode())
    assert scope.functions[function].attribute(spelling) == attribute


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_each_name_of_ours_is_a_local_one(path: Path) -> None:
    """A name that no statement binds would be looked for among the globals."""
    code = rewrite(path.read_bytes(), str(path), active_rules(RULE_NAMES)).code
    assert code is not None
    found = {name for part in codes(code).values() for name in part.co_names}
    assert not {name for name in found if name.startswith(OWN)} - {RUNTIME}
