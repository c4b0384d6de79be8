"""Statements that call a function for its effect alone, taken apart: by themselves, or in a side of a branch."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...diagnostics import Refusal
from ...source.draws import CLOCKS
from ...source.names import item_of, root_name, unpacks
from ...source.scopes import ModuleScope, Place
from ...source.templates import RUNTIME, Filling, Template, constant, expression, replaced
from ..base import compiled_elsewhere
from . import partials
from .codes import IN_COROUTINE, MAY_BE_CAUGHT, NEEDS_ITS_MOMENT, READS_FRAME, TEXT_MAY_CHANGE, TO_A_FILE, UNPACKED
from .known_calls import FRAME_KEYWORDS, FUNCTIONS, LEVELS, LOGGER_METHODS, LOOKUPS, WITHOUT_LEVEL
from .late import Late, is_builtin_in, late
from .leaves import Leaves
from .shown import Shown, gives_on, is_default, is_of_interest, shown

_DEFERRED = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = (LEAVES,)
    if GM.deferrable(TARGET, METHOD, VALUES):
        GM.defer(lambda TARGET, VALUES: CALL, TARGET, METHOD, VALUES)
    else:
        SETTLED
        CALL
else:
    ORIGINAL
"""
)
_WITH_CALLERS = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = (LEAVES,)
    if GM.deferrable_as_shown(TARGET, METHOD, VALUES, ((POSITIONAL,), KEYWORDS)):
        GM.defer_as_shown(lambda TARGET, VALUES: CALL, TARGET, METHOD, VALUES, ((POSITIONAL,), KEYWORDS))
    else:
        SETTLED
        CALL
else:
    ORIGINAL
