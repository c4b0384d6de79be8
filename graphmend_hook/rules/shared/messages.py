"""The exception that a guard raises, as a function of values that are read where the guard stands."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from ...source import tensor_ops
from ...source.names import NamesIn, walk
from ...source.templates import OWN, Template, expression, name, replaced
from ..base import Declined
from ..defer.known_calls import QUIET_CALLS
from ..defer.late import is_builtin_in, late
from .codes import BARE_RAISE, NOT_RAISED_LATER
from .speculated import Speculation

Leaf = Callable[..., ast.expr]  # makes a value of an effect or a guard of an expression
_DELIVERY = Template("def DELIVERY(TARGET, VALUES):\n    STATEMENT")
_METADATA = frozenset({"size", "dim", "numel", "stride", "element_size", "nelement"})
_SWALLOWED = frozenset({"AttributeError", "StopIteration", "StopAsyncIteration"})
_HEARD = (AttributeError, StopIteration, StopAsyncIteration, GeneratorExit, IndexError)
_UNHEARD = frozenset(
    spelling
    for spelling, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, _HEARD)
)
_SUSPENDING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def class_raised(statement: ast.stmt) -> ast.expr | None:
    """The class, or the instance, that a ``raise`` names."""
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    return raised.func if isinstance(raised, ast.Call) else raised


class Captures:
    """Replaces what a statement reads of the function's locals and the module's variables by values, kept in `leaves`.

    A value is the end of a chain of attributes and constant subscripts: nothing that could fail on data, or cost more
    than a look.  What is left, the message itself, is evaluated when the guard has failed.
    """

    def __init__(self, side: Speculation, leaf: Leaf, evaluated: ast.expr | None = None) -> None:
        self.leaves: list[ast.expr] = []
        self._side, self._made, self._scope, self._evaluated = side, leaf, side.lowering.scope, evaluated
        self._classes = {part.name for part in self._scope.tree.body if isinstance(part, ast.ClassDef)}
        self._inner: frozenset[str] = frozenset()
        self._is_builtin = is_builtin_in(side.lowering.place, self._scope)
        self._texts: dict[str, int] = {}

    def delivery_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The definition of DELIVERY, a function of the target and the values that executes `statement`.

        Raises Declined where a value cannot be read ahead of time.
        """
        if isinstance(statement, ast.Raise) and statement.exc is None:
            raise Declined(BARE_RAISE, "a bare `raise` has no exception of its own")
        spelling = getattr(class_raised(statement), "id", "")
        if spelling in _SWALLOWED:
            raise Declined(NOT_RAISED_LATER, f"Python itself may catch `{spelling}`, as `getattr` and loops do")
        if any(isinstance(node, _SUSPENDING) for node in walk(statement)):
            raise Declined(NOT_RAISED_LATER, "the exception's expression assigns or suspends")
        if "super" in NamesIn.code(statement).read:
            raise Declined(NOT_RAISED_LATER, "the exception's expression calls super()")
        self._inner = NamesIn.code(statement).bound
        self._check_globals(statement)
        return _DELIVERY.fill(statement, STATEMENT=replaced(statement, self._instead))

    def is_unheard(self, raised: ast.expr) -> bool:
        """Is it a builtin exception that Python itself never catches, or the name of none?"""
        if isinstance(raised, ast.Constant):
            return not raised.value
        return self._scope.names_one_of(raised, _UNHEARD, self._side.lowering.place.function)

    def _check_globals(self, statement: ast.stmt) -> None:
        """What the message reads of a class must be the same at the end of the graph, so must what it calls."""
        for node in walk(statement):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in self._classes:
                raise Declined(NOT_RAISED_LATER, f"the exception reads `{ast.unparse(node)}`, which may change")
            if isinstance(node, ast.Call) and not isinstance(statement, ast.Expr) and not self._is_steady(node.func):
                called = ast.unparse(node.func)
                raise Declined(NOT_RAISED_LATER, f"the exception calls `{called}`, which may read what changes")

    def _is_steady(self, callee: ast.expr) -> bool:
        """Is it a class, a builtin, a method that reads a value, or a function that reads no variable of the module?"""
        spelling = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        if spelling in QUIET_CALLS or spelling in tensor_ops.TENSOR_RESULT or spelling in tensor_ops.METADATA:
            return True
        if isinstance(callee, ast.Name) and (hasattr(builtins, spelling) or self._side.is_local(spelling)):
            return True
        if spelling in self._scope.functions:
            return self._reads_nothing(spelling, set())
        if spelling in self._classes:
            return self._makes_plainly(spelling, set())
        return spelling.lstrip("_")[:1].isupper()  # a class, as they are spelled

    def _makes_plainly(self, kind: str, seen: set[str]) -> bool:
        """Does an instance of the module's class say only what it is given?"""
        methods = {f"{kind}.{method}" for method in ("__new__", "__init__", "__str__")} & self._scope.functions.keys()
        return all(self._reads_nothing(method, seen) for method in methods)

    def _reads_nothing(self, qualname: str, seen: set[str]) -> bool:
        """Does the function of the module read no variable, and no attribute of a class, nor what it calls?"""
        function = self._scope.functions[qualname]
        if qualname in seen:
            return True
        seen.add(qualname)
        attributes = (node for node in walk(function.node) if isinstance(node, ast.Attribute))
        read = function.names.read
        return (
            read.isdisjoint(self._scope.variables)
            and not any(getattr(node.value, "id", "") in self._classes for node in attributes)
            and all(self._reads_nothing(name, seen) for name in read & self._scope.functions.keys())
            and all(self._makes_plainly(name, seen) for name in read & self._classes)
        )

    def _instead(self, node: ast.AST) -> ast.AST | None:
        """What stands in the place of a part of the statement, if it does not stay."""
        if not isinstance(node, ast.expr):
            return None
        if node is self._evaluated:
            test = name(f"{OWN}test", node)
            self._side.reads.add(test.id)
            self.leaves.append(test)
            return expression(f"VALUES[{len(self.leaves) - 1}]", node)
        if self._is_value(node):
            return self._leaf(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # looked up when it is called
            return replaced(node, lambda part: None if part in (node, node.func) else self._instead(part))
        return None

    def _is_value(self, node: ast.expr) -> bool:
        """Is it a chain that begins with a local or a global variable, its length, or the name of its class?"""
        match node:
            case ast.Call(func=ast.Name("len") as function, args=[owner], keywords=[]):
                return self._is_builtin(function) and self._is_value(owner)
            case ast.Attribute(value=ast.Call(func=ast.Name("type") as function, args=[owner], keywords=[])):
                return self._is_builtin(function) and self._is_value(owner)
            case ast.Name(spelling):
                is_read = self._side.is_local(spelling) or spelling in self._scope.variables
                return is_read and spelling not in self._inner
            case ast.Attribute(value=owner) | ast.Subscript(value=owner, slice=ast.Constant() | ast.UnaryOp()):
                return self._is_value(owner)
            case ast.Call(func=ast.Attribute(owner, method), args=arguments, keywords=[]) if method in _METADATA:
                return self._is_value(owner) and all(isinstance(argument, ast.Constant) for argument in arguments)
        return False

    def _leaf(self, node: ast.expr) -> ast.expr:
        text = ast.unparse(node)
        if text not in self._texts:
            self._texts[text] = len(self.leaves)
            self.leaves.append(self._made(node, late(node, self._is_builtin)))
        return expression(f"VALUES[{self._texts[text]}]", node)
