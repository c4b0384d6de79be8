"""Whole numbers that count calls: symbols from the first call on.

They are attributes of modules that a frame adds to, ``self.calls += 1``, and arguments that it asks for a period,
``step % 50``.  Dynamo takes a number of a module for a constant, compiles for each value anew, and after eight runs the
frame in eager for good; an argument is a constant in the first call.  Of those in traced code of a mended module it is
told that they are none.
"""

from __future__ import annotations

import contextlib
import copy
import dis
import functools
import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch

from ..attempt.attempt import Feature, Lifetime
from ..attempt.compilation import Compilation, NotTracingError, compilation_of, is_break_or_failure
from .frame_guards import name_of
from .tracer import is_covered, traced_code
from .variables import answer_before

_SHUFFLING = ("SWAP", "ROT_TWO", "COPY", "DUP_TOP")  # what stands on the stack twice, or in another order
_ITEM = "[]"
_STORES = ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
_MOST_VALUES = 2  # of a number that the frame does not assign to, for each of which it is compiled
_COUNTER = Feature("a number that the frame adds to is a symbol", Lifetime.CODE)


@dataclass
class _Counted:
    """The numbers that an attempt knows to be counters, and those of them that are symbols."""

    known: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass
class _Met:
    """What a frame remembers: the values of numbers when it was compiled, by the expression that guards have.

    functions: those that were traced by the time that a number was asked for.
    """

    values: dict[str, set[float]] = field(default_factory=dict)
    functions: set[CodeType] = field(default_factory=set)


def watch() -> None:
    """Stand where Dynamo decides on a number, from now on; where another torch has that elsewhere, nothing changes."""
    from torch._dynamo.variables import builder
    from torch._dynamo.variables.constant import ConstantVariable
    from torch._dynamo.variables.tensor import SymNodeVariable

    decide = getattr(builder, "is_int_specialization_case", None)
    if decide is not None and not hasattr(decide, "__wrapped__"):
        builder.is_int_specialization_case = _but_for_counters(decide)

    for function in (min, max):
        for left, right in itertools.product((SymNodeVariable, ConstantVariable), repeat=2):
            answer_before(function, left, right, _of_mixed)


def _of_mixed(function: Any, otherwise: Callable[[], Any], translator: Any, args: list[Any], kwargs: Any) -> Any:
    """``max(n, 3)``: of a float and a whole number PyTorch makes a float, where one is a symbol."""
    symbols = [getattr(arg, "sym_num", None) for arg in args]
    is_symbolic = any(isinstance(each, (torch.SymInt, torch.SymFloat)) for each in symbols)
    if is_symbolic and len({arg.python_type() is int for arg in args}) > 1:
        leave(translator.output, "a counter has made a float that PyTorch calculates otherwise with")
    return otherwise()(translator, args, kwargs)


def leave(output: Any, reason: str) -> None:
    """Trace the frame anew, with its counters as constants, if it has some."""
    with contextlib.suppress(NotTracingError):
        compilation = compilation_of(output)
        if compilation.of(_Counted).names and compilation.allows(_COUNTER):
            compilation.without(_COUNTER.at(), reason=reason)


