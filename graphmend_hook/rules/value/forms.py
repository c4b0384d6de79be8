"""The forms of expressions that read a number out of a tensor, or whose shape its data decides, and what is asked."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TypeGuard

from ...source.scopes import Function, ModuleScope
from ...source.templates import expression, replaced
from ...source.unknown import TORCH

READS = {"item": "GM.item(A)", "tolist": "GM.tolist(A)"}  # methods, and what is asked in their place
ALONE = "GM.item(A, is_alone=True)"  # where it is used as a number alone
LOOPED_OVER = "GM.tolist(A, False)"  # in ``for number in x.tolist()``: each number would be one more to decide on
MOST_OPERANDS = 12  # of a question; each has a letter
OPERATORS = "torch.ops."  # how a name of one begins, torch's own among them
_PLACES = frozenset({"argwhere", "nonzero", "where"})
_DISTINCT = frozenset({"unique", "unique_consecutive"})
_DEFAULTS = {"dim": None, "sorted": True}  # of those
_SHAPED_BY_DATA = _PLACES | _DISTINCT | {"bincount", "masked_select", "one_hot", "repeat_interleave"}


@dataclass(frozen=True)
class Question:
    """What is asked in the place of an expression: a call of the runtime, which gives what is known while tracing.

    text: the call, with the names A, B, C and so on for `operands`, which are parts of the expression, or all of it.
    may_fail: it gives None where there is no answer; then the expression stands, over the operands at hand.
    """

    text: str
    operands: tuple[ast.expr, ...]
    may_fail: bool = False

    def asked(self, operands: Sequence[ast.expr], at: ast.expr) -> ast.expr:
        """The call of the runtime."""
        return expression(self.text, at, **dict(zip(ascii_uppercase, operands, strict=False)))

    def original(self, node: ast.expr, operands: Sequence[ast.expr]) -> ast.expr:
        """The expression, over operands that have been evaluated."""
        evaluated = {id(old): new for old, new in zip(self.operands, operands, strict=True)}
        return replaced(node, lambda part: evaluated.get(id(part)))


# What Dynamo does not trace, and is known while tracing; `tests/compiled/test_value.py` says on which torch it breaks.
CONSTANTS = {"torch.get_default_device": Question("GM.default_device()", (), may_fail=True)}
# They ask a tensor for its `__float__`, and Dynamo does not know that.
OF_FLOATS = frozenset(f"math.{name}" for name in ("ceil", "exp", "floor", "log", "log10", "log1p", "log2", "sqrt"))


def is_read(node: ast.expr) -> TypeGuard[ast.Call]:
    """Is it ``x.item()`` or ``x.tolist()``?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in READS
        and not node.args
        and not node.keywords
    )


def letters(count: int) -> str:
    """The names of that many operands of a question: ``A, B, C``."""
    return ", ".join(ascii_uppercase[:count])


def called(call: ast.Call, scope: ModuleScope, function: Function) -> tuple[str, bool]:
    """The name of the function of torch, or of the method, "" of any other call; and whether it is of torch."""
    qualified = scope.imports.qualified(call.func)
    if qualified.startswith(TORCH) and not scope.is_local(call.func, function):
        return qualified.rpartition(".")[2], True
    return getattr(call.func, "attr", ""), False


def lacking(call: ast.Call) -> Question | None:
    """What is asked in the place of a call of a function of Python that Dynamo does not trace."""
    match call:
        case ast.Call(ast.Name("pow"), [base, exponent], []) if not isinstance(base, ast.Starred):
            is_plain = not isinstance(exponent, ast.Starred)
            return Question("GM.power(A, B)", (base, exponent), may_fail=True) if is_plain else None
        case ast.Call(ast.Name("sorted"), [ast.Call(ast.Attribute(owner, "items"), [], [])], []):
            return Question("GM.sorted_items(A)", (owner,), may_fail=True)
    return None


