"""Does a function care which object a name holds?  ``torch.where`` gives a new tensor, even where nothing changed.

Where Dynamo traces, the trace judges that.  In non-strict export nothing sees what is written later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ...source.names import root_name, root_of, walk
from ...source.scopes import Place
from ...source.tensor_ops import INPLACE, OF_THE_OBJECT, SPECULABLE, VIEWS

_OF_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)  # a list and a dict find what is the same before what is equal
_LOOPS = (ast.For, ast.AsyncFor, ast.While)

# Attributes and methods of a tensor that may share its memory, and operations that never do.
_VIEWING = frozenset({"H", "T", "data", "imag", "mH", "mT", "real"})
_VIEWS = VIEWS | {"adjoint", "as_strided", "conj", "tensor_split", "unfold", "view_as_complex", "view_as_real"}
_NEW = SPECULABLE - VIEWS - INPLACE
_OF_OBJECTS = frozenset({"id", "hash", "vars", "setattr", "delattr"})  # builtins of which the same is true


def is_looked_at(place: Place, names: Iterable[str]) -> bool:
    """May one of `names`, or of their aliases, be written in place later, or looked at as an object?"""
    statement = place.statement
    aliases = _aliases(place, frozenset(names))
    last = statement.end_lineno or statement.lineno
    loops: list[ast.stmt] = [outer for outer in place.inside if isinstance(outer, _LOOPS)]
    for node in walk(place.function.node):
        if isinstance(node, (ast.expr, ast.stmt)) and (loops or node.lineno > last):
            for culprit in _touched(node):
                if culprit in aliases and not (node.lineno < statement.lineno and _is_made_anew(culprit, node, loops)):
                    return True
    return False


def _is_made_anew(name: str, node: ast.expr | ast.stmt, loops: list[ast.stmt]) -> bool:
    """Does each pass of the innermost loop bind the name to a tensor of its own before it comes to `node`?"""
    body = loops[-1].body if loops else []  # type: ignore[attr-defined]
    before = [statement for statement in body if (statement.end_lineno or statement.lineno) < node.lineno]
    if not any(statement.lineno <= node.lineno <= (statement.end_lineno or 0) for statement in body):
        return False
    bindings = [each for each in before if any(name in _bound(part) for part in walk(each))]
    match bindings[-1:]:
        case [ast.Assign([ast.Name()], value)]:
            return not {*_shared(value)}
    return False


def _bound(node: ast.AST) -> tuple[str, ...]:
    return (node.id,) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) else ()


def _aliases(place: Place, names: frozenset[str]) -> frozenset[str]:
    links = [link for node in walk(place.function.node) for link in _links(node) if link <= place.function.hidden]
    known = names
    while True:
        grown = known.union(*(link for link in links if link & known))
        if grown == known:
            return known
        known = grown


def _links(node: ast.AST) -> Iterator[frozenset[str]]:
    """The names that `node` may bind to one tensor, or to views of one."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _linked(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _linked(node.target, node.value)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        items = node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else [node.iter]
        for item in items:
            yield from _linked(node.target, item)


def _linked(target: ast.expr, value: ast.expr) -> Iterator[frozenset[str]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        values = [value] * len(target.elts)
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(values):
            values = value.elts
        for part, given in zip(target.elts, values, strict=True):
            yield from _linked(part, given)
    elif isinstance(target, ast.Starred):
        yield from _linked(target.value, value)
    elif isinstance(target, ast.Name):
        for source in _shared(value):
            yield frozenset((target.id, source))


def _shared(value: ast.expr) -> Iterator[str]:
    """The names whose memory may be that of what `value` gives; more of them than are names of tensors."""
    if isinstance(value, ast.Name):
        yield value.id
    elif isinstance(value, (ast.Attribute, ast.Subscript, ast.Starred, ast.NamedExpr)):
        if not isinstance(value, ast.Attribute) or value.attr in _VIEWING:
            yield from _shared(value.value)
    elif isinstance(value, ast.IfExp):
        yield from (*_shared(value.body), *_shared(value.orelse))
    elif isinstance(value, ast.BoolOp):
        for item in value.values:
            yield from _shared(item)
    elif isinstance(value, ast.Call):
        yield from _given(value)


def _given(call: ast.Call) -> Iterator[str]:
    """The names of what `call` may give back: one of its arguments, unless it is known to make a tensor of its own."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if function in _NEW:
        return
    if isinstance(call.func, ast.Attribute) and (function in _VIEWS or _writes(function)):
        yield from _shared(call.func.value)
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        for item in argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]:
            yield from _shared(item)


def _touched(node: ast.AST) -> Iterator[str]:
    """The names whose objects `node` writes to, or looks at as objects."""
    if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name):  # of a name the trace sees it
        yield from _reached(node.target)
    elif isinstance(node, (ast.Subscript, ast.Attribute)):
        if not isinstance(node.ctx, ast.Load) or (isinstance(node, ast.Attribute) and node.attr in OF_THE_OBJECT):
            yield from _reached(node.value)
    elif isinstance(node, ast.Call):
        for argument in _touched_by(node):
            yield from _reached(argument)
    elif isinstance(node, ast.Compare) and any(isinstance(op, _OF_IDENTITY) for op in node.ops):
        operands = [node.left, *node.comparators]
        if not any(map(_is_constant, operands)):
            for operand in operands:
                yield from _reached(operand)


def _touched_by(call: ast.Call) -> Iterator[ast.expr]:
    if isinstance(call.func, ast.Name) and call.func.id in _OF_OBJECTS:
        yield from call.args[:1]
    elif isinstance(call.func, ast.Attribute) and _writes(call.func.attr):
        yield from (call.func.value, *call.args[:1])
    for keyword in call.keywords:
        if keyword.arg == "out":
            yield keyword.value
        elif keyword.arg == "inplace":
            yield from call.args[:1]


def _is_constant(expression: ast.expr) -> bool:
    items = expression.elts if isinstance(expression, (ast.Tuple, ast.List, ast.Set)) else [expression]
    return all(isinstance(item, ast.Constant) for item in items)


def _reached(expression: ast.expr) -> Iterator[str]:
    """The names through which `expression` is reached, as an attribute or an item of them, or as a view."""
    yield from (root_name(expression), *_shared(root_of(expression)))


def _writes(function: str) -> bool:
    return function.endswith("_") and not function.endswith("__")