def _but_for_counters(decide: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    @functools.wraps(decide)
    def is_constant(value: Any, source: Any) -> bool:
        return not _is_counted_here(value, source) and bool(decide(value, source))

    return is_constant


def _is_counted_here(value: int, source: Any) -> bool:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    root = InstructionTranslator.current_tx()
    try:
        compilation = compilation_of(root.output)
    except NotTracingError:
        return False
    is_other = varies(root.output.current_tx, source, value)
    if not (is_other or is_counter(root.output.current_tx, source)) or not compilation.allows(_COUNTER):
        return False
    compilation.of(_Counted).names.add(name_of(source))
    compilation.at_end(_judge_end)
    let_vary(root, source, value, compilation)
    return True


def varies(frame: Any, source: Any, value: float) -> bool:
    """Has the number had other values when the frame was compiled before, in traced code of a mended module?

    One other is enough of what the frame assigns to; a second says it of anything else.
    """
    if not is_covered(frame):
        return False
    compilation = compilation_of(frame.output)
    known = compilation.memory.of(_Met)
    met = known.values.setdefault(name_of(source), set())
    met.add(value)
    if len(met) == 1 or len(met) > _MOST_VALUES or is_assigned(frame, source):
        return len(met) > 1
    known.functions |= traced_code(compilation)
    return _is_assigned_in(known.functions, source)


def let_vary(root: Any, source: Any, value: float, compilation: Compilation) -> None:
    """Let Dynamo make a symbol of the number, as of one that it has met with two values; in this attempt alone."""
    from torch._dynamo.pgo import CodeId, FrameStateSizeEntry, get_code_state, process_automatic_dynamic

    name, known = name_of(source), get_code_state()[CodeId.make(root.f_code)].automatic_dynamic
    entry = copy.copy(known[name]) if name in known else FrameStateSizeEntry.make_scalar(value)
    compilation.undo.callback(known.__setitem__, name, entry)
    process_automatic_dynamic(root, name, FrameStateSizeEntry.make_scalar(value + 1))


def _judge_end(compilation: Compilation, error: BaseException | None) -> None:
    """Has the attempt ended in a break or an error?  It may be for want of the number itself, as in a text."""
    if is_break_or_failure(error) and not compilation.one_graph and compilation.allows(_COUNTER):
        compilation.without(_COUNTER.at(), reason="a frame breaks in which a counter is a symbol")


def is_counter(frame: Any, source: Any) -> bool:
    """Is it a number of a module that a traced function of a mended module, this one or a caller, adds to?

    Or an argument of the frame that it asks for a period.
    """
    argument = getattr(source, "local_name", None)
    if argument is not None:
        return frame.parent is None and is_covered(frame) and argument in asked_for_periods(frame.f_code)
    member = getattr(source, "member", None)
    if member is None or not source.guard_source.is_unspecialized_nn_module():
        return False
    known = compilation_of(frame.output).of(_Counted).known
    if name_of(source) not in known and _is_added_to(frame, source, member):
        known.add(name_of(source))  # it is one behind the function that adds to it, too
    return name_of(source) in known


def _is_added_to(frame: Any, source: Any, member: str) -> bool:
    while frame is not None:
        if is_covered(frame):
            owners = [owner for owner, added in added_to(frame.f_code) if added == member]
            if any(_is_at(source.base, owner.split("."), frame.symbolic_locals) for owner in owners):
                return True
        frame = frame.parent
    return False


def is_assigned(frame: Any, source: Any) -> bool:
    """Does a traced function of a mended module, or a caller, assign to an attribute or a name outside of that name?

    Or to an item, where it is one.
    """
    name = _assigned_name(source)
    while name is not None and frame is not None:
        if is_covered(frame) and name in _assigned(frame.f_code):
            return True
        frame = frame.parent
    return False


def _is_assigned_in(functions: Iterable[CodeType], source: Any) -> bool:
    name = _assigned_name(source)
    return name not in (None, _ITEM) and any(name in _assigned(code) for code in functions)


def _assigned_name(source: Any) -> str | None:
    """What code names that assigns to the number, or to an item of what it is an item of."""
    member: str | None = getattr(source, "member", None)
    return outside_name(source) or member or (_ITEM if hasattr(source, "index") else None)


def outside_name(source: Any) -> str | None:
    """The name of a global that it is, or of a function around the frame's; None of anything else."""
    name: str | None = getattr(source, "global_name", None)
    return source.local_name if getattr(source, "is_derefed_cell_contents", False) else name


@functools.cache
def _assigned(code: CodeType) -> frozenset[str]:
    """The attributes and the names outside that the code, and functions in it, assign to; and whether to items."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    stores = [each for each in dis.get_instructions(code) if each.opname in _STORES]
    items = {_ITEM for each in dis.get_instructions(code) if each.opname == "STORE_SUBSCR"}
    cells = {"cell_contents" for each in stores if each.opname == "STORE_DEREF"}  # as Dynamo names what they hold
    return frozenset(each.argval for each in stores).union(items, cells, *map(_assigned, inner))


def _is_at(source: Any, path: list[str], variables: Any) -> bool:
    """Is that the source of an attribute of an attribute of a local variable?  path: their names."""
    for member in path[:0:-1]:
        while source is not None and not hasattr(source, "member"):
            source = getattr(source, "base", None)
        if source is None or source.member != member:
            return False
        source = source.base
    known = getattr(variables.get(path[0]), "source", None)
    return known is not None and source is not None and name_of(known) == name_of(source)


@functools.cache
def added_to(code: CodeType) -> frozenset[tuple[str, str]]:
    """The attributes to which the code assigns what it makes of them: ``x.n += 1``, ``x.y.n = min(x.y.n + len(z), 9)``.

    So too those to which it assigns one of these: ``x.last = x.n``.  Each as the local name, with the attributes, that
    it is one of, ``x.y``, "" for something else, and its own name.
    """
    stores = _stores(code)
    added = {read for name, statement in stores if _calculates(statement) for read in _reads(statement, name)}
    copied = {
        (_path_to(statement), name)
        for name, statement in stores
        for _, grown in added
        if not _calculates(statement) and _reads(statement, grown)
    }
    return frozenset(added | copied)


@functools.cache
def growing(code: CodeType) -> dict[Any, str]:
    """The attribute to which a statement assigns what it makes of it, by where in the source it calculates."""
    stores = [each for each in _stores(code) if _reads(*reversed(each))]
    calculating = [(each, name) for name, statement in stores for each in statement if _calculates([each])]
    return {getattr(each, "positions", None): name for each, name in calculating}


def _stores(code: CodeType) -> list[tuple[str, list[dis.Instruction]]]:
    """The attributes that the code assigns to, each with what its statement does before that.

    So too with the statement that binds the local name that is assigned: ``total = x.n + 1``, ``x.n = total``.
    """
    found = _instructions(code)
    places = [(number, each) for number, each in enumerate(found) if each.opname in ("STORE_ATTR", "STORE_FAST")]
    kept = [(each.argval, _expressions_before(found, place)) for place, each in places if each.opname == "STORE_ATTR"]
    through = [
        (name, _expressions_before(found, place))
        for name, statement in kept
        if statement and not _calculates(statement)
        for place, each in places
        if each.opname == "STORE_FAST" and each.argval == statement[0].argval
    ]
    return [*kept, *through]


def _instructions(code: CodeType) -> list[dis.Instruction]:
    """Those of the code; for one that is about two local names, as since Python 3.13, the two that it stands for."""
    found = []
    for each in dis.get_instructions(code):
        if "_FAST" in each.opname and isinstance(each.argval, tuple):
            kinds = re.findall("(?:LOAD|STORE)_FAST", each.opname)
            both = zip(kinds, each.argval, strict=True)
            found += [each._replace(opname=kind, opcode=dis.opmap[kind], argval=name) for kind, name in both]
        else:
            found.append(each)
    return found


def _expressions_before(found: list[dis.Instruction], store: int) -> list[dis.Instruction]:
    """What makes all that the instruction takes off the stack; nothing where there is a loop in it."""
    depth, first = 0, store + 1
    while first == store + 1 or depth > 0:
        first -= 1
        if first < 0 or "BACKWARD" in found[first].opname or found[first].opname == "FOR_ITER":
            return []
        # Behind one side of ``a if test else b`` there is as little on the stack as before it.
        is_side = found[first].opname == "JUMP_FORWARD"
        depth -= -1 if is_side else dis.stack_effect(found[first].opcode, found[first].arg, jump=False)
    return found[first:store]


def _calculates(statement: list[dis.Instruction]) -> bool:
    return any(each.opname.startswith(("BINARY_", "INPLACE_")) for each in statement)


def _reads(statement: list[dis.Instruction], name: str) -> list[tuple[str, str]]:
    """The attributes of that name that the statement reads, as `added_to` gives them."""
    reads = [number for number, each in enumerate(statement) if each.opname == "LOAD_ATTR" and each.argval == name]
    return [(_path_to(statement[:number]), name) for number in reads]


def _path_to(before: list[dis.Instruction]) -> str:
    """The chain of attributes that stands last: ``x.y``; "" where it does not begin with a local name."""
    path: list[str] = []
    for each in reversed(before):
        if each.opname == "LOAD_ATTR":
            path.append(each.argval)
        elif each.opname.startswith("LOAD_FAST"):
            return ".".join([each.argval, *reversed(path)])
        elif each.opname not in _SHUFFLING:
            break
    return ""


@functools.cache
def asked_for_periods(code: CodeType) -> frozenset[str]:
    """The local names of which the code takes a remainder: ``n % 50``, ``n % self.every``; no texts that are filled."""
    found, names = [each for each in _instructions(code) if each.opname not in _SHUFFLING], set()
    for number, then in enumerate(found):
        if then.opname == "BINARY_MODULO" or (then.opname == "BINARY_OP" and then.argrepr == "%"):
            before = found[max(number - 4, 0) : number]
            if not any(isinstance(each.argval, str) for each in before if each.opname == "LOAD_CONST"):
                names |= {each.argval for each in before if each.opname.startswith("LOAD_FAST")}
    return frozenset(names)
