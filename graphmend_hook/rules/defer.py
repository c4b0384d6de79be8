"""[Defer] Logging, warnings and prints are delivered after the graph instead of breaking it.

What it does
    A statement that calls ``print``, ``warnings.warn``, or a method of a logger hands its arguments to the epilogue
    while Dynamo traces; the epilogue makes the original call right after the graph, on the same thread, from a frame
    with the statement's file, line and function.

Why Dynamo breaks there
    The call has an effect outside the graph, at a moment that a graph does not have: "logging.Logger method not
    supported for non-export cases", "Dynamo does not know how to trace builtin `print`/`_warnings.warn`".

Before
    logger.warning_once(f"{name} has shape {x.shape}")

After
    if GM.tracing():                                   # folded while tracing; one Python call otherwise
        TARGET = logger                                # receiver and arguments, as of the call, once each
        VALUES = (name, x.shape)
        if GM.deferrable(TARGET, "warning_once", VALUES):
            GM.defer(lambda TARGET, VALUES: TARGET.warning_once(f"{VALUES[0]} has ..."), TARGET, "warning_once", VALUES)
        else:
            TARGET.warning_once(f"{VALUES[0]} has shape {VALUES[1]}")
    else:
        logger.warning_once(f"{name} has shape {x.shape}")

    ``name = logging.getLogger(...)`` in a function, which Dynamo cannot trace, becomes ``GM.get_logger(...)``, a
    constant of the trace.

    ``name = np.random.uniform(0, 1)`` (`rules.draws`) draws after the graph, where the trace does not get to a place
    that looks at the number.

Obligations proved here, each with its refusal
    GM101-R01  no keyword that reads the calling frame, the exception or the stack (stacklevel=1 is the default)
    GM101-R02  no ``*args`` or ``**kwargs``: the number of values must be known
    GM101-R03  no handler in the function could catch what the call raises
    GM101-R04  the function does not read its own frame
    GM101-R05  no other compiler compiles the function
    GM101-R06  ``print`` goes to sys.stdout or sys.stderr
    GM101-R07  the function is not a coroutine: Dynamo does not trace those
    GM101-R08  the call's value is not used
    GM101-R09  no argument that is evaluated after text is formatted could change the text
    GM101-R10  a number that is drawn is only the left side of comparisons, and its call is plain

Obligations checked on the traced values (`runtime.effects`), each falling back to the original statement
    GM101-T01 to GM101-T13, listed in `runtime.refusals`.

The native alternative, and what it loses
    ``torch._dynamo.config.reorderable_logging_functions`` loses every call in an inlined frame;
    ``ignore_logging_functions`` drops the record.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ..analysis.names import root_name
from ..analysis.scopes import ModuleScope, Place
from ..diagnostics import Refusal
from ..templates import RUNTIME, Template, target_at
from . import draws
from .base import AnyOf
from .effects import FRAME_KEYWORDS, FUNCTIONS, LOGGER_METHODS
from .leaves import Leaves
from .surroundings import compiled_elsewhere

_DEFERRED = Template(
    """
if GM.tracing():
    TARGET = RECEIVER
    VALUES = LEAVES
    if GM.deferrable(TARGET, METHOD, VALUES):
        GM.defer(lambda TARGET, VALUES: CALL, TARGET, METHOD, VALUES)
    else:
        CALL
else:
    ORIGINAL
"""
)

_STREAMS = {"sys.stdout", "sys.stderr"}
_GET_LOGGER = {"logging.getLogger"}
_STREAM = Template("GM.sys.stderr")
_LOOKUP = Template("GM.get_logger(FUNCTION, *ARGUMENTS)")
_LOOKED_UP = Template(
    """
if GM.tracing():
    STORED = LOOKUP
else:
    ORIGINAL
"""
)

FRAME = Refusal("GM101-R01", "the call reads its frame, its exception or its stack; drop {keyword}=")
STARRED = Refusal("GM101-R02", "the call unpacks arguments; write them out")
CAUGHT = Refusal("GM101-R03", "a handler in the function could catch what the call raises; move it out of the try")
INSPECTED = Refusal("GM101-R04", "the function reads its own frame (locals, exec, eval, frame objects)")
FOREIGN = Refusal("GM101-R05", "another compiler compiles the function")
FILE = Refusal("GM101-R06", "print writes to a file object; only sys.stdout and sys.stderr can wait")
NOISY = Refusal("GM101-R09", "text is formatted before a later argument makes a call; make the call a statement before")
COROUTINE = Refusal("GM101-R07", "the function is a coroutine, which torch.compile does not trace")
USED = Refusal("GM101-R08", "the call's value is used; make the call a statement of its own")


@dataclass(frozen=True)
class DeferCandidate:
    """An effect statement taken apart: receiver, method ("" for a function), and the call over its leaf values."""

    statement: ast.Expr
    receiver: ast.expr
    method: str
    call: ast.Call
    leaves: tuple[ast.expr, ...]


@dataclass(frozen=True)
class LookupCandidate:
    """``name = logging.getLogger(...)``: Dynamo cannot trace the lookup, which has one result for ever."""

    statement: ast.Assign
    lookup: ast.Call


Candidate = DeferCandidate | LookupCandidate | draws.DrawCandidate


class Defer:
    """Rewrites effect statements; see the module's docstring."""

    name = "defer"
    version = 3
    fallback = False
    trigger = AnyOf(
        rb"print\b",
        rb"warn\b",
        rb"\.(?:" + "|".join(sorted(LOGGER_METHODS)).encode() + rb")\s*\(",
        rb"logging\.getLogger",
        rb"from\s+logging\s+import",
        rb"\.random\b",
    )

    def match(self, place: Place, scope: ModuleScope) -> Candidate | Refusal | None:
        statement = place.statement
        if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)) or not isinstance(statement.value, ast.Call):
            return None
        call = statement.value
        if isinstance(statement, ast.Expr):
            if not _is_effect(place, call, scope):
                return None
            return _refusal(place, call, scope) or self._candidate(place, statement, call, scope)
        if isinstance(statement, ast.Assign):
            if _is_lookup(place, call, scope):
                return LookupCandidate(statement, call) if _is_plain_assignment(statement) else None
            drawn = draws.match(place, statement, call, scope)
            if drawn is not None:
                return drawn
        return USED if _is_known_function(place, call, scope) else None

    @staticmethod
    def _candidate(place: Place, statement: ast.Expr, call: ast.Call, scope: ModuleScope) -> DeferCandidate | Refusal:
        candidate, leaves = _take_apart(place, statement, call, scope)
        return NOISY if leaves.are_noisy_after_text else candidate

    def rewrite(self, candidate: Candidate) -> list[ast.stmt]:
        if isinstance(candidate, draws.DrawCandidate):
            return draws.rewrite(candidate)
        at = candidate.statement
        if isinstance(candidate, LookupCandidate):
            stored = candidate.statement.targets[0]
            return _LOOKED_UP.fill(at, STORED=stored, LOOKUP=_lookup(at, candidate.lookup), ORIGINAL=at)
        leaves = ast.copy_location(ast.Tuple(list(candidate.leaves), ast.Load()), at)
        method = ast.copy_location(ast.Constant(candidate.method), at)
        return _DEFERRED.fill(
            at, RECEIVER=candidate.receiver, LEAVES=leaves, METHOD=method, CALL=candidate.call, ORIGINAL=at
        )


