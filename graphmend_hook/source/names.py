"""Which import a name of a module is bound to: ``from warnings import warn as w`` makes ``w`` ``warnings.warn``."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator
from dataclasses import dataclass

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Nodes that bind a name without an `ast.Name`, by the field that holds it.
_DEFINING: dict[type[ast.AST], str] = {
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}


class Imports:
    """Names bound by the import statements of a module, wherever they stand in it."""

    def __init__(self) -> None:
        self._bound: dict[str, str] = {}

    def add(self, statement: ast.stmt) -> None:
        """Take note of `statement` if it is an import."""
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                name = alias.asname or alias.name.partition(".")[0]
                self._bound[name] = alias.name if alias.asname else name
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            for alias in statement.names:
                self._bound[alias.asname or alias.name] = f"{statement.module}.{alias.name}"

    def qualified(self, expression: ast.expr) -> str:
        """The dotted name that a name or attribute chain stands for, "" for any other expression.

        A name that no import binds stands for itself: a builtin, or something of the module's own.
        """
        if isinstance(expression, ast.Name):
            return self._bound.get(expression.id, expression.id)
        if isinstance(expression, ast.Attribute):
            base = self.qualified(expression.value)
            return f"{base}.{expression.attr}" if base else ""
        return ""


def root_of(chain: ast.expr) -> ast.expr:
    """What a chain of attributes and subscripts begins with."""
    while isinstance(chain, (ast.Attribute, ast.Subscript)):
        chain = chain.value
    return chain


def root_name(chain: ast.expr) -> str:
    """The name that such a chain begins with, "" where it begins with something else."""
    root = root_of(chain)
    return root.id if isinstance(root, ast.Name) else ""


def walk(*roots: ast.AST) -> Iterator[ast.AST]:
    """Every node below `roots`, themselves included, in no order, but for contexts and operators.

    Much of the time of rewriting goes by here.  Three times as fast as `ast.walk`, which builds a tuple for each field.
    """
    stack: list[ast.AST] = list(roots)
    while stack:
        node = stack.pop()
        yield node
        for name in _PARTS[node.__class__]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                stack += filter(None, value)  # `None` stands for the key of ``**`` and for a default that is missing
            elif isinstance(value, ast.AST):
                stack.append(value)


def enclosed_in(root: ast.AST) -> frozenset[int]:
    """The identities of the expressions below `root` that stand in comprehensions and lambdas."""
    return frozenset(id(part) for node in walk(root) if isinstance(node, _SCOPES) for part in walk(node))


def unpacks(call: ast.Call) -> bool:
    """Has the call ``*args`` or ``**kwargs``?"""
    return any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords)


class _Parts(dict[type[ast.AST], tuple[str, ...]]):
    """By kind of node: the fields that may hold nodes to look at."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = self[kind] = tuple(name for name in kind._fields if name not in _HOLDING_NO_NODE)
        return fields


_HOLDING_NO_NODE = frozenset({"arg", "attr", "ctx", "id", "kwd_attrs", "op", "ops", "type_comment"})
_PARTS = _Parts({ast.Constant: (), ast.Global: (), ast.Nonlocal: ()})


@dataclass(frozen=True)
class NamesIn:
    """The names that a piece of code, nested functions included, reads, binds, and takes as attributes.

    bound: by assignment and its kin; defined: by imports, definitions, handlers and patterns.
    """

    read: frozenset[str]
    bound: frozenset[str]
    attributes: frozenset[str]
    defined: frozenset[str] = frozenset()

    @classmethod
    def code(cls, *roots: ast.AST) -> NamesIn:
        read: set[str] = set()
        bound: set[str] = set()
        attributes: set[str] = set()
        defined: set[str] = set()
        for node in walk(*roots):
            kind = node.__class__
            if kind is ast.Name:
                (read if node.ctx.__class__ is ast.Load else bound).add(node.id)  # type: ignore[attr-defined]
            elif kind is ast.Attribute:
                attributes.add(node.attr)  # type: ignore[attr-defined]
            elif kind is ast.arg:
                bound.add(node.arg)  # type: ignore[attr-defined]
            elif kind is ast.alias:
                defined.add(node.asname or node.name.partition(".")[0])  # type: ignore[attr-defined]
            elif kind in _DEFINING and isinstance(name := getattr(node, _DEFINING[kind]), str):
                defined.add(name)
        return cls(frozenset(read), frozenset(bound), frozenset(attributes), frozenset(defined))


class _Scoped(ast.NodeTransformer):
    """Each comprehension as a generator: since Python 3.12 only that has a symbol table of its own."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.ListComp(element, generators) | ast.SetComp(element, generators):
                return ast.GeneratorExp(element, generators)
            case ast.DictComp(key, value, generators):
                return ast.GeneratorExp(ast.Tuple([key, value], ast.Load()), generators)
        return node


def free_names(node: ast.expr) -> frozenset[str]:
    """The names that a lambda or a comprehension reads of what is around it."""
    names = NamesIn.code(node)
    if names.read.isdisjoint(names.bound):
        return names.read
    scoped = _Scoped().visit(ast.parse(ast.unparse(node), mode="eval"))
    tables, found = [symtable.symtable(ast.unparse(scoped), "", "eval")], set[str]()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        found |= {each.get_name() for each in table.get_symbols() if each.is_global() and each.is_referenced()}
    return frozenset(found)


def item_of(node: ast.AST, method: str = "item") -> ast.expr | None:
    """The `x` in ``x.item()``; None for any other expression."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=called), args=[], keywords=[]) if called == method:
            return owner
    return None
