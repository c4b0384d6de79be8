"""Splits an argument into leaf values, read at the call, and text formatting, done at delivery.

Formatting runs the ``__format__`` of the leaves; `defer.traced` admits only values whose text cannot change between
the two moments.
"""

from __future__ import annotations

import ast
import re
import string
from typing import TypeGuard

from ...source.names import item_of, unpacks
from ...source.templates import expression
from ...source.tensor_ops import METADATA
from .known_calls import QUIET_CALLS

_READING_FIELD = re.compile(r"\{\w*[.\[]")  # of a format: an attribute, or an item
_DESCRIBING = METADATA | {"device", "dtype", "ndim", "shape"}


class Leaves:
    """Collects the leaves of one call, in the order in which they are evaluated.

    `split` gives an expression with every leaf replaced by its place in the collected values.
    """

    def __init__(self) -> None:
        self.found: list[ast.expr] = []
        self.formatted: list[bool] = []  # of each, whether the text has what its ``__format__`` gives
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

    def split_keyword(self, keyword: ast.keyword, formatted: bool = False) -> ast.keyword:
        if keyword.arg is None:
            items = ast.copy_location(ast.Dict([None], [keyword.value]), keyword)
            return ast.copy_location(ast.keyword(None, self._leaf(items)), keyword)
        return ast.copy_location(ast.keyword(keyword.arg, self.split(keyword.value, formatted)), keyword)

    def split(self, node: ast.expr, formatted: bool = False) -> ast.expr:
        if self._first_text is None and not isinstance(node, ast.Constant) and _is_text(node):
            self._first_text = len(self.found)
        if isinstance(node, ast.JoinedStr):
            return ast.copy_location(ast.JoinedStr([self._split_part(part) for part in node.values]), node)
        if isinstance(node, ast.BinOp) and _is_text(node):
            left = self.split(node.left)
            right = self._split_operand(node.right) if isinstance(node.op, ast.Mod) else self.split(node.right)
            return ast.copy_location(ast.BinOp(left, node.op, right), node)
        if _is_format_call(node):
            is_formatted = not _converts(node.func)
            arguments = [self.split(argument, is_formatted) for argument in node.args]
            keywords = [self.split_keyword(keyword, is_formatted) for keyword in node.keywords]
            return ast.copy_location(ast.Call(node.func, arguments, keywords), node)
        return self._leaf(node, formatted)

    def _split_operand(self, node: ast.expr) -> ast.expr:
        """The right side of ``"..." % node``: a tuple that is written out falls into its items."""
        if isinstance(node, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in node.elts):
            return ast.copy_location(ast.Tuple([self.split(item) for item in node.elts], ast.Load()), node)
        return self._leaf(node)

    def _split_part(self, part: ast.expr) -> ast.expr:
        if not isinstance(part, ast.FormattedValue):
            return part
        value = self._leaf(part.value, part.conversion == -1)
        spec = part.format_spec and self.split(part.format_spec)
        return ast.copy_location(ast.FormattedValue(value, part.conversion, spec), part)

    def _leaf(self, node: ast.expr, formatted: bool = False) -> ast.expr:
        if isinstance(node, ast.Constant):
            return node
        self.found.append(node)
        self.formatted.append(formatted and not _is_no_tensor(node))
        return expression(f"VALUES[{len(self.found) - 1}]", node)


def _converts(format_: ast.expr) -> bool:
    """Does ``"...".format`` convert one of its values, as ``"{!r}"`` does?"""
    assert isinstance(format_, ast.Attribute)
    text = ast.literal_eval(format_.value)
    try:
        return any(conversion for *_, conversion in string.Formatter().parse(text))
    except ValueError:  # it is no format
        return True


def _is_no_tensor(node: ast.expr) -> bool:
    """Is it something else for certain, by its form?  Then the trace need not look."""
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
