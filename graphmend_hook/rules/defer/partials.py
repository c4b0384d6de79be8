"""Names that a module sets to a `functools.partial` of a function with an effect, or of a method of a logger."""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from ...source.names import walk
from ...source.scopes import ModuleScope
from .known_calls import FUNCTIONS, LOGGER_METHODS

_known: WeakKeyDictionary[ast.Module, frozenset[str]] = WeakKeyDictionary()


def of(scope: ModuleScope) -> frozenset[str]:
    """The names, wherever in the module they are set: what they stand for at a call is asked while tracing."""
    if scope.tree not in _known:
        _known[scope.tree] = _names(scope) if b"partial" in scope.source else frozenset()
    return _known[scope.tree]


def _names(scope: ModuleScope) -> frozenset[str]:
    found: set[str] = set()
    for node in walk(scope.tree):
        match node:
            case ast.Assign([ast.Name(name)], ast.Call(maker, [completed, *_])):
                if scope.imports.qualified(maker) == "functools.partial" and _has_effect(completed, scope):
                    found.add(name)
    return frozenset(found)


def _has_effect(completed: ast.expr, scope: ModuleScope) -> bool:
    if scope.imports.qualified(completed) in FUNCTIONS:
        return True
    return isinstance(completed, ast.Attribute) and completed.attr in LOGGER_METHODS
