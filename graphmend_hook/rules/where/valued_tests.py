"""Tests whose value is wanted: ``return not x.isnan().any()``, ``ok = (x > low).all() and (x < high).all()``.

A bool of Python's is read behind the graph, or as any other number.  Two tensors that ``and`` or ``or`` joins give a
third one: so it is where both are tensors () of bool, of which nobody can tell which one it was.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...source.names import walk
from ...source.scopes import ModuleScope, Place
from ...source.taint import Taint
from ..base import Declined
from ..shared.lower import Lowering
from ..value.questions import operands_of

_TRUTHS = ("all", "any", "torch.allclose", "torch.equal")


def keep_values(place: Place, scope: ModuleScope) -> None:
    """Keep what stands, while tracing, for each test of data in what the statement binds or returns."""
    scope.lowered |= _values_in(place, scope)


def _values_in(place: Place, scope: ModuleScope) -> Iterator[tuple[ast.expr, ast.expr]]:
    statement = place.statement
    value = statement.value if isinstance(statement, (ast.AnnAssign, ast.Assign, ast.Return)) else None
    if value is None:
        return
    tests = [*_tests_in(value, place, scope)]
    if not tests:  # nor is anything made for the statement: most have none
        return
    lowering = Lowering(place, scope)
    for test in tests:
        if lowering.taint(test) < Taint.MAYBE:
            continue
        try:
            if test is value and _is_made_anew(test, place, scope) and _is_only_asked(statement, place):
                yield test, lowering.test(test)
            elif lowering.gives_bool(test):
                yield test, lowering.truth_of(test)
            elif isinstance(test, ast.BoolOp):
                yield test, lowering.joined(test)
        except Declined:
            continue


def _tests_in(node: ast.expr | None, place: Place, scope: ModuleScope) -> Iterator[ast.expr]:
    """The tests in a value, and in what it is made of."""
    match node:
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            yield node
        case ast.Call(args=arguments, keywords=named):
            if _is_test(node, place, scope):
                yield node
                return
            for each in (*arguments, *(keyword.value for keyword in named)):
                yield from _tests_in(each, place, scope)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for each in parts:
                yield from _tests_in(each, place, scope)


def _is_test(node: ast.Call, place: Place, scope: ModuleScope) -> bool:
    """Does it give a truth, and is no number that is read, of which other questions ask?"""
    is_joined = len(node.args) == 1 and isinstance(node.args[0], (ast.BoolOp, ast.UnaryOp)) and not node.keywords
    return scope.names_one_of(node.func, (*_TRUTHS, *(("bool",) if is_joined else ())), place.function)


def _is_only_asked(statement: ast.stmt, place: Place) -> bool:
    """Does it bind a local name of which the function asks the truth alone?  Then that may be a tensor."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if len(targets) != 1 or not isinstance(targets[0], ast.Name) or targets[0].id in place.function.flow.captured:
        return False
    function, spelling = place.function.node, targets[0].id
    if place.function.reads_its_frame or any(_is_changed(spelling, node) for node in walk(function)):
        return False
    asked = {id(part) for node in walk(function) for test in _asked_in(node) for part in operands_of(test)}
    reads = [node for node in walk(function) if isinstance(node, ast.Name) and node.id == spelling]
    return all(id(node) in asked for node in reads if isinstance(node.ctx, ast.Load))


def _is_changed(spelling: str, node: ast.AST) -> bool:
    """Does the part of the program add to the name, or is it one of another function's?"""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return spelling in node.names
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == spelling


def _is_made_anew(test: ast.expr, place: Place, scope: ModuleScope) -> bool:
    """Is what traced code has for the test a tensor that nobody else has, whatever is written to later?"""
    match test:
        case ast.BoolOp(values=operands):
            return all(_is_made_anew(each, place, scope) for each in operands)
        case ast.UnaryOp(op=ast.Not()) | ast.Compare() | ast.Call(func=ast.Attribute(attr="all" | "any")):
            return True
        case ast.Call(func=function):
            return scope.names_one_of(function, _TRUTHS, place.function)
    return isinstance(test, ast.Attribute) and test.attr == "training"


def _asked_in(node: ast.AST) -> list[ast.expr]:
    """The expressions of which a part of the program asks the truth."""
    if isinstance(node, (ast.Assert, ast.If, ast.IfExp, ast.While)):
        return [node.test]
    return [node.operand] if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else []
