"""What may be a tensor though nothing says so, and nothing speaks against it either.

A comparison of such values may be a branch on data (``if t == t0``), so it is asked while tracing.  What certainly is
none is left out: it would only cost.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import cached_property

from .names import root_name, walk

# Attributes and calls that give no tensor, whatever they are asked of.
_PLAIN_ATTRIBUTES = frozenset(
    {
        *("__class__", "__name__", "config", "device", "dtype", "is_cuda", "itemsize", "layout", "ndim"),
        *("requires_grad", "shape", "training", "type"),
    }
)
_PLAIN_METHODS = frozenset(
    {
        *("count", "dim", "element_size", "endswith", "get", "index", "item", "items", "keys", "lower", "ndimension"),
        *("numel", "size", "split", "startswith", "storage_offset", "stride", "strip", "tolist", "upper"),
    }
)
_PLAIN_FUNCTIONS = frozenset(
    {
        *("bool", "callable", "dir", "enumerate", "float", "format", "getattr", "hasattr", "id", "int", "isinstance"),
        *("issubclass", "len", "ord", "range", "repr", "round", "str", "type", "version.parse"),
    }
)
TORCH = "torch."  # how a name of the tensor library begins
STRANGERS = ("math.", "numpy.", "np.", "tf.", "tensorflow.", "jax.", "jnp.")  # with functions of the same names
_OF_NUMBERS = ("isfinite", "isinf", "isnan")
OF_NUMBERS = frozenset(f"math.{name}" for name in _OF_NUMBERS)  # that may be asked of a tensor, too
# Nobody asks this of a number that is written in the program.
_OF_DATA = OF_NUMBERS | {f"numpy.{name}" for name in _OF_NUMBERS}
_CONFIGURATION = re.compile(r"(?:.*_)?(?:args|cfg|conf|config|kwargs|options|opts)")
# Names that by custom stand for a number, or text, of Python.
_NUMBER = re.compile(
    r"(?:num|n|nb|max|min)_.*|(?:.*_)?(?:(?:dim|size|len|length|idx|index|id|step|head|layer|channel|group)s?|height"
    r"|width|format|level|name|mode|ratio|depth|rank|stride|factor|seq_?len)|[ijk]|idx|ndim"
)
COMPARED = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OPERATED = (
    *(ast.BinOp, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Subscript, ast.Call, ast.NamedExpr),
    *(ast.List, ast.Tuple),
)


class Unknown:
    """The names and expressions of one function that may be tensors for all that its text says.

    node: the function; bindings: pairs of a name and what is assigned to it, or what it is an item of.
    is_tensor: is an expression known to be one?  qualified: the dotted name of an expression, "" if it has none.
    """

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        bindings: Iterable[tuple[str, ast.expr]],
        is_tensor: Callable[[ast.expr], bool],
        qualified: Callable[[ast.expr], str],
    ) -> None:
        self._node, self._bindings = node, bindings
        self._is_tensor, self._qualified = is_tensor, qualified

    def compares(self, node: ast.Compare) -> bool:
        """Does it compare what may be a tensor with what a tensor may be compared with?"""
        operands = (node.left, *node.comparators)
        if not all(isinstance(op, COMPARED) for op in node.ops) or not all(map(self._comparable, operands)):
            return False
        return any(map(self.holds, operands))

    def answers(self, call: ast.Call) -> bool:
        """Is it a function of the program's that is asked about what may be a tensor: ``if self.has_overflow(x)``?

        Or is a number asked whether it is one: ``if numpy.isnan(total)``.
        """
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        qualified = self._qualified(call.func)
        if not name or name in _PLAIN_METHODS or qualified in _PLAIN_FUNCTIONS:
            return False
        if qualified in _OF_DATA:
            return True
        is_of_library = qualified.startswith((TORCH, *STRANGERS))
        return not is_of_library and any(self.holds(each) or self._is_tensor(each) for each in _given(call))

    def makes_of_data(self, call: ast.Call) -> bool:
        """Is it such a function, and is it given what certainly is data?"""
        return self.answers(call) and any(map(self._is_tensor, _given(call)))

    def is_handed_in(self, name: str) -> bool:
        """Is it a parameter that each caller gives, of which nothing says what it is: ``if overflow``?"""
        return name in self._handed_in

    @cached_property
    def _handed_in(self) -> frozenset[str]:
        given = self._node.args
        positional = [*given.posonlyargs, *given.args]
        required = positional[: len(positional) - len(given.defaults)]
        required += [each for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None]
        return frozenset(
            each.arg
            for place, each in enumerate(required)
            if each.annotation is None and _says_no_number(each.arg) and (place or each.arg not in ("self", "cls"))
        )

    def looks_in(self, node: ast.Compare) -> bool:
        """Does it look for a number in what may be a tensor?"""
        return is_membership(node) and self._comparable(node.left) and self.holds(node.comparators[0])

    def _comparable(self, node: ast.expr) -> bool:
        """May a tensor be compared with it?"""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        if isinstance(node, ast.Attribute):
            return node.attr not in _PLAIN_ATTRIBUTES and not self._qualified(node).startswith(TORCH)
        return not isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr))

    def holds(self, node: ast.expr) -> bool:
        """May it be a tensor, or hold some?"""
        if isinstance(node, ast.Name):
            return node.id in self._names or self._is_tensor(node)
        if isinstance(node, ast.Attribute):
            root = root_name(node)
            return node.attr not in _PLAIN_ATTRIBUTES and not _CONFIGURATION.fullmatch(root) and self.holds(node.value)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value) or is_held_by_self(node.value)
        if isinstance(node, _OPERATED):
            return any(self.holds(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))
        return False

    def gives(self, node: ast.expr) -> bool:
        """May it be a tensor, or hold some; or is it what a part of the object gives (``self.dist.sample()``)?"""
        match node:
            case ast.Call(ast.Attribute(owner, method)) if method not in _PLAIN_METHODS and is_held_by_self(owner):
                return True
        return self.holds(node)

    def _called(self, call: ast.Call) -> bool:
        if self._qualified(call.func) in _PLAIN_FUNCTIONS:
            return False
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in _PLAIN_METHODS:
                return False
            if self.holds(call.func.value):
                return True
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        return any(map(self.holds, given))

    @cached_property
    def _names(self) -> frozenset[str]:
        names = self._parameters()
        self.__dict__["_names"] = names  # what is being computed is what the recursion asks for
        pending = [(target, value) for target, value in self._bindings if _says_no_number(target)]
        while True:
            rest = [(target, value) for target, value in pending if target not in names]
            pending = []
            for target, value in rest:
                if self.holds(value):
                    names.add(target)
                else:
                    pending.append((target, value))
            if len(pending) == len(rest):
                return frozenset(names)

    def _parameters(self) -> set[str]:
        """The parameters of which nothing says what they are, and those whose annotation speaks of tensors."""
        given = self._node.args
        positional = [*given.posonlyargs, *given.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
        pairs = [*zip(positional, [*defaults, *given.defaults], strict=True)]
        pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
        return {
            argument.arg
            for argument, default in pairs
            if argument.arg not in ("self", "cls") and _may_hold(argument, default)
        }


def _given(call: ast.Call) -> list[ast.expr]:
    """What the call is given, and what stands in lists and tuples of it."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    for each in given:
        given += each.elts if isinstance(each, (ast.List, ast.Tuple)) else ()
    return given


def is_membership(node: ast.Compare) -> bool:
    """Is it ``a in b`` or ``a not in b``, and no chain?"""
    return len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn))


def is_held_by_self(node: ast.expr) -> bool:
    """Is it an attribute of `self`, not of its configuration?  So are the tables of schedulers."""
    parts = ast.unparse(node).split(".") if isinstance(node, ast.Attribute) else []
    return parts[:1] == ["self"] and not any(map(_CONFIGURATION.fullmatch, parts))


def _says_no_number(name: str) -> bool:
    return not (_CONFIGURATION.fullmatch(name) or _NUMBER.fullmatch(name))


def _may_hold(argument: ast.arg, default: ast.expr | None) -> bool:
    is_number = isinstance(argument.annotation, ast.Name) and argument.annotation.id in ("int", "float")
    if argument.annotation is not None and not is_number:  # a step of a scheduler is said to be one, and is a tensor
        return any(
            getattr(part, "attr", "") == "Tensor" or getattr(part, "id", "") == "Tensor"
            for part in walk(argument.annotation)
        )
    says_nothing = default is None or (isinstance(default, ast.Constant) and default.value is None)
    return says_nothing and _says_no_number(argument.arg)
