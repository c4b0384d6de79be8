"""The arguments of a call that may say which caller it shows, and those that a wrapper gives on."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from ...source.names import unpacks, walk
from ...source.scopes import Function
from ...source.templates import constant
from .known_calls import FRAME_KEYWORDS

_LEVEL = 2  # the place of `stacklevel` in the arguments of `warnings.warn`


@dataclass(frozen=True)
class Shown:
    """The arguments over the leaf values, as code that is evaluated once more; None in the place of a text.

    keywords: of those that are written out, the ones that may matter.
    """

    positional: list[ast.expr]
    keywords: ast.Dict


def gives_on(call: ast.Call, function: Function) -> bool:
    """Does it unpack nothing but what Python makes of the function's own ``*args`` and ``**kwargs``?"""
    starred = [arg.value for arg in call.args if isinstance(arg, ast.Starred)]
    doubled = [keyword.value for keyword in call.keywords if keyword.arg is None]
    arguments = function.node.args
    return all(_is_plain(value, arguments.vararg, function) for value in starred) and all(
        _is_plain(value, arguments.kwarg, function) for value in doubled
    )


def _is_plain(value: ast.expr, parameter: ast.arg | None, function: Function) -> bool:
    if parameter is None or not isinstance(value, ast.Name) or value.id != parameter.arg:
        return False
    if value.id in function.names.defined:
        return False
    return not any(
        isinstance(node, ast.Name) and node.id == value.id and not isinstance(node.ctx, ast.Load)
        for node in walk(function.node)
    )


def is_of_interest(call: ast.Call, completes: bool, by_position: bool) -> bool:
    """Can the arguments say so?

    completes: the call is that of a `functools.partial`, which may say it.
    by_position: the function is none that is known to take no level by position.
    """
    if completes or unpacks(call) or (by_position and len(call.args) > _LEVEL):
        return True
    return any(keyword.arg in FRAME_KEYWORDS and not is_default(keyword) for keyword in call.keywords)


def is_default(keyword: ast.keyword) -> bool:
    """Has a keyword of `FRAME_KEYWORDS` the value that it has by default?"""
    value = keyword.value
    if not isinstance(value, ast.Constant):
        return False
    return value.value == 1 if keyword.arg == "stacklevel" else not value.value


def shown(at: ast.stmt, over_leaves: ast.Call) -> Shown:
    """What the call over leaf values may say."""
    keywords = [keyword for keyword in over_leaves.keywords if keyword.arg is None or keyword.arg in FRAME_KEYWORDS]
    return Shown(
        _again(over_leaves.args, at),
        ast.copy_location(
            ast.Dict(
                [keyword.arg and constant(keyword.arg, at) for keyword in keywords],  # type: ignore[misc]
                _again([keyword.value for keyword in keywords], at),
            ),
            at,
        ),
    )


def _again(values: Sequence[ast.expr], at: ast.stmt) -> list[ast.expr]:
    kinds = (ast.Constant, ast.Subscript, ast.Starred)  # a constant, a leaf, and leaves that are unpacked
    return [copy.deepcopy(value) if isinstance(value, kinds) else constant(None, at) for value in values]
