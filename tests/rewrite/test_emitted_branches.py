"""The form in which branches and guards are emitted, and what it calls of the runtime."""

from __future__ import annotations

import ast
import re
import textwrap
import types
from pathlib import Path

import pytest
from called_names import CALLED
from rewritten import RAISED_AGAIN, RULES, method, module, sites

from graphmend_hook import runtime
from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import active_rules, rewrite_tree
from graphmend_hook.source.templates import OWN, RUNTIME

# --- the form ---

FORMS = {
    "if": (
        """
        def f(x):
            if x.any():
                x = x + 1
            return x
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, x):
                        x = GM.judged(GM.begun(), x + 1)
                        return (x,)
                    def ELSE(EFFECTS, x):
                        return (x,)
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (x,), None)
                if OUTCOME is not None:
                    x = OUTCOME[0]
                elif GM.settle(TEST):
                    x = x + 1
            elif x.any():
                x = x + 1
            return x
        """,
    ),
    "early return": (
        """
        def f(x):
            if x.any():
                return x.abs()
            y = torch.relu(x)
            return y
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, x):
                        return (GM.judged(GM.begun(), x.abs()),)
                    def ELSE(EFFECTS, x):
                        y = GM.judged(GM.begun(), torch.relu(x))
                        return (y,)
                    OUTCOME = GM.select_returned(TEST, (THEN, ELSE), (x,), None)
                if OUTCOME is not None:
                    return OUTCOME[0]
                elif GM.settle(TEST):
                    return x.abs()
            elif x.any():
                return x.abs()
            y = torch.relu(x)
            return y
        """,
    ),
    "conditional": (
        """
        def f(x):
            y = g(x, -x if x.any() else x)
            return y
        """,
        """
        def f(x):
            if GM.compiling():
                def THEN(EFFECTS, x):
                    return (GM.judged(GM.begun(), -x),)
                def ELSE(EFFECTS, x):
                    return (x,)
                y = g(x, OUTCOME[0] if GM.undecided((TEST := x.any())) and
                    (OUTCOME := GM.select(TEST, (THEN, ELSE), (x,), None)) is not None else -x if GM.settle(TEST) else x)
            else:
                y = g(x, -x if x.any() else x)
            return y
        """,
    ),
    "guard": (
        """
        def f(x, n):
            if x.max() >= n:
                raise ValueError(f'{x.max()} of {n}')
        """,
        """
        def f(x, n):
            if GM.compiling():
                TEST = x.max() >= n
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, n, x):
                        def DELIVERY(TARGET, VALUES):
                            raise ValueError(f'{VALUES[0].max()} of {VALUES[1]}')
                        EFFECTS.append((None, None, DELIVERY, "raise ValueError(f'{x.max()} of {n}')", (x, n)))
                        return None
                    def ELSE(EFFECTS, n, x):
                        return ()
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (n, x), None)
                if OUTCOME is not None:
                    pass
                elif TEST if (SPARED := GM.spared(TEST, True)) is None else SPARED:
                    raise ValueError(f'{x.max()} of {n}')
            elif x.max() >= n:
                raise ValueError(f'{x.max()} of {n}')
        """,
    ),
    "assert": (
        """
        def f(x, n):
            assert x.any(), n.name
        """,
        """
        def f(x, n):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, n):
                        return ()
                    def ELSE(EFFECTS, n):
                        def DELIVERY(TARGET, VALUES):
                            assert False, VALUES[0]
                        EFFECTS.append((None, None, DELIVERY, 'assert False, n.name', (GM.judged(GM.begun(), n.name),)))
                        return None
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (n,), None)
                if OUTCOME is not None:
                    pass
                elif GM.undecided(TEST):
                    if GM.spared(TEST, False) is None:
                        assert GM.asserted(TEST, False), n.name
                elif not TEST:
                    assert False, n.name
            else:
                assert x.any(), n.name
        """,
    ),
    "check": (
        """
        def f(x):
            torch._check(bool(x.any()), lambda: 'm')
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST) and GM.is_check(torch._check) and GM.is_bool(TEST):
                    def THEN(EFFECTS):
                        return ()
                    def ELSE(EFFECTS):
                        def DELIVERY(TARGET, VALUES):
                            torch._check(False, lambda: 'm')
                        EFFECTS.append((None, None, DELIVERY, "torch._check(False, lambda: 'm')", ()))
                        return None
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (), None)
                if OUTCOME is not None:
                    pass
                else:
                    torch._check(bool(TEST), lambda: 'm')
            else:
                torch._check(bool(x.any()), lambda: 'm')
        """,
    ),
    "check of every element": (
        """
        def f(x):
            torch_compilable_check(x.any(), 'm')
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST) and GM.is_check(torch_compilable_check):
                    def THEN(EFFECTS):
                        return ()
                    def ELSE(EFFECTS):
                        def DELIVERY(TARGET, VALUES):
                            torch_compilable_check(False, 'm')
                        EFFECTS.append((None, None, DELIVERY, "torch_compilable_check(False, 'm')", ()))
                        return None
                    OUTCOME = GM.select(GM.every(TEST), (THEN, ELSE), (), None)
                if OUTCOME is not None:
                    pass
                else:
                    torch_compilable_check(TEST, 'm')
            else:
                torch_compilable_check(x.any(), 'm')
        """,
    ),
    "lazy attribute": (
        """
        def f(self, x):
            if torch.max(x) > 3:
                if not hasattr(self, 'z'):
                    self.z = make(x)
                x = x.neg()
            return x
        """,
        """
        def f(self, x):
            if GM.compiling():
                TEST = torch.max(x) > 3
                OUTCOME = None
                if GM.undecided(TEST):
                    LAZY0 = None
                    if hasattr(self, 'z'):
                        LAZY0 = self.z
                    elif GM.watch(self, 'z'):
                        LAZY0 = make(x)
                        GM.harmless()
                    def THEN(EFFECTS, LAZY0, self, x):
                        if not hasattr(self, 'z'):
                            def DELIVERY(TARGET, VALUES):
                                TARGET.z = VALUES[0]
                            EFFECTS.append((None, '.', DELIVERY, self, (LAZY0,)))
                        x = GM.judged(GM.begun(), x.neg())
                        return (x,)
                    def ELSE(EFFECTS, LAZY0, self, x):
                        return (x,)
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (LAZY0, self, x), None)
                if OUTCOME is not None:
                    x = OUTCOME[0]
                elif GM.settle(TEST):
                    if not hasattr(self, 'z'):
                        self.z = make(x)
                    x = x.neg()
            elif torch.max(x) > 3:
                if not hasattr(self, 'z'):
                    self.z = make(x)
                x = x.neg()
            return x
        """,
    ),
}