"""
)
_SETTLED = Template("VALUES = GM.settled(VALUES)")
_STREAMS = {"sys.stdout", "sys.stderr"}

CODE = "GM101"
FRAME = Refusal(NEEDS_ITS_MOMENT, "the call reads the exception or the stack, or waits for others; drop {keyword}=")
STARRED = Refusal(UNPACKED, "the call unpacks arguments; write them out")
CAUGHT = Refusal(MAY_BE_CAUGHT, "a handler in the function could catch what the call raises; move it out of the try")
INSPECTED = Refusal(READS_FRAME, "the function reads its own frame (locals, exec, eval, frame objects)")
FILE = Refusal(TO_A_FILE, "print writes to a file object; only sys.stdout and sys.stderr can wait")
NOISY = Refusal(
    TEXT_MAY_CHANGE, "text is formatted before a later argument makes a call; make that call in a statement before"
)
COROUTINE = Refusal(IN_COROUTINE, "the function is a coroutine, which torch.compile does not trace")


_CLOCKS = frozenset(name.rpartition(".")[2] for name in CLOCKS)


@dataclass(frozen=True)
class Leaf:
    """What a value of an effect is of.

    apart: that taken apart, if it may be computed at the delivery.
    is_formatted: does the text have what its ``__format__`` gives, and nothing else see it?
    """

    node: ast.expr
    apart: Late | None
    is_formatted: bool

    def read(self) -> ast.expr:
        """The value where the effect stands by itself: what may wait in it does."""
        if self.apart is None:
            return reading(self.node)
        return self.apart.emit([*self.apart.reads.values()], self.node, checked=True)

    def emit(self, value: ast.expr) -> ast.expr:
        """The value, of which the text may show the number alone."""
        return expression("GM.number_of(A)", value, A=value) if self.is_formatted else value

    @property
    def may_wait(self) -> bool:
        return self.apart is not None or self.is_formatted


@dataclass(frozen=True)
class EffectCall:
    """An effect statement taken apart: receiver, method ("" for a function), and the call over its leaf values.

    shown: what of its arguments may say which caller the call shows; None where none does.
    """

    statement: ast.Expr
    receiver: ast.expr
    method: str
    call: ast.Call
    leaves: tuple[Leaf, ...]
    shown: Shown | None

    def emit(self, mended: ast.stmt) -> list[ast.stmt]:
        """The call that waits for the end of the graph, where the objects at hand let it."""
        at, method = self.statement, constant(self.method, self.statement)
        leaves = [leaf.emit(leaf.read()) for leaf in self.leaves]
        holes: dict[str, Filling] = {"RECEIVER": self.receiver, "LEAVES": leaves, "METHOD": method}
        holes["SETTLED"] = _SETTLED.fill(at) if any(leaf.may_wait for leaf in self.leaves) else []
        if self.shown is None:
            return _DEFERRED.fill(at, CALL=self.call, ORIGINAL=at, **holes)
        holes |= {"POSITIONAL": self.shown.positional, "KEYWORDS": self.shown.keywords}
        return _WITH_CALLERS.fill(at, CALL=self.call, ORIGINAL=at, **holes)


def reading(leaf: ast.expr) -> ast.expr:
    """The value; each ``x.item()`` and ``float(x)`` in it waits for the delivery, as a ``x.tolist()`` does.

    So does what a clock shows: whether the function is one is seen while tracing.
    """

    iterated: set[ast.AST] = set()

    def instead(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Lambda):  # nobody knows when it is called
            return node
        owner = item_of(node)
        if owner is not None:
            return expression("GM.read(A)", owner, A=owner)
        match node:
            case ast.Call(ast.Name("float" | "int" | "bool") as function, [read], []) if not isinstance(
                read, ast.Starred
            ):
                return expression("GM.read_by(F, A)", node, F=function, A=replaced(read, instead))
            case ast.Call(ast.Attribute() | ast.Name() as function, [], []) if _bare(function) in _CLOCKS:
                return expression("GM.drawn(F)", node, F=function)
        if isinstance(node, ast.comprehension):
            iterated.add(node.iter)
        owner = item_of(node, "tolist") if node is leaf or node in iterated else None
        return None if owner is None else expression("GM.read_list(A)", owner, A=owner)

    return replaced(leaf, instead)


def _bare(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def effect_of(place: Place, scope: ModuleScope) -> EffectCall | Refusal | None:
    """The statement at `place` taken apart, why it cannot wait, or None where it is no effect."""
    statement = place.statement
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in LOGGER_METHODS
    if not is_method and not is_known_function(place, call, scope):
        return None
    return _refusal(place, call, scope) or _take_apart(place, statement, call, scope)


def is_known_function(place: Place, call: ast.Call, scope: ModuleScope) -> bool:
    """Does it call a function that is known to have an effect, by the name it was imported under, or a partial?"""
    return scope.names_one_of(call.func, FUNCTIONS, place.function) or is_partial(place, call, scope)


def is_partial(place: Place, call: ast.Call, scope: ModuleScope) -> bool:
    """Does it call what a statement of the module or of the function sets to a `functools.partial` of an effect?"""
    return isinstance(call.func, ast.Name) and call.func.id in partials.of(scope)


def is_lookup(place: Place, call: ast.Call, scope: ModuleScope) -> bool:
    """Does it look a logger up, of a literal name or of ``__name__``?  Any other name would become a guard."""
    if call.keywords or len(call.args) > 1:
        return False
    return all(map(_is_fixed_name, call.args)) and scope.names_one_of(call.func, LOOKUPS, place.function)


def _is_fixed_name(node: ast.expr) -> bool:
    literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return literal or (isinstance(node, ast.Name) and node.id == "__name__")


def lookup(at: ast.stmt, call: ast.Call) -> ast.expr:
    """The lookup of a logger by our own function, which is a constant of the trace."""
    return expression("GM.get_logger(FUNCTION, *(ARGUMENTS,))", at, FUNCTION=call.func, ARGUMENTS=call.args)


def stable_call(receiver: ast.expr) -> bool:
    """Is the receiver a lookup of ours, which may be made at any time?"""
    return isinstance(receiver, ast.Call) and root_name(receiver.func) == RUNTIME


def _stream(keyword: ast.keyword) -> ast.keyword:
    """``file=sys.stderr`` by our own `sys`: a local name of the function would make the delivery a closure."""
    assert isinstance(keyword.value, ast.Attribute)
    stream = expression(f"GM.sys.{keyword.value.attr}", keyword.value)
    return ast.copy_location(ast.keyword("file", stream), keyword)


def _refusal(place: Place, call: ast.Call, scope: ModuleScope) -> Refusal | None:
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg in FRAME_KEYWORDS and keyword.arg != "stacklevel" and not is_default(keyword):
            return Refusal(FRAME.code, FRAME.text.format(keyword=keyword.arg))
        if keyword.arg == "file" and not scope.names_one_of(value, _STREAMS, place.function):
            return FILE
    if unpacks(call) and not gives_on(call, place.function):
        return STARRED
    if place.inside_try and not may_be_silent(call):
        return CAUGHT
    if place.function.is_async:
        return COROUTINE
    if place.function.reads_its_frame:
        return INSPECTED
    return compiled_elsewhere(place, scope, CODE)


def may_be_silent(call: ast.Call) -> bool:
    """Is it the call of a method that does nothing, if the logger is off at its level?"""
    return isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS


def _take_apart(place: Place, statement: ast.Expr, call: ast.Call, scope: ModuleScope) -> EffectCall | Refusal:
    if isinstance(call.func, ast.Attribute) and not is_known_function(place, call, scope):
        receiver, method = call.func.value, call.func.attr
        func: ast.expr = ast.copy_location(ast.Attribute(expression("TARGET", receiver), method, ast.Load()), call.func)
        if isinstance(receiver, ast.Call) and is_lookup(place, receiver, scope):
            receiver = lookup(statement, receiver)
    else:
        receiver, method, func = call.func, "", expression("TARGET", call.func)
    leaves = Leaves()
    over_leaves = ast.Call(
        func,
        [leaves.split_argument(arg) for arg in call.args],
        # The stream is looked up when the text is written, as print does when it is given none.
        [_stream(kw) if kw.arg == "file" else leaves.split_keyword(kw) for kw in call.keywords],
    )
    if leaves.are_noisy_after_text:
        return NOISY
    over_leaves = ast.copy_location(over_leaves, call)
    by_position = not method and not scope.names_one_of(call.func, WITHOUT_LEVEL, place.function)
    may_show = is_of_interest(call, is_partial(place, call, scope), by_position)
    seen = shown(statement, over_leaves) if may_show else None
    is_builtin = is_builtin_in(place, scope)
    found = tuple(
        Leaf(leaf, late(leaf, is_builtin), formatted)
        for leaf, formatted in zip(leaves.found, leaves.formatted, strict=True)
    )
    return EffectCall(statement, receiver, method, over_leaves, found, seen)
