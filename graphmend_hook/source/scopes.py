"""The statements of a module's functions, each with the function and the blocks around it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

from .flow import Flow
from .names import DEFINITIONS, Imports, NamesIn, root_name, walk
from .optout import first_line

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_MAKERS = frozenset(f"torch.{name}" for name in ("arange", "as_tensor", "empty", "full", "ones", "tensor", "zeros"))
_FRAME_OBJECTS = frozenset({"_getframe", "currentframe"})
_FRAME_READERS = frozenset({"locals", "vars", "dir", "exec", "eval"}) | _FRAME_OBJECTS


@dataclass
class Function:
    """One function: its node, its qualified name, and the function that contains it.

    statements: those in it, at any depth, without those of functions inside it.
    """

    node: FunctionNode
    qualname: str
    parent: Function | None = None
    statements: list[ast.stmt] = field(default_factory=list)

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def header(self) -> tuple[int, int]:
        """First and last line of decorators, ``def`` and arguments."""
        return first_line(self.node), max(self.node.lineno, first_line(self.node.body[0]) - 1)

    def attribute(self, spelling: str) -> str:
        """The attribute that ``owner.<spelling>`` means here: in a class, a private name has the name of the class."""
        if not spelling.startswith("__") or spelling.endswith("__"):
            return spelling
        parts = self.qualname.split(".")[:-1]
        while parts[-1:] == ["<locals>"]:  # behind it stands a function
            parts = parts[:-2]
        owner = parts[-1].lstrip("_") if parts else ""
        return f"_{owner}{spelling}" if owner else spelling

    @cached_property
    def names(self) -> NamesIn:
        return NamesIn.code(self.node)

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The names that mean something of the function's own in it, imports apart."""
        defined = self.names.defined - {self.node.name}
        if not defined:
            return self.names.bound
        imported = [node for node in walk(self.node) if isinstance(node, (ast.Import, ast.ImportFrom))]
        return self.names.bound | (defined - NamesIn.code(*imported).defined)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node of it stands in."""
        return {child: parent for parent in walk(self.node) for child in ast.iter_child_nodes(parent)}

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.node)

    @cached_property
    def is_generator(self) -> bool:
        return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in walk(self.node))

    @property
    def reads_its_frame(self) -> bool:
        """May it see its own local variables by name (``locals()``, ``exec``, frame objects)?"""
        return not (_FRAME_READERS.isdisjoint(self.names.read) and _FRAME_OBJECTS.isdisjoint(self.names.attributes))

    def lineage(self) -> Iterator[Function]:
        function: Function | None = self
        while function is not None:
            yield function
            function = function.parent


@dataclass
class Place:
    """A statement inside a function: ``block[index]``, and what there is around it.

    inside_try: a handler of the function could catch what the statement raises.
    inside: the statements of the function that contain this one, outermost first.
    """

    function: Function
    block: list[ast.stmt]
    index: int
    inside_try: bool
    inside: tuple[ast.stmt, ...] = ()
    statement: ast.stmt = field(init=False)

    def __post_init__(self) -> None:
        self.statement = self.block[self.index]  # every rule asks for it, and blocks are edited after all have


@dataclass
class ModuleScope:
    """A parsed module: its import bindings, and the places where a rule may act.

    lowered: tests of branches, joined by `and` or `or`, as traced code may evaluate them where a branch is declined.
    """

    tree: ast.Module
    source: bytes = b""
    imports: Imports = field(default_factory=Imports)
    places: list[Place] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)
    lowered: dict[ast.expr, ast.expr] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)  # what others have found out of functions, by their names

    def __post_init__(self) -> None:
        self._walk(self.tree.body, None, "", False, ())

    def may_hold(self, word: bytes, node: ast.stmt | ast.expr) -> bool:
        """Does the word stand on the lines of `node`?  Asked before a walk over it, which takes far longer."""
        first, last = node.lineno, node.end_lineno or node.lineno
        if last >= len(self._line_ends):
            return True  # a notebook's shell may have put statements into the tree
        return self.source.find(word, self._line_ends[first - 1], self._line_ends[last]) >= 0

    @cached_property
    def _line_ends(self) -> list[int]:
        """Where the lines end in the source; at first where the first one begins."""
        return list(accumulate(map(len, self.source.splitlines(keepends=True)), initial=0))

    @cached_property
    def _calls(self) -> dict[str, list[ast.Call]]:
        """The calls in the module of functions and of methods of `self`, by the bare name."""
        found: dict[str, list[ast.Call]] = {}
        for node in walk(self.tree):
            if isinstance(node, ast.Call):
                callee = node.func
                name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
                if name and (isinstance(callee, ast.Name) or root_name(callee) == "self"):
                    found.setdefault(name, []).append(node)
        return found

    def is_handed_buffer(self, function: Function, parameter: str) -> bool:
        """Does a call of the module give a buffer of `self`, or an item of one, for that parameter of `function`?"""
        if not self.buffers:
            return False
        arguments = [argument.arg for argument in function.node.args.args if argument.arg != "self"]
        for call in self._calls.get(function.node.name, ()):
            given = {keyword.arg: keyword.value for keyword in call.keywords} | dict(
                zip(arguments, call.args, strict=False)
            )
            root = given.get(parameter)
            while isinstance(root, ast.Subscript):
                root = root.value
            if root is not None and self.is_buffer(root):
                return True
        return False

    def is_buffer(self, node: ast.expr) -> bool:
        """Is it an attribute of `self` that a class of the module sets to a buffer, or to a new tensor?"""
        return isinstance(node, ast.Attribute) and node.attr in self.buffers and root_name(node) == "self"

    @cached_property
    def buffers(self) -> frozenset[str]:
        """The attributes that a class of the module sets to a buffer, or to a new tensor."""
        found: set[str] = set()
        if not any(word in self.source for word in (b"Buffer", b"register_buffer", b"= torch.")):
            return frozenset(found)
        for place in self.places:
            pairs: list[tuple[ast.expr, ast.expr | None]] = []
            match place.statement:
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                    pairs = [*zip(targets, values, strict=True)]
                case ast.Assign(targets, value):
                    pairs = [(target, value) for target in targets]
                case ast.AnnAssign(target, _, value):
                    pairs = [(target, value)]
                case ast.Expr(ast.Call(ast.Attribute(attr="register_buffer"), [ast.Constant(str(name)), *_])):
                    found.add(name)
                    continue
                case _:
                    continue
            found |= {
                target.attr for target, value in pairs if isinstance(target, ast.Attribute) and self._makes(value)
            }
        return frozenset(found)

    @cached_property
    def assigned(self) -> dict[str, list[tuple[Function, ast.expr]]]:
        """What the functions of the module assign to attributes, by the attribute's name."""
        found: dict[str, list[tuple[Function, ast.expr]]] = {}
        for place in self.places:
            if isinstance(place.statement, ast.Assign):
                for target in place.statement.targets:
                    if isinstance(target, ast.Attribute):
                        found.setdefault(target.attr, []).append((place.function, place.statement.value))
        return found

    @cached_property
    def inherited(self) -> dict[str, Function]:
        """The methods of which one class of the module alone has one of that name, by the name."""
        found: dict[str, list[Function]] = {}
        for qualname, function in self.functions.items():
            if qualname.count(".") == 1:
                found.setdefault(function.node.name, []).append(function)
        return {name: functions[0] for name, functions in found.items() if len(functions) == 1}

    def _makes(self, value: ast.expr | None) -> bool:
        """Is it a call that makes a tensor, or a buffer?"""
        made = self.imports.qualified(value.func) if isinstance(value, ast.Call) else ""
        return made in _MAKERS or made.endswith(("nn.Buffer", "nn.parameter.Buffer"))

    def bound_outside(self, function: Function) -> frozenset[str]:
        """The names that the function declares ``global`` or ``nonlocal``, and that are bound whenever it runs."""
        found: set[str] = set()
        for statement in function.statements:
            if isinstance(statement, ast.Global):
                found |= self._always_bound.intersection(statement.names)
            elif isinstance(statement, ast.Nonlocal):
                inner = function
                for outer in [*function.lineage()][1:]:
                    found |= outer.flow.bound_before(inner.node).intersection(statement.names)
                    inner = outer
        return frozenset(found)

    @cached_property
    def _always_bound(self) -> frozenset[str]:
        """The names that the module assigns to for certain, and that nothing in it deletes."""
        assigned = [statement for statement in self.tree.body if isinstance(statement, (ast.Assign, ast.AnnAssign))]
        bound = NamesIn.code(*(each for each in assigned if each.value is not None)).bound
        deleted = [node for node in walk(self.tree) if isinstance(node, ast.Delete)]
        return bound - {root_name(target) for node in deleted for target in node.targets}

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of the module whose values may change while it is in use: bound again, written to, or called on."""
        module = [statement for statement in self.tree.body if not isinstance(statement, DEFINITIONS)]
        stores = Counter(
            node.id for node in walk(*module) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
        )
        changed = {name for name, times in stores.items() if times > 1}
        for node in walk(self.tree):
            if isinstance(node, ast.Global):
                changed.update(node.names)
            elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
                changed.add(root_name(node))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                changed.add(root_name(node.func))
        return frozenset(changed & stores.keys())

    @cached_property
    def _own_names(self) -> frozenset[str]:
        defined = {statement.name for statement in self.tree.body if isinstance(statement, DEFINITIONS)}
        return NamesIn.code(*(s for s in self.tree.body if not isinstance(s, DEFINITIONS))).bound | defined

    def names_one_of(self, expression: ast.expr, known: Container[str], function: Function) -> bool:
        """Does a name or attribute chain in `function` stand for one of the dotted names `known`?

        A name that nothing in the module binds stands for itself: a builtin.  The bindings are looked at last, and only
        for a name that is spelled right: it takes a walk over the function.
        """
        if self.imports.qualified(expression) not in known:
            return False
        return root_name(expression) not in self._own_names and not self.is_local(expression, function)

    @staticmethod
    def is_local(expression: ast.expr, function: Function) -> bool:
        """Does a name or attribute chain begin with a name of `function`'s own, or of one around it?"""
        name = root_name(expression)
        return any(name in outer.hidden for outer in function.lineage())

    def _walk(
        self,
        block: list[ast.stmt],
        function: Function | None,
        prefix: str,
        inside_try: bool,
        inside: tuple[ast.stmt, ...],
    ) -> None:
        for index, statement in enumerate(block):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = Function(statement, prefix + statement.name, function)
                self.functions[inner.qualname] = inner
                self._walk(statement.body, inner, f"{inner.qualname}.<locals>.", False, ())
            elif isinstance(statement, ast.ClassDef):
                # Statements of a class body run once, at import; its functions are what may be traced.
                self._walk(statement.body, None, f"{prefix}{statement.name}.", False, ())
            else:
                if function is not None:
                    self.places.append(Place(function, block, index, inside_try, inside))
                    function.statements.append(statement)
                self.imports.add(statement)
                if hasattr(statement, "body") or isinstance(statement, ast.Match):
                    for within, is_tried in _blocks(statement):
                        self._walk(within, function, prefix, inside_try or is_tried, (*inside, statement))


def _blocks(statement: ast.stmt) -> Iterator[tuple[list[ast.stmt], bool]]:
    """The blocks in a statement, each with whether a handler of the statement could catch what is raised there."""
    yield getattr(statement, "body", []), bool(getattr(statement, "handlers", None))
    for name in ("orelse", "finalbody"):
        yield getattr(statement, name, []), False
    for name in ("handlers", "cases"):
        for part in getattr(statement, name, ()):
            yield part.body, False
