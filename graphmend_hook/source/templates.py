"""The one way to build AST: small source templates with named holes.

Names of the rewritten code cannot meet a name of the user's.  The injected global is not an identifier; it starts with
an underscore, so that ``import *`` skips it, and not with two, which a class body would mangle.  Locals may be
parameters, which have to be identifiers: they begin with a letter that no keyboard has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)
RUNTIME = "_@graphmend"  # the only injected global: the module graphmend_hook.runtime
_LOCALS = ("TARGET", "VALUES", "TEST", "OUTCOME", "THEN", "ELSE", "EFFECTS", "DELIVERY")
OWN = "gm\u01c3"  # how every local name of ours begins: a letter that no keyboard has
# The locals of a loop that data may end, before its line: has it, and the item that is at hand.
DONE, ITEM_AT_HAND = f"{OWN}done", f"{OWN}target"
_SPELLING = {"GM": RUNTIME} | {name: f"{OWN}{name.lower()}" for name in _LOCALS}
DELIVERY_ARGUMENTS = (_SPELLING["TARGET"], _SPELLING["VALUES"])
Filling = ast.AST | str | Sequence[ast.AST] | Sequence[str]
_OWN_NAME = re.compile(rf"{OWN}(\w+)")


class Template:
    """Statements with holes: an upper-case name stands for what `fill` puts there, or for a local name of ours."""

    def __init__(self, source: str) -> None:
        self._source = source

    def fill(self, at: ast.stmt | ast.expr, **holes: Filling) -> list[ast.stmt]:
        """A fresh copy with every hole filled, its own nodes placed where the statement `at` stands.

        holes: a node, or how a name is spelled; a list of those where the hole is an item of a list, as a statement is.
        """
        return _Filler(at, holes).items(self._body)

    @cached_property
    def _body(self) -> list[ast.stmt]:
        return ast.parse(self._source).body  # once: parsing takes five times as long as filling


def expression(source: str, at: ast.stmt | ast.expr, **holes: Filling) -> ast.expr:
    """The expression `source` with its holes filled, its own nodes placed where `at` stands."""
    statement = _template(source).fill(at, **holes)[0]
    assert isinstance(statement, ast.Expr)
    return statement.value


_template = cache(Template)


def replaced(node: Node, replacement: Callable[[ast.AST], ast.AST | None]) -> Node:
    """`node` with every part replaced for which `replacement` gives something; what holds no such part is shared."""
    found = replacement(node)
    if found is not None:
        return found  # type: ignore[return-value]
    fields: dict[str, object] = {}
    changed = False
    for field in node._fields:
        new = value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            new = replaced(value, replacement)
        elif isinstance(value, list):
            new = [replaced(item, replacement) if isinstance(item, ast.AST) else item for item in value]
            new = value if all(a is b for a, b in zip(new, value, strict=True)) else new
        changed |= new is not value
        fields[field] = new
    return ast.copy_location(type(node)(**fields), node) if changed else node


def name(spelling: str, at: ast.stmt | ast.expr, ctx: ast.expr_context | None = None) -> ast.Name:
    """The name `spelling` of the program or of ours, placed where `at` stands."""
    return _place(ast.Name(spelling, ctx or ast.Load()), at)


def constant(value: object, at: ast.stmt | ast.expr) -> ast.Constant:
    return _place(ast.Constant(value), at)  # type: ignore[arg-type]


class _Filler:
    """Copies nodes of a template, each placed where `at` stands, with the holes filled."""

    def __init__(self, at: ast.stmt | ast.expr, holes: dict[str, Filling]) -> None:
        self._at = at
        self._holes = holes

    def items(self, items: Iterable[ast.AST]) -> list[Any]:
        copies: list[Any] = []
        for item in items:
            named = item.value if isinstance(item, ast.Expr) else item
            spelled = _SPELLED.get(type(named))
            hole = self._holes.get(getattr(named, spelled)) if spelled else None
            if isinstance(hole, Sequence) and not isinstance(hole, str):
                copies += [self._copy(named, each) if isinstance(each, str) else each for each in hole]
            else:
                copies.append(hole if isinstance(hole, ast.stmt) else self._copy(item))
        return copies

    def _copy(self, node: ast.AST, spelling: str = "") -> Any:
        """A copy of `node`, with the name `spelling` if that is given."""
        spelled = _SPELLED.get(type(node))
        if spelled and not spelling:
            spelling = getattr(node, spelled)
            hole = self._holes.get(spelling, _SPELLING.get(spelling, spelling))
            if not isinstance(hole, str):
                return hole
            spelling = hole
        if not (node._fields or node._attributes):  # contexts and operators, of which the parser too has one for all
            return node
        fields: dict[str, object] = {}
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                value = self.items(value)
            elif isinstance(value, ast.AST):
                value = self._copy(value)
            fields[field] = value
        if spelled:
            fields[spelled] = spelling
        copied = type(node)(**fields)
        return _place(copied, self._at) if node._attributes else copied


# The field that holds a name which templates may spell in capitals.
_SPELLED: dict[type[ast.AST], str] = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name"}


def _place(node: Node, at: ast.stmt | ast.expr) -> Node:
    """Put a node of ours on the first line of `at`.

    With its last line too, the line events of a statement of several lines would differ from the original's.
    """
    node.lineno = node.end_lineno = at.lineno  # type: ignore[attr-defined]
    node.col_offset = node.end_col_offset = at.col_offset  # type: ignore[attr-defined]
    return node


def runtime_import(at: ast.stmt) -> ast.stmt:
    """``import graphmend_hook.runtime as _@graphmend``, placed where `at` stands."""
    node = ast.Import([ast.alias("graphmend_hook.runtime", RUNTIME)])
    _place(node.names[0], at)
    return _place(node, at)


def readable(text: str) -> str:
    """The code `text` with our names as the manual pages of the rules spell them: GM, TEST, THEN."""
    return _OWN_NAME.sub(_spelled_out, text).replace(RUNTIME, "GM")


def _spelled_out(found: re.Match[str]) -> str:
    spelling = re.sub(rf"(?:{OWN}\d\d)+", "_", found[1]).strip("_").upper()  # attributes: rules.shared.side
    return f"GM_{spelling}" if spelling[0].isdigit() else spelling
