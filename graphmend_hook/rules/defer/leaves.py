"""Splits an argument into leaf values, read at the call, and text formatting, done at delivery.

Formatting runs the ``__format__`` of the leaves; `defer.traced` admits only values whose text cannot change between
the two moments.
"""

from __future__ import annotations

import ast
import enum
import re
import string
from collections.abc import Collection
from typing import TypeGuard

from ...source.names import item_of, unpacks
from ...source.templates import expression
from ...source.tensor_ops import METADATA
from .known_calls import QUIET_CALLS

_READING_FIELD = re.compile(r"\{\w*[.\[]")  # of a format: an attribute, or an item
_CONVERSION = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?(?P<kind>[a-zA-Z]))")  # of ``"%.3f" % value``
_OF_NUMBERS = frozenset("diouxXeEfFgG")
_DESCRIBING = METADATA | {"device", "dtype", "ndim", "shape"}


class Shows(enum.Enum):
    """What the text that is made of a leaf shows of a tensor ()."""

    ALL = enum.auto()
    FORMATTED = enum.auto()  # its number: ``f"{loss:.3f}"``
    CONVERTED = enum.auto()  # the same, by ``"%.3f" % loss``, for which torch may warn


class Leaves:
    """Collects the leaves of one call, in the order in which they are evaluated, with what the text shows of each.

    `split` gives an expression with every leaf replaced by its place in the collected values.
    """

    def __init__(self) -> None:
        self.found: list[ast.expr] = []
        self.shows: list[Shows] = []
        self._first_text: int | None = None  # how many leaves there were before the first that is formatted

    @property
    def are_noisy_after_text(self) -> bool:
        """Does a leaf that is evaluated after some text was formatted call something that could change that text?"""
        return self._first_text is not None and any(_is_noisy(leaf) for leaf in self.found[self._first_text + 1 :])

    def split_argument(self, node: ast.expr) -> ast.expr:
        """An argument by position; what is unpacked is unpacked at the call, and its items are one leaf."""
        if not isinstance(node, ast.Starred):
            return self.split(node)
        items = ast.copy_location(ast.Tuple([node], ast.Load()), node)
        return ast.copy_location(ast.Starred(self._leaf(items), ast.Load()), node)

    def split_keyword(self, keyword: ast.keyword, shows: Shows = Shows.ALL) -> ast.keyword:
        if keyword.arg is None:
            items = ast.copy_location(ast.Dict([None], [keyword.value]), keyword)
            return ast.copy_location(ast.keyword(None, self._leaf(items)), keyword)
        return ast.copy_location(ast.keyword(keyword.arg, self.split(keyword.value, shows)), keyword)

    def split_message(self, arguments: list[ast.expr]) -> list[ast.expr]:
        """Arguments of which the first may be a literal in which `logging` puts the others: ``"loss %.3f", loss``."""
        message, others = arguments[:1], arguments[1:]
        shows = converted(message[0].value) if message and isinstance(message[0], ast.Constant) else ()
        if len(shows) != len(others) or any(isinstance(each, ast.Starred) for each in others):
            return [self.split_argument(each) for each in arguments]
        return [*map(self.split, message), *map(self.split, others, shows)]

    def split(self, node: ast.expr, shows: Shows = Shows.ALL) -> ast.expr:
        if self._first_text is None and not isinstance(node, ast.Constant) and _is_text(node):
            self._first_text = len(self.found)
        if isinstance(node, ast.JoinedStr):
            return ast.copy_location(ast.JoinedStr([self._split_part(part) for part in node.values]), node)
        if isinstance(node, ast.BinOp) and _is_text(node):
            left = self.split(node.left)
            right = self._split_operand(node) if isinstance(node.op, ast.Mod) else self.split(node.right)
            return ast.copy_location(ast.BinOp(left, node.op, right), node)
        if _is_format_call(node):
            of_fields = Shows.ALL if _converts(node.func) else Shows.FORMATTED
            arguments = [self.split(argument, of_fields) for argument in node.args]
            keywords = [self.split_keyword(keyword, of_fields) for keyword in node.keywords]
            return ast.copy_location(ast.Call(node.func, arguments, keywords), node)
        return self._leaf(node, shows)

    def _split_operand(self, text: ast.BinOp) -> ast.expr:
        """The right side of ``"..." % node``: a tuple that is written out falls into its items."""
        node, shows = text.right, converted(text.left.value) if isinstance(text.left, ast.Constant) else ()
        if not isinstance(node, ast.Tuple):
            return self._leaf(node, *shows) if len(shows) == 1 else self._leaf(node)
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return self._leaf(node)
        if len(shows) != len(node.elts):
            shows = [Shows.ALL] * len(node.elts)
        items = [self.split(item, each) for item, each in zip(node.elts, shows, strict=True)]
        return ast.copy_location(ast.Tuple(items, ast.Load()), node)

    def _split_part(self, part: ast.expr) -> ast.expr:
        if not isinstance(part, ast.FormattedValue):
            return part
        value = self._leaf(part.value, Shows.FORMATTED if part.conversion == -1 else Shows.ALL)
        spec = part.format_spec and self.split(part.format_spec)
        return ast.copy_location(ast.FormattedValue(value, part.conversion, spec), part)

    def _leaf(self, node: ast.expr, shows: Shows = Shows.ALL) -> ast.expr:
        if isinstance(node, ast.Constant):
            return node
        self.found.append(node)
        self.shows.append(Shows.ALL if _is_no_tensor(node) else shows)
        return expression(f"VALUES[{len(self.found) - 1}]", node)


def converted(message: object) -> Collection[Shows]:
    """What ``message % values`` shows of each of the values; nothing where that is not known."""
    if not isinstance(message, str) or "%" in _CONVERSION.sub("", message):
        return ()
    kinds = [found["kind"] for found in _CONVERSION.finditer(message) if found["kind"]]
    return [Shows.CONVERTED if kind in _OF_NUMBERS else Shows.ALL for kind in kinds]


def _converts(format_: ast.expr) -> bool:
    """Does ``"...".format`` convert one of its values, as ``"{!r}"`` does?"""
    assert isinstance(format_, ast.Attribute)
    text = ast.literal_eval(format_.value)
    try:
        return any(conversion for *_, conversion in string.Formatter().parse(text))
    except ValueError:  # it is no format
        return True


def _is_no_tensor(node: ast.expr) -> bool:
    """Is it something else for certain, by its form?"""
    match node:
        case ast.Attribute(attr=attribute):
            return attribute in _DESCRIBING
        case ast.Call(func=ast.Name(spelling)):
            return spelling in ("len", "repr", "str", "type")
        case ast.Call(func=ast.Attribute(attr=method)):
            return method in METADATA or item_of(node) is not None
    return False


def _is_noisy(leaf: ast.expr) -> bool:
    """Does it assign, suspend, or call what `QUIET_CALLS` does not list?"""
    for node in ast.walk(leaf):
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in QUIET_CALLS:
                return True
    return False


def _is_text(node: ast.expr) -> bool:
    """Is the expression a str for certain?"""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.BinOp):
        added = isinstance(node.op, ast.Add) and _is_text(node.right)
        return _is_text(node.left) and (added or isinstance(node.op, ast.Mod))
    return isinstance(node, ast.JoinedStr) or _is_format_call(node)


def _is_format_call(node: ast.expr) -> TypeGuard[ast.Call]:
    """``"...".format(a, b=c)`` on a literal that reads nothing of its values, with no unpacking."""
    match node:
        case ast.Call(ast.Attribute(ast.Constant(str(text)), "format")):
            return not unpacks(node) and not _READING_FIELD.search(text)
    return False
