"""Where names of a function are bound and where they are needed: definite assignment and liveness, per statement."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .names import DEFINITIONS, NamesIn, free_names, walk

Names = frozenset[str]
_NONE: Names = frozenset()
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_TRY = (ast.Try, getattr(ast, "TryStar", ast.Try))  # ``except*`` came with Python 3.11


@dataclass(frozen=True)
class _Exits:
    """The names that are needed where control leaves a block early: at ``break``, at ``continue``, in a handler."""

    at_break: Names = _NONE
    at_continue: Names = _NONE
    in_handler: Names = _NONE


class Flow:
    """The answers for one function.

    `bound_before` holds the names that are certainly bound when control reaches a statement, `needed_after` those that
    may be read, before they are bound again, once it has passed it.  Both err on the safe side.
    """

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bound: dict[int, Names] = {}
        self._needed: dict[int, Names] = {}
        self._unbinds = bool(_deleted(node))
        self._unsure = _NONE  # names that may be unbound behind what may have swallowed an exception
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        self._forward(node.body, frozenset(argument.arg for argument in arguments if argument))
        self.captured = _captured(node)
        self._backward(node.body, _NONE, _Exits())

    def bound_before(self, statement: ast.stmt) -> Names:
        return self._bound.get(id(statement), _NONE)

    def bound_in_sides(self, statement: ast.stmt) -> Names:
        """The same where control reaches a side of the `if`, whose test has been evaluated."""
        return self.bound_before(statement) | self._read_by(statement)

    def needed_after(self, statement: ast.stmt) -> Names:
        return self._needed.get(id(statement), _NONE) | self.captured

    def _deleted(self, statement: ast.stmt) -> Names:
        return _deleted(statement) if self._unbinds else _NONE  # hardly any function unbinds a name

    def _forward(self, block: Sequence[ast.stmt], bound: Names | None) -> Names | None:
        """The names bound at the end of `block`, None where control does not get there."""
        for statement in block:
            if bound is None:
                return None
            self._bound[id(statement)] = bound
            bound = self._after(statement, bound | self._read_by(statement) if self._unsure else bound)
        return bound

    def _read_by(self, statement: ast.stmt) -> Names:
        """The names that may have been unbound, and are bound once the statement, or its test, has been evaluated."""
        node: ast.expr | None = None
        if isinstance(statement, (ast.If, *_SIMPLE)):
            node = statement.test if isinstance(statement, ast.If) else statement.value
        return self._unsure & _read_for_certain(node) if node is not None else _NONE

    def _after(self, statement: ast.stmt, bound: Names) -> Names | None:
        if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        if isinstance(statement, ast.If):
            return _both(self._forward(statement.body, bound), self._forward(statement.orelse, bound))
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            target = _NONE if isinstance(statement, ast.While) else NamesIn.code(statement.target).bound
            bound -= self._deleted(statement)
            self._forward(statement.body, bound | target)
            self._forward(statement.orelse, bound)
            return bound
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            names = NamesIn.code(*(item.optional_vars for item in statement.items if item.optional_vars))
            end = self._forward(statement.body, bound | names.bound)
            if end is not None and _keeps_exceptions(statement):
                return end
            self._unsure |= end or _NONE
            return _both(end, bound - self._deleted(statement))  # control may come from anywhere in the body
        if isinstance(statement, _TRY):
            return self._after_try(statement, bound)
        if isinstance(statement, ast.Match):
            after: Names | None = bound
            for case in statement.cases:
                after = _both(after, self._forward(case.body, bound))
            return after
        if isinstance(statement, ast.Delete):
            return bound - {target.id for target in statement.targets if isinstance(target, ast.Name)}
        return bound | _binds(statement)

    def _after_try(self, statement: ast.Try, bound: Names) -> Names | None:
        end = self._forward([*statement.body, *statement.orelse], bound)
        bound -= self._deleted(statement)
        for handler in statement.handlers:
            named = frozenset({handler.name}) if handler.name else _NONE
            handled = self._forward(handler.body, bound | named)
            end = _both(end, None if handled is None else handled - named)
        final = self._forward(statement.finalbody, bound)
        if final is None or end is None:
            return None
        return end - frozenset().union(*map(self._deleted, statement.finalbody)) | final

    def _backward(self, block: Sequence[ast.stmt], needed: Names, exits: _Exits) -> Names:
        """The names needed at the start of `block` if those in `needed` are at its end."""
        for statement in reversed(block):
            needed |= exits.in_handler
            self._needed[id(statement)] = needed
            needed = self._before(statement, needed, exits) | exits.in_handler
        return needed

    def _before(self, statement: ast.stmt, needed: Names, exits: _Exits) -> Names:
        if isinstance(statement, (ast.Return, ast.Raise)):
            return NamesIn.code(statement).read
        if isinstance(statement, ast.Break):
            return exits.at_break
        if isinstance(statement, ast.Continue):
            return exits.at_continue
        if isinstance(statement, ast.If):
            sides = self._backward(statement.body, needed, exits) | self._backward(statement.orelse, needed, exits)
            return sides | NamesIn.code(statement.test).read
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            return self._before_loop(statement, needed, exits)
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            caught = _NONE if _keeps_exceptions(statement) else needed
            inside = _Exits(exits.at_break, exits.at_continue, exits.in_handler | caught)
            return self._backward(statement.body, needed, inside) | NamesIn.code(*statement.items).read
        if isinstance(statement, _TRY):
            return self._before_try(statement, needed, exits)
        if isinstance(statement, ast.Match):
            cases = frozenset().union(*(self._backward(case.body, needed, exits) for case in statement.cases))
            tests = [case.pattern for case in statement.cases], [case.guard for case in statement.cases if case.guard]
            return needed | cases | NamesIn.code(statement.subject, *tests[0], *tests[1]).read
        used = NamesIn.code(statement).read | self._deleted(statement)
        if isinstance(statement, ast.AugAssign):
            used |= _stored(statement.target)
        return (needed - _binds(statement)) | used

    def _before_loop(self, loop: ast.For | ast.AsyncFor | ast.While, needed: Names, exits: _Exits) -> Names:
        if isinstance(loop, ast.While):
            test, target, source = NamesIn.code(loop.test).read, _NONE, _NONE
        else:
            test, target = NamesIn.code(loop.target).read, NamesIn.code(loop.target).bound
            source = NamesIn.code(loop.iter).read
        head = self._backward(loop.orelse, needed, exits) | test
        while True:
            inside = _Exits(needed, head, exits.in_handler)
            grown = head | (self._backward(loop.body, head, inside) - target)
            if grown == head:
                return head | source
            head = grown

    def _before_try(self, statement: ast.Try, needed: Names, exits: _Exits) -> Names:
        after = self._backward(statement.finalbody, needed | exits.at_break | exits.at_continue, exits)
        leaving = _Exits(exits.at_break | after, exits.at_continue | after, exits.in_handler | after)
        handlers = [self._backward(handler.body, after, leaving) for handler in statement.handlers]
        types = [handler.type for handler in statement.handlers if handler.type]
        # Control may go from any statement to a handler or to the final block, and early exits pass the latter.
        caught = frozenset().union(exits.in_handler, after, NamesIn.code(*types).read, *handlers)
        inside = _Exits(exits.at_break | after, exits.at_continue | after, caught)
        return self._backward([*statement.body, *statement.orelse], after, inside)


def _both(left: Names | None, right: Names | None) -> Names | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _binds(statement: ast.stmt) -> Names:
    """The local names that a simple statement or a definition certainly binds."""
    if isinstance(statement, DEFINITIONS):
        return frozenset({statement.name})
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return frozenset((alias.asname or alias.name.partition(".")[0]) for alias in statement.names)
    targets: Sequence[ast.expr] = ()
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign) or (isinstance(statement, ast.AnnAssign) and statement.value):
        targets = (statement.target,)
    return frozenset().union(*(_stored(target) for target in targets))


def _stored(target: ast.expr) -> Names:
    if isinstance(target, ast.Name):
        return frozenset({target.id})
    if isinstance(target, (ast.Tuple, ast.List)):
        return frozenset().union(*(_stored(item) for item in target.elts))
    return _stored(target.value) if isinstance(target, ast.Starred) else _NONE


def _deleted(root: ast.stmt) -> Names:
    """The names that `root` may unbind, wherever in it."""
    found = set()
    for node in walk(root):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del):
            found.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return frozenset(found)


def _read_for_certain(node: ast.expr) -> Names:
    """The names that are read whatever an expression comes to: not those of what Python might not get to."""
    found: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        match part := waiting.pop():
            case ast.Name(ctx=ast.Load()):
                found.add(part.id)
            case ast.BoolOp():
                waiting.append(part.values[0])
            case ast.IfExp():
                waiting.append(part.test)
            case ast.Compare():
                waiting += (part.left, part.comparators[0])
            case ast.Lambda() | ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp():
                pass
            case _:
                waiting += ast.iter_child_nodes(part)
    return frozenset(found)


def _keeps_exceptions(statement: ast.With | ast.AsyncWith) -> bool:
    """Is every context manager one of torch's, by its spelling?  None of those swallows an exception."""
    calls = [getattr(item.context_expr, "func", item.context_expr) for item in statement.items]
    roots = [ast.unparse(call).partition(".")[0] for call in calls]
    return all(root == "torch" for root in roots)


def _captured(function: ast.AST) -> Names:
    """The names that functions, classes and generators inside `function` read: they may do so at any time."""
    inner: list[ast.AST] = []
    shared: set[str] = set()
    for node in walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            shared.update(node.names)
        elif isinstance(node, (ast.Lambda, ast.GeneratorExp)):
            shared |= free_names(node)
        elif isinstance(node, DEFINITIONS) and node is not function:
            inner.append(node)
    return NamesIn.code(*inner).read | shared