def spelled(text: str) -> str:
    """The statements of `text` after the imports."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return ast.unparse(tree).replace("lambda :", "lambda:")  # as Python 3.10 to 3.12 spell it


@pytest.mark.parametrize("body", RAISED_AGAIN)
def test_a_side_that_raises_is_spared_whatever_it_does(body: str) -> None:
    text = method(body)
    assert Outcome.MENDED in {site.outcome for site in sites(text) if site.rule in ("trap", "where")}


@pytest.mark.parametrize("title", FORMS)
def test_the_form_that_is_emitted(title: str) -> None:
    source, expected = FORMS[title]
    tree = ast.parse(module(source))
    found = rewrite_tree(tree, module(source).encode(), RULES)
    assert {change.site.outcome for change in found} == {Outcome.MENDED}
    text = re.sub(rf"{OWN}([a-z]+)", lambda match: match[1].upper(), ast.unparse(tree)).replace(RUNTIME, "GM")
    assert spelled(text) == spelled(textwrap.dedent(expected))


def test_what_is_inside_is_mended_and_the_original_stays() -> None:
    text = module(
        """
        def f(x):
            if x.any():
                print("any")
                if x.all():
                    x = x + 1
            return x
        """
    )
    tree = ast.parse(text)
    original = ast.unparse(tree.body[1].body[0])  # type: ignore[attr-defined]
    found = rewrite_tree(tree, text.encode(), active_rules(("defer", "where")))
    assert [change.site.rule for change in found if change.emitted] == ["where", "defer", "where"]
    outer = found[0].emitted[0]
    assert isinstance(outer, ast.If)
    assert ast.unparse(outer.orelse) == original
    traced = ast.unparse(outer.body)
    assert traced.count("GM.defer(".replace("GM", RUNTIME)) == 1, "where the sides are not joined"
    assert traced.count("GM.select(".replace("GM", RUNTIME)) == 2
    assert ast.unparse(tree.body[-1]).count(original.partition("\n")[0]) == 1


# --- the runtime has what is called ---

PACKAGE = Path(runtime.__file__).parent


def defined_in(file: Path) -> set[str]:
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            stored = [name for target in node.targets for name in ast.walk(target)]
            names |= {name.id for name in stored if isinstance(name, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def test_rules_call_only_what_the_runtime_has() -> None:
    called = set()
    for file in [*(PACKAGE / "rules").rglob("*.py"), PACKAGE / "source" / "templates.py"]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                called |= set(re.findall(r"\bGM\.(\w+)", node.value))
    assert called - CALLED == {"sys"}, "the package itself has that"
    assert "sys" in defined_in(Path(runtime.__file__))
    assert CALLED - called == set(), "nothing is there for nobody"


def test_what_is_there_before_torch_is_called_too() -> None:
    assert {"tracing", "compiling"} <= CALLED
    assert {"tracing", "compiling", "connect"} <= defined_in(Path(runtime.__file__))
    assert isinstance(runtime, types.ModuleType)