def shaped_by_data(call: ast.Call, name: str, of_torch: bool) -> Question | None:
    """What is asked of ``nonzero`` and its kin, ``where`` of one tensor, ``unique``, ``bincount`` and the rest.

    name: that of the function of torch, or of the method.
    """
    if name not in _SHAPED_BY_DATA:
        return None
    options = {keyword.arg: keyword.value for keyword in call.keywords}
    operands = [*call.args]
    if not of_torch and isinstance(call.func, ast.Attribute):
        operands.insert(0, call.func.value)
    if not operands or None in options or any(isinstance(operand, ast.Starred) for operand in operands):
        return None
    if name == "repeat_interleave":
        return _repeated(operands, options, of_torch)
    if name == "bincount":
        return _counted(operands, options)
    if name == "one_hot":
        return _classes(operands, options) if of_torch else None
    if name == "masked_select":
        given = (*operands, *options.values())
        is_whole = len(given) == 2 and set(options) <= {"mask"}
        return Question("GM.masked(A, B)", given, may_fail=True) if is_whole else None
    if len(operands) > 1 or (name == "where" and not of_torch):
        return None
    if name in _PLACES:
        text, flags = "GM.nonzero(A, {})", [options.pop("as_tuple", ast.Constant(name == "where"))]
    else:
        text = f"GM.distinct(A, '{name}', {{}}, {{}})"
        flags = [options.pop(flag, ast.Constant(False)) for flag in ("return_inverse", "return_counts")]
        options = {option: value for option, value in options.items() if not _is_default(option, value)}
    known = [bool(flag.value) for flag in flags if isinstance(flag, ast.Constant)]
    if options or len(known) < len(flags):
        return None
    return Question(text.format(*known), (operands[0],), may_fail=True)


def operated(call: ast.Call) -> Question | None:
    """What is asked of an operator of `torch.ops`, whose own kernel for fake tensors says what decides its shape."""
    operands = (call.func, *call.args)
    if call.keywords or any(isinstance(operand, ast.Starred) for operand in operands) or len(operands) > MOST_OPERANDS:
        return None
    return Question(f"GM.operated({', '.join(ascii_uppercase[: len(operands)])})", operands, may_fail=True)


def _is_default(option: str | None, value: ast.expr) -> bool:
    """Is the option of ``unique`` written out with the value that it has anyway?"""
    return isinstance(value, ast.Constant) and option in _DEFAULTS and value.value is _DEFAULTS[option]


def _repeated(operands: list[ast.expr], options: dict[str | None, ast.expr], of_torch: bool) -> Question | None:
    given = (*operands, *options.values())
    if tuple(options) != ("repeats", "dim")[len(operands) - 1 :][: len(options)] or (len(given) == 1 and not of_torch):
        return None
    texts = {1: "GM.repeated(None, A)", 2: "GM.repeated(A, B)", 3: "GM.repeated(A, B, C)"}
    return Question(texts[len(given)], given, may_fail=True) if len(given) in texts else None


def _classes(operands: list[ast.expr], options: dict[str | None, ast.expr]) -> Question | None:
    """Of ``one_hot``, where the data says how many classes there are."""
    counts = [*operands[1:], *(value for option, value in options.items() if option == "num_classes")]
    if len(counts) > 1 or len(operands) + len(options) != 1 + len(counts):
        return None
    is_open = all(isinstance(count, ast.UnaryOp) and ast.unparse(count) == "-1" for count in counts)
    return Question("GM.one_hot(A)", (operands[0],), may_fail=True) if is_open else None


def _counted(operands: list[ast.expr], options: dict[str | None, ast.expr]) -> Question | None:
    names = [*("tensor", "weights", "minlength")[: len(operands)], *map(str, options)]
    if len(operands) > 3 or len({*names}) < len(names) or not {*names} <= {"tensor", "weights", "minlength"}:
        return None
    given = ", ".join(f"{name}={letter}" for name, letter in zip(names, ascii_uppercase, strict=False))
    return Question(f"GM.counted({given})", (*operands, *options.values()), may_fail=True)


def outside_of_subscript(index: ast.expr) -> ast.expr:
    """An index as an expression of its own, where slices are made by name; any other expression as it is."""

    def spelled(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Slice):
            bounds = [
                bound or ast.copy_location(ast.Constant(None), node) for bound in (node.lower, node.upper, node.step)
            ]
            return expression("GM.slice(BOUNDS)", index, BOUNDS=bounds)
        return None if isinstance(node, ast.Tuple) else node

    return replaced(index, spelled)