def _is_effect(place: Place, call: ast.Call, scope: ModuleScope) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr in LOGGER_METHODS:
        return True
    return _is_known_function(place, call, scope)


def _is_known_function(place: Place, call: ast.Call, scope: ModuleScope) -> bool:
    return scope.names_one_of(call.func, FUNCTIONS, place.function)


def _is_lookup(place: Place, call: ast.Call, scope: ModuleScope) -> bool:
    """Is it ``logging.getLogger()``, of a literal name or of ``__name__``?  Any other name would become a guard."""
    if call.keywords or len(call.args) > 1:
        return False
    return all(map(_is_fixed_name, call.args)) and scope.names_one_of(call.func, _GET_LOGGER, place.function)


def _is_fixed_name(node: ast.expr) -> bool:
    literal = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return literal or (isinstance(node, ast.Name) and node.id == "__name__")


def _lookup(at: ast.stmt, call: ast.Call) -> ast.expr:
    arguments = ast.copy_location(ast.Tuple(list(call.args), ast.Load()), call)
    statement = _LOOKUP.fill(at, FUNCTION=call.func, ARGUMENTS=arguments)[0]
    assert isinstance(statement, ast.Expr)
    return statement.value


def stable_call(receiver: ast.expr) -> bool:
    """Is the receiver a lookup of ours, which may be made at any time?"""
    return isinstance(receiver, ast.Call) and root_name(receiver.func) == RUNTIME


def _is_plain_assignment(statement: ast.Assign) -> bool:
    return len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)


def _stream(keyword: ast.keyword) -> ast.keyword:
    """``file=sys.stderr`` by our own `sys`: a local name of the function would make the delivery a closure."""
    assert isinstance(keyword.value, ast.Attribute)
    stream = _STREAM.fill(keyword.value)[0]
    assert isinstance(stream, ast.Expr)
    assert isinstance(stream.value, ast.Attribute)
    stream.value.attr = keyword.value.attr
    return ast.copy_location(ast.keyword("file", stream.value), keyword)


def _refusal(place: Place, call: ast.Call, scope: ModuleScope) -> Refusal | None:
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg in FRAME_KEYWORDS and not _is_default(keyword.arg, value):
            return Refusal(FRAME.code, FRAME.text.format(keyword=keyword.arg))
        if keyword.arg == "file" and not scope.names_one_of(value, _STREAMS, place.function):
            return FILE
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(kw.arg is None for kw in call.keywords):
        return STARRED
    if place.inside_try:
        return CAUGHT
    if place.function.is_async:
        return COROUTINE
    if place.function.reads_its_frame:
        return INSPECTED
    return FOREIGN if compiled_elsewhere(place, scope) else None


def _is_default(keyword: str, value: ast.expr) -> bool:
    if not isinstance(value, ast.Constant):
        return False
    return value.value == 1 if keyword == "stacklevel" else not value.value


def _take_apart(place: Place, statement: ast.Expr, call: ast.Call, scope: ModuleScope) -> tuple[DeferCandidate, Leaves]:
    if isinstance(call.func, ast.Attribute) and not _is_known_function(place, call, scope):
        receiver, method = call.func.value, call.func.attr
        func: ast.expr = ast.copy_location(ast.Attribute(target_at(receiver), method, ast.Load()), call.func)
        if isinstance(receiver, ast.Call) and _is_lookup(place, receiver, scope):
            receiver = _lookup(statement, receiver)
    else:
        receiver, method, func = call.func, "", target_at(call.func)
    leaves = Leaves()
    over_leaves = ast.Call(
        func,
        [leaves.split(arg) for arg in call.args],
        # The stream is looked up when the text is written, as print does when it is given none.
        [_stream(kw) if kw.arg == "file" else leaves.split_keyword(kw) for kw in call.keywords],
    )
    candidate = DeferCandidate(statement, receiver, method, ast.copy_location(over_leaves, call), tuple(leaves.found))
    return candidate, leaves
