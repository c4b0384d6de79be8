"""Definite assignment and liveness: what `Flow` says about a function, against what the function does.

Random functions are executed with every local name turned into an attribute of a recorder, so that each read, binding
and deletion is an event, in order, with the statements that are reached and passed between them.
"""

from __future__ import annotations

import ast
import copy
import random
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphmend_hook.source.flow import Flow
from graphmend_hook.source.names import free_names

POOL = ("a", "b", "c", "d")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


# --- the recorder, and functions rewritten to use it ---


class Recorder:
    """Holds the local names of the function under test as attributes, and writes down what happens to them."""

    def __init__(self) -> None:
        self.__dict__["_names"] = {}
        self.__dict__["_events"] = []

    def __getattr__(self, name: str) -> Any:
        self._events.append(("read", name))
        if name not in self._names:
            raise UnboundLocalError(name)
        return self._names[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._events.append(("bind", name))
        self._names[name] = value

    def __delattr__(self, name: str) -> None:
        self._events.append(("read", name))  # it must be bound, or the statement raises
        if self._names.pop(name, self) is self:
            raise UnboundLocalError(name)
        self._events.append(("unbind", name))

    def _set(self, name: str, value: Any) -> Any:
        setattr(self, name, value)
        return value

    def _forget(self, name: str) -> None:
        """The end of ``except ... as name``."""
        self._events.append(("bind", name))
        self._names.pop(name, None)

    def _at(self, number: int) -> None:
        self._events.append(("at", number, frozenset(self._names)))

    def _passed(self, number: int) -> None:
        self._events.append(("passed", number))


class Instrument(ast.NodeTransformer):
    """Turns the local names of a function into attributes of ``R``, and marks where its statements begin and end."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._locals = set(local_names(function))
        self._hidden: list[set[str]] = []
        self._is_inside = False

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        opening = [parsed(f"R.{name.arg} = {name.arg}") for name in ast.walk(node.args) if isinstance(name, ast.arg)]
        node.body = opening + self._block(node.body)
        return node

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in block:
            visited = self.visit(statement)
            statements = visited if isinstance(visited, list) else [visited]
            if self._is_inside or isinstance(statement, (ast.Global, ast.Nonlocal)):
                found += statements
            else:
                number = statement.number  # type: ignore[attr-defined]
                found += [parsed(f"R._at({number})"), *statements, parsed(f"R._passed({number})")]
        return found

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, field, self._block(value))
            elif isinstance(value, list):
                setattr(node, field, [self.visit(item) if isinstance(item, ast.AST) else item for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node

    def _is_local(self, name: str) -> bool:
        return name in self._locals and not any(name in hidden for hidden in self._hidden)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Attribute(ast.Name("R", ast.Load()), node.id, node.ctx) if self._is_local(node.id) else node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        call = ast.parse(f"R._set({node.target.id!r}, 0)", mode="eval").body
        call.args[1] = self.visit(node.value)  # type: ignore[attr-defined]
        return call

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        name, node.name = node.name, node.name and f"own_{node.name}"
        self.generic_visit(node)
        if name and self._is_local(name):
            guarded = parsed(f"try:\n    pass\nfinally:\n    R._forget({name!r})")
            guarded.body = node.body  # type: ignore[attr-defined]
            node.body = [parsed(f"R.{name} = own_{name}"), guarded]
        return node

    def visit_match_case(self, node: Any) -> Any:
        captured = [n for n in ast.walk(node.pattern) if isinstance(n, ast.MatchAs) and n.name]
        opening = [parsed(f"R.{capture.name} = own_{capture.name}") for capture in captured]
        for capture in captured:
            capture.name = f"own_{capture.name}"
        node.body = opening + self._block(node.body)
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        names = [alias.asname or alias.name for alias in node.names]
        return [node, *(parsed(f"R.{name} = {name}") for name in names if self._is_local(name))]

    def _scope(self, node: ast.AST, hidden: set[str]) -> None:
        inside, self._is_inside = self._is_inside, True
        self._hidden.append(hidden)
        self.generic_visit(node)
        self._hidden.pop()
        self._is_inside = inside

    def visit_FunctionDef(self, node: ast.FunctionDef) -> list[ast.stmt]:
        outer = {name for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for name in n.names}
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        defaults, node.args.defaults = node.args.defaults, []
        self._scope(node, set(local_names(node)) - outer)
        node.args.defaults = defaults
        node.body = [n for n in node.body if not isinstance(n, ast.Nonlocal)] or [ast.Pass()]
        return [node, *([parsed(f"R.{node.name} = {node.name}")] if self._is_local(node.name) else [])]

    def visit_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:
        self._scope(node, set())
        return [node, *([parsed(f"R.{node.name} = {node.name}")] if self._is_local(node.name) else [])]

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self._scope(node, {argument.arg for argument in node.args.args})
        return node

    def _comprehension(self, node: Any) -> ast.expr:
        first = node.generators[0]
        outermost = self.visit(first.iter)
        first.iter = ast.Constant(0)
        targets = [n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
        self._scope(node, set(targets))
        first.iter = outermost
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def parsed(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def local_names(function: ast.AST) -> Iterator[str]:
    """The names that belong to `function` itself."""
    stack = [*ast.iter_child_nodes(function)]
    foreign = set()
    found = []
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            foreign.update(node.names)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.append(node.id)
        elif isinstance(node, ast.arg):
            found.append(node.arg)
        elif isinstance(node, ast.alias):
            found.append(node.asname or node.name)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler, ast.MatchAs)) and node.name:
            found.append(node.name)
        if isinstance(node, COMPREHENSIONS):
            found += [n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)]
            stack.append(node.generators[0].iter)
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda)):
            stack += ast.iter_child_nodes(node)
    return (name for name in found if name not in foreign)


# --- what the functions under test call ---


def surroundings(seed: int) -> dict[str, Any]:
    """The globals of a function: decisions that follow from `seed`, failures, and context managers."""
    chance = random.Random(seed)
    fuel = [40]

    def tick() -> bool:
        fuel[0] -= 1
        return fuel[0] > 0 and chance.random() < 0.6

    def risk(*values: Any) -> int:
        if chance.random() < 0.25:
            raise chance.choice([ValueError, KeyError])("risk")
        return len(values)

    def drain(value: Any) -> int:
        """Call or exhaust `value`, as it may be."""
        if callable(value) and not isinstance(value, type):
            value()
        elif hasattr(value, "__next__"):
            list(value)
        return 1

    class Context:
        def __init__(self, swallows: bool) -> None:
            self.swallows = swallows

        def __enter__(self) -> int:
            if chance.random() < 0.1:
                raise ValueError("enter")
            return 1

        def __exit__(self, *_: object) -> bool:
            return self.swallows and chance.random() < 0.8

    class torch:
        ctx = staticmethod(lambda: Context(False))

    return {
        "bit": lambda: chance.random() < 0.5,
        "tick": tick,
        "risk": risk,
        "drain": drain,
        "use": lambda *values: 1,
        "swallow": lambda: Context(True),
        "keep": lambda: Context(False),
        "torch": torch,
        "box": {},
    }


def mistakes(text: str, seeds: range, *arguments: Any) -> list[str]:
    """Execute ``f`` of `text` for each seed; where the analysis and the execution disagree."""
    tree = ast.parse(text)
    node = tree.body[0]
    assert isinstance(node, ast.FunctionDef)
    statements = [statement for statement in ast.walk(node) if isinstance(statement, ast.stmt)]
    for number, statement in enumerate(statements):
        statement.number = number  # type: ignore[attr-defined]
    flow, own = Flow(node), set(local_names(node))
    probed = copy.deepcopy(tree)
    probed.body = [Instrument(node).function(probed.body[0])]  # type: ignore[arg-type]
    code = compile(ast.unparse(ast.fix_missing_locations(probed)), "probed.py", "exec")
    found: dict[str, None] = {}
    for seed in seeds:
        recorder = execute(code, seed, arguments or (1, 2))
        live: set[str] = set()
        for event, what, *names in reversed(recorder._events):
            if event == "read":
                live.add(what)
            elif event == "bind":
                live.discard(what)
            elif event == "at" and flow.bound_before(statements[what]) & own - names[0]:
                wrong = sorted(flow.bound_before(statements[what]) & own - names[0])
                found[f"line {statements[what].lineno}: {wrong} said to be bound"] = None
            elif event == "passed" and live - flow.needed_after(statements[what]):
                wrong = sorted(live - flow.needed_after(statements[what]))
                found[f"line {statements[what].lineno}: {wrong} read later, said not to be"] = None
    return list(found)


def execute(code: Any, seed: int, arguments: tuple[Any, ...]) -> Recorder:
    recorder = Recorder()
    namespace = surroundings(seed) | {"R": recorder}
    exec(code, namespace)
    try:
        result = namespace["f"](*arguments)
        if hasattr(result, "close"):
            for _ in zip(range(seed % 5), result):
                pass
            result.close()
        namespace["drain"](result)
    except Exception:
        pass
    return recorder


# --- random functions ---


class Writer:
    """Writes the text of a random function."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._yields = self._chance.random() < 0.2

    def function(self) -> str:
        body = [line for _ in range(self._chance.randint(2, 5)) for line in self.statement(3, False)]
        end = "use(a, b)" if self._chance.random() < 0.5 else "use(c, d)"
        return "\n".join(["def f(a, b):", *indent(["if bit(): c = d = 0", *body, end, "return d"])])

    def name(self) -> str:
        return self._chance.choice(POOL)

    def block(self, depth: int, in_loop: bool) -> list[str]:
        statements = [self.statement(depth - 1, in_loop) for _ in range(self._chance.choice([1, 1, 2, 3]))]
        return indent([line for lines in statements for line in lines])

    def statement(self, depth: int, in_loop: bool) -> list[str]:
        if depth > 0 and self._chance.random() < 0.55:
            return self._chance.choice(
                [self.if_, self.for_, self.while_, self.try_, self.try_, self.with_, self.other]
            )(depth, in_loop)
        if self._chance.random() < 0.12:
            leaving = ["return use({0})", "raise ValueError({0})"] + ["break", "continue"] * (2 if in_loop else 0)
            return ["if bit(): " + self._chance.choice(leaving).format(self.name())]
        return self.simple()

    def simple(self) -> list[str]:
        x, y, z = self.name(), self.name(), self.name()
        forms = [
            f"{x} = use({y})",
            f"{x} = risk({y}, {z})",
            f"{x} = {y} = risk({z})",
            f"{x}, [*{y}] = use({z}), (1, 2)",
            f"{x}: int = use({y})",
            f"{x} += use({y})",
            f"use({x}, risk())",
            f"use(({x} := risk({y})), {z})",
            f"box[{x}] = {y}",
            f"del {x}",
            f"assert bit(), {x}",
            f"{x} = [use({y}, {z}) for {y} in range(2)]",
            f"{x} = {{{y}: ({z} := 1) for i in range(2)}}",
            f"{x} = (use({y}, i) for i in range(2))",
            f"{x} = list(use({y}, i) for i in [use({z})])",
            f"{x} = lambda {y}=1: use({y}, {z})",
            f"drain({x})",
            f"drain({x})",
            f"import math as {x}",
            f"{x} = use({y}) if bit() else {z}",
            f"bit() and use({x}) or risk({y})",
        ]
        if self._yields:
            forms += [f"yield {x}", f"{x} = (yield {y})"] * 2
        return [self._chance.choice(forms)]

    def if_(self, depth: int, in_loop: bool) -> list[str]:
        test = self._chance.choice(["bit()", f"use({self.name()}) and bit()", f"({self.name()} := bit())"])
        lines = [f"if {test}:", *self.block(depth, in_loop)]
        if self._chance.random() < 0.3:
            lines += [f"elif risk({self.name()}) > 5:", *self.block(depth, in_loop)]
        return lines + (["else:", *self.block(depth, in_loop)] if self._chance.random() < 0.5 else [])

    def for_(self, depth: int, in_loop: bool) -> list[str]:
        x, y, z = self.name(), self.name(), self.name()
        heads = [
            f"for {x} in range(2):",
            f"for {x} in [use({y}), 1, 2]:",
            f"for {x}, {y} in ((1, risk({z})),):",
            f"for box[{x}] in range(2):",
            f"for {x}, box[{y}] in ((1, 2), (3, 4)):",
        ]
        lines = [self._chance.choice(heads), *self.block(depth, True)]
        return lines + (["else:", *self.block(depth, in_loop)] if self._chance.random() < 0.3 else [])

    def while_(self, depth: int, in_loop: bool) -> list[str]:
        tests = ["tick()", f"tick() and use({self.name()})", f"({self.name()} := tick())"]
        lines = [f"while {self._chance.choice(tests)}:", *self.block(depth, True)]
        return lines + (["else:", *self.block(depth, in_loop)] if self._chance.random() < 0.3 else [])

    def try_(self, depth: int, in_loop: bool) -> list[str]:
        lines = ["try:", *self.block(depth, in_loop), *indent(["risk()"])]
        groups = sys.version_info >= (3, 11) and self._chance.random() < 0.15
        handlers = self._chance.randint(0, 2)
        for _ in range(handlers):
            named = f" as {self.name()}" if self._chance.random() < 0.5 else ""
            block = indent(self.simple()) if groups else self.block(depth, in_loop)
            if groups and "yield" in block[0]:
                block = indent(["pass"])
            lines += [
                f"except{'*' if groups else ''} {self._chance.choice(['ValueError', 'Exception'])}{named}:",
                *block,
            ]
        if handlers and self._chance.random() < 0.3:
            lines += ["else:", *self.block(depth, in_loop)]
        if not handlers or self._chance.random() < 0.4:
            lines += ["finally:", *self.block(depth, in_loop)]
        return lines

    def with_(self, depth: int, in_loop: bool) -> list[str]:
        manager = self._chance.choice(["swallow()", "swallow()", "keep()", "torch.ctx()"])
        named = f" as {self.name()}" if self._chance.random() < 0.5 else ""
        second = f", {self._chance.choice(['swallow()', 'torch.ctx()'])}" if self._chance.random() < 0.3 else ""
        return [f"with {manager}{named}{second}:", *self.block(depth, in_loop)]

    def other(self, depth: int, in_loop: bool) -> list[str]:
        x, y, z = self.name(), self.name(), self.name()
        kind = self._chance.randint(0, 3)
        if kind == 0:
            captures = f"[1, {y}]" if bit(self._chance) else "[1, 2]"
            return [f"match [use({x}), 2]:", *indent([f"case {captures}:", *self.block(depth, in_loop)])]
        if kind == 1:
            return [f"class {x}:", *indent([f"field = use({y})"])]
        if kind == 2:
            return [f"def {x}({y}=use({z})):", *indent([f"return use({y}, {self.name()})"])]
        changed = self._chance.choice([n for n in POOL if n != x])
        return [f"def {x}():", *indent([f"nonlocal {changed}", f"use({y})", f"{changed} = use({changed})"])]


def bit(chance: random.Random) -> bool:
    return chance.random() < 0.5


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


@pytest.mark.filterwarnings("ignore")  # generators that are collected in the middle of a `with` or `try`
@pytest.mark.parametrize("chunk", range(6))
def test_random_functions(chunk: int) -> None:
    for seed in range(chunk * 100, (chunk + 1) * 100):
        text = Writer(seed).function()
        assert not mistakes(text, range(6)), f"seed {seed}\n{text}"


# --- what is hard, by name ---

HARD = {
    "a generator expression reads late": """
        def f(a, b):
            c = (use(b, i) for i in range(2))
            b = 3
            return list(c)
        """,
    "its first iterable is read at once, the others late": """
        def f(a, b):
            c = (i for i in [a, 1] for j in [b])
            b = 3
            return list(c)
        """,
    "a lambda reads late": """
        def f(a, b):
            c = lambda d=a: use(b)
            a = b = 3
            return c()
        """,
    "a nested function reads and binds": """
        def f(a, b):
            def c():
                nonlocal a
                a = use(b)
            b = 2
            c()
            return a
        """,
    "a default is read at the definition": """
        def f(a, b):
            def c(d=a):
                return d
            a = 2
            return c()
        """,
    "a class body reads at once": """
        def f(a, b):
            if bit(): c = 1
            class d:
                field = c
            c = 2
            return d, c
        """,
    "a with statement swallows": """
        def f(a, b):
            with swallow():
                c = use(a)
                risk()
                a = c
                risk()
                b = 1
            return use(a, b)
        """,
    "a with statement of two managers, one of torch": """
        def f(a, b):
            with torch.ctx(), swallow():
                a = 1
                risk()
                c = 2
            return use(a), c
        """,
    "a name of a manager": """
        def f(a, b):
            with swallow() as c, keep() as d:
                risk()
                del d
            return c, d
        """,
    "except, finally and break": """
        def f(a, b):
            for a in range(3):
                try:
                    risk()
                    if bit(): break
                except ValueError:
                    b = 1
                    if bit(): break
                    risk()
                finally:
                    a = 2
                a = 3
                b = 4
            return use(a, b)
        """,
    "continue through finally": """
        def f(a, b):
            while tick() and use(a):
                try:
                    if bit(): continue
                finally:
                    a = 2
                a = 3
            return 1
        """,
    "break in finally": """
        def f(a, b):
            while tick():
                try:
                    c = risk()
                    return c
                finally:
                    b = 3
                    if bit(): break
                b = 4
            return use(b)
        """,
    "return in finally": """
        def f(a, b):
            try:
                a = risk()
                raise KeyError(a)
            finally:
                if bit(): return use(a, b)
                b = 1
            return a
        """,
    "del in finally": """
        def f(a, b):
            try:
                risk()
            except KeyError:
                pass
            finally:
                del a
            return use(b, a)
        """,
    "del in finally, and no handler": """
        def f(a, b):
            try:
                c = 1
            finally:
                del a
            return use(c, a)
        """,
    "the name of a handler is gone after it": """
        def f(a, b):
            try:
                risk()
            except KeyError as a:
                use(a)
            return a
        """,
    "the name of a handler is gone in the next iteration": """
        def f(a, b):
            for c in range(3):
                use(a)
                try:
                    risk()
                except (KeyError, ValueError) as a:
                    pass
            return a
        """,
    "the name of a handler is gone where its body raised": """
        def f(a, b):
            try:
                try:
                    raise KeyError
                except KeyError as a:
                    risk()
            except Exception:
                return use(b, a)
            return b
        """,
    "else after try": """
        def f(a, b):
            try:
                c = risk()
            except ValueError:
                a = 1
            else:
                b = 1
                risk()
            finally:
                d = use(b)
            return c, d
        """,
    "a target that reads names": """
        def f(a, b):
            for box[a], a in ((1, 2), (3, 4)):
                use(b)
                b = 1
            return use(a)
        """,
    "a target that is not bound if there is nothing": """
        def f(a, b):
            for c in [1, 2][a:]:
                pass
            else:
                d = 1
            return use(d), c
        """,
    "del in a loop": """
        def f(a, b):
            c = 1
            while tick():
                use(c)
                if bit(): del c
            return c
        """,
    "del of the target in its loop": """
        def f(a, b):
            for a in range(2):
                use(a)
                del a
            return a
        """,
    "walrus in tests and comprehensions": """
        def f(a, b):
            while (c := tick()) and (d := bit()):
                use(c, d)
            e = [(a := i) for i in range(2) if bit()]
            if bit() and (b := e):
                use(b)
            return c, d, a
        """,
    "a comprehension has names of its own": """
        def f(a, b):
            c = [a for a in [b, 2]]
            d = {b: a for b in c}
            return use(a, b, d)
        """,
    "global": """
        def f(a, b):
            global c
            c = use(a)
            a = 2
            return c + a
        """,
    "augmented assignment reads": """
        def f(a, b):
            a += 1
            b = [1]
            b[0] += a
            if bit(): c = 1
            c += 1
            return b
        """,
    "unpacking fails half-way": """
        def f(a, b):
            try:
                a, (b, c) = 1, risk(a)
            except Exception:
                pass
            return use(a, b)
        """,
    "a generator is closed where it waits": """
        def f(a, b):
            try:
                a = 2
                yield b
                a = 3
                yield a
            finally:
                use(a, b)
        """,
    "a generator is sent a value": """
        def f(a, b):
            c = yield a
            a = yield c
            return use(a)
        """,
    "match binds": """
        def f(a, b):
            match [risk(a), 2]:
                case [1, b]:
                    c = b
                case _:
                    pass
            return use(b), c
        """,
    "import and star": """
        def f(a, b):
            import math as c
            d, *a = use(b), 2
            return use(a, c, d)
        """,
    "all paths leave": """
        def f(a, b):
            if bit():
                return a
            else:
                raise KeyError(b)
            return c
        """,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", HARD)
def test_hard_cases(title: str) -> None:
    assert not mistakes(textwrap.dedent(HARD[title]).strip(), range(40))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is of Python 3.11")
def test_exception_groups() -> None:
    text = """
        def f(a, b):
            try:
                c = risk()
                risk(a)
            except* ValueError as a:
                b = 1
                risk()
            except* KeyError:
                use(b)
            finally:
                d = 1
            return use(b), d, a
        """
    assert not mistakes(textwrap.dedent(text).strip(), range(40))


def flow_of(text: str) -> tuple[Flow, Callable[[int], ast.stmt]]:
    """The analysis of the function in `text`, and its statement by line (the ``def`` is on line 1)."""
    node = ast.parse(textwrap.dedent(text).strip()).body[0]
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    lines = {n.lineno: n for n in ast.walk(node) if isinstance(n, ast.stmt)}
    return Flow(node), lines.__getitem__


def test_it_is_not_timid() -> None:
    """What a rule lives on: names bound on both sides, or in a loop, and names that nothing reads later."""
    flow, at = flow_of("""
        def f(a, *b, c=1, **d):
            if a:
                e = g = 1
            else:
                e = 2
            with torch.no_grad():
                h = e
            for i in b:
                k = h
                if k: continue
                i = 2
            try:
                m = 1
            finally:
                n = 2
            return m + n + h
        """)
    assert flow.bound_before(at(2)) == set("abcd")
    assert flow.bound_before(at(6)) == set("abcde")
    assert flow.bound_before(at(8)) == set("abcdeh")
    assert flow.bound_before(at(10)) == set("abcdehik")
    assert flow.bound_before(at(12)) == set("abcdeh")
    assert flow.bound_before(at(16)) == set("abcdehmn")
    local = set("abcdeghikmn")
    assert flow.needed_after(at(2)) & local <= set("bem")  # m: what is left by an exception needs it too, it says
    assert "g" not in flow.needed_after(at(3))
    assert flow.needed_after(at(6)) & local <= set("bhm")
    assert flow.needed_after(at(9)) & local <= set("khm")
    assert flow.needed_after(at(11)) & local <= set("hm")
    assert flow.needed_after(at(15)) & local == set("mnh")
    assert flow.needed_after(at(16)) == set()


def test_only_a_manager_of_torch_is_trusted() -> None:
    for manager, bound in {"torch.no_grad()": "abc", "self.lock": "ab", "torch.no_grad(), b": "ab"}.items():
        flow, at = flow_of(f"def f(a, b):\n    with {manager}:\n        c = 1\n    return c")
        assert flow.bound_before(at(4)) == set(bound)


def test_coroutines() -> None:
    flow, at = flow_of("""
        async def f(a, b):
            async for c in a:
                await c
                b = 1
            async with a as d:
                e = 1
            return b, d
        """)
    assert flow.bound_before(at(3)) == set("abc")
    assert flow.bound_before(at(5)) == set("ab")
    assert "e" not in flow.bound_before(at(7))
    assert "b" in flow.needed_after(at(4))


def test_a_statement_that_is_not_reached_has_nothing_bound() -> None:
    flow, at = flow_of("def f(a):\n    return a\n    b = a\n    return b")
    assert flow.bound_before(at(3)) == flow.bound_before(at(4)) == frozenset()


def test_the_property_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(a, b):\n    if bit(): c = 1\n    a = 2\n    return use(a), c"
    assert not mistakes(text, range(8))
    monkeypatch.setattr(Flow, "bound_before", lambda self, statement: frozenset("c"))
    assert "line 3: ['c'] said to be bound" in mistakes(text, range(8))
    monkeypatch.undo()
    monkeypatch.setattr(Flow, "needed_after", lambda self, statement: frozenset())
    assert "line 3: ['a', 'c'] read later, said not to be" in mistakes(text, range(8))


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("[i * a for i in xs]", "a xs"),
        ("[(lambda: i + j)() for i in xs]", "j xs"),
        ("{k: [x for x in v if x is not k] for k, v in d.items()}", "d"),
        ("{x for x in x if y}", "x y"),
        ("lambda y: [y + z for z in y]", ""),
        ("sum(i for i in xs)", "sum xs"),
    ],
)
def test_free_names_are_the_same_on_each_version_of_python(text: str, free: str) -> None:
    assert free_names(ast.parse(text, mode="eval").body) == set(free.split())
