"""The edits of Dynamo's generated code, by the `bytecode` library.

Dynamo replays appends to a module's list by assigning to the whole of it after the call of the graph::

    LOAD_GLOBAL __compiled_fn_...  ...  CALL  STORE_FAST graph_out_0
    ...
    <the items>  LOAD_GLOBAL __import_...  LOAD_ATTR queue  LOAD_ATTR graphmend_pending  <slice>  ...  STORE_SUBSCR

Loading ``graphmend_sink`` instead makes that assignment the delivery.  Around the call of the graph goes a handler that
builds the items once more, without the graph's outputs, and hands them over before the exception goes on; or one that
runs the frame again, and returns what that gives.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import CodeType
from typing import Any

from bytecode import Bytecode, Instr, Label
from bytecode.instr import FreeVar, TryBegin, TryEnd

from . import queue

RANDOM = "graphmend_random"
PENDING, SINK = "graphmend_pending", "graphmend_sink"
# What the expression that builds the items may consist of; anything else is not built a second time.
_PURE = (
    *("LOAD_", "BUILD_", "BINARY_", "LIST_", "COPY", "SWAP", "DUP_TOP", "ROT_", "STORE_FAST"),
    *("PUSH_NULL", "PRECALL", "CALL", "KW_NAMES", "MAKE_FUNCTION"),
)


class Rerun:
    """How generated code runs its frame again: as ``rerun[items, cells]``, with what is deferred and its closure.

    draws: the devices on which the graph draws random numbers.  If there are any, ``rerun[None]``, the state of their
        generators, is wanted before it, under the name RANDOM.
    """

    def __init__(self, code: CodeType, draws: Collection[Any]) -> None:
        self.code, self.draws = code, draws


class NotUnderstoodError(Exception):
    """The code reaches for `graphmend_pending` in a way that these edits do not know."""


def redirect_replay(code: CodeType, rerun: Rerun | None = None) -> CodeType | None:
    """`code` with its replay redirected to the sink, None if nothing is to be done.  Raises NotUnderstoodError.

    rerun: what runs the frame again if the graph raises.
    """
    if PENDING not in code.co_names and rerun is None:
        return None
    edited = Bytecode.from_code(code)
    loads = [index for index, item in enumerate(edited) if isinstance(item, Instr) and _name(item) == PENDING]
    for index in loads:
        load = edited[index]
        assert isinstance(load, Instr)
        if load.name != "LOAD_ATTR" or not _takes_whole_slice(edited, index + 1):
            raise NotUnderstoodError(f"{load.name} {PENDING} is not followed by an assignment to the whole list")
        load.arg = (load.arg[0], SINK) if isinstance(load.arg, tuple) else SINK
    if len(loads) <= 1:
        _handle_failure(edited, loads, rerun)
    return edited.to_code()


def drain_on_return(code: CodeType) -> CodeType:
    """`code` that hands over whatever its replay left in `graphmend_pending`, before each of its returns."""
    edited = Bytecode.from_code(code)
    for index in range(len(edited) - 1, -1, -1):
        item = edited[index]
        if isinstance(item, Instr) and item.name.startswith("RETURN_") and item.name != "RETURN_GENERATOR":
            edited[index:index] = _assign(None, queue.graphmend_drain)
    return edited.to_code()


def _handle_failure(edited: Bytecode, loads: list[int], rerun: Rerun | None) -> None:
    """Insert the handler around the call of the graph, if the code has the shape that it needs."""
    call = _graph_call(edited)
    if call is None:
        return
    first, last = call
    items: list[Any] = [Instr("BUILD_LIST", 0)]
    if loads:
        owner = _expression_start(edited, loads[0])
        items = _rebuilt(edited, _expression_start(edited, owner - 1), owner, str(_name(_instruction(edited, last))))
    if rerun is not None and {*rerun.code.co_freevars} <= {*edited.freevars}:
        opcode = "LOAD_FAST" if sys.version_info >= (3, 13) else "LOAD_CLOSURE"
        cells = [Instr(opcode, FreeVar(name)) for name in rerun.code.co_freevars]
        _insert_handler(edited, first, last, _run_again(rerun, items, cells), returns=True)
        if rerun.draws:
            edited[first:first] = [*_item(rerun, [Instr("LOAD_CONST", None)]), Instr("STORE_FAST", RANDOM)]
    elif loads:
        handed_over = [*items, Instr("LOAD_CONST", queue.graphmend_failed), Instr("LOAD_CONST", None)]
        _insert_handler(edited, first, last, [*handed_over, Instr("STORE_SUBSCR")], returns=False)


def _run_again(rerun: Rerun, items: list[Any], cells: list[Instr]) -> list[Any]:
    """``rerun[items, cells]``; an item needs no calling convention."""
    return _item(rerun, [*items, *cells, Instr("BUILD_TUPLE", len(cells)), Instr("BUILD_TUPLE", 2)])


def _item(owner: object, key: list[Any]) -> list[Any]:
    return [Instr("LOAD_CONST", owner), *key, Instr("BINARY_SUBSCR")]


def _insert_handler(edited: Bytecode, first: int, last: int, body: list[Any], returns: bool) -> None:
    """Put ``try: ... except BaseException: <body>; raise`` around the instructions, or ``return <body>``."""
    handler = Label()
    if sys.version_info >= (3, 11):
        # As that compiles: the cleanup restores the exception around us.
        cleanup, around = Label(), TryBegin(handler, push_lasti=False)
        inside = TryBegin(cleanup, push_lasti=True)
        edited += [handler, inside, Instr("PUSH_EXC_INFO")]
        if returns:
            left = [Instr("SWAP", 2), Instr("POP_EXCEPT"), Instr("RETURN_VALUE")]
            edited += [Instr("POP_TOP"), *body, TryEnd(inside), *left]
        else:
            edited += [*body, Instr("RERAISE", 0), TryEnd(inside)]
        edited += [cleanup, Instr("COPY", 3), Instr("POP_EXCEPT"), Instr("RERAISE", 1)]
        edited.insert(last + 1, TryEnd(around))
        edited.insert(first, around)
    else:
        left = [Instr("ROT_FOUR"), Instr("POP_EXCEPT"), Instr("RETURN_VALUE")] if returns else [Instr("RERAISE", 0)]
        dropped = [Instr("POP_TOP")] * 3 if returns else []
        edited += [handler, *dropped, *body, *left]
        edited.insert(last + 1, Instr("POP_BLOCK"))
        edited.insert(first, Instr("SETUP_FINALLY", handler))


def _graph_call(edited: Bytecode) -> tuple[int, int] | None:
    """Where the graph's callable is loaded and its output is stored, or dropped; None if a handler is around it."""
    first, depth = None, 0
    for index, item in enumerate(edited):
        if isinstance(item, TryBegin) or (isinstance(item, Instr) and item.name.startswith("SETUP_")):
            return None
        if not isinstance(item, Instr):
            continue
        if first is None and item.name == "LOAD_GLOBAL" and str(_name(item)).startswith("__compiled_fn"):
            first = index
        if first is not None:
            depth += sum(item.pre_and_post_stack_effect())
            if depth == 0:
                return first, index
    return None


def _expression_start(edited: Bytecode, end: int) -> int:
    """The index of the first instruction of the expression whose last one is at `end`."""
    needed, index = 1, end + 1
    while needed:
        index -= 1
        if index < 0:
            raise NotUnderstoodError("no start of the expression that builds the items")
        item = edited[index]
        if isinstance(item, Label):
            raise NotUnderstoodError("a jump into the expression that builds the items")
        if isinstance(item, Instr):
            pops, pushes = item.pre_and_post_stack_effect()
            needed += -pops - pushes
    return index


def _rebuilt(edited: Bytecode, start: int, end: int, graph_output: str) -> list[Any]:
    """A copy of the expression that can run without the graph's output; what that gives is marked as missing.

    An expression that cannot be evaluated twice, or reads what was made after the graph, becomes "everything missing".
    """
    stored: set[object] = set()
    copy: list[Any] = []
    for item in edited[start:end]:
        if not isinstance(item, Instr):
            copy.append(item)
            continue
        if not item.name.startswith(_PURE):
            return [Instr("LOAD_CONST", None)]
        if item.name == "STORE_FAST":
            stored.add(item.arg)
        if item.name.startswith("LOAD_FAST"):
            if item.arg == graph_output:
                copy.append(Instr("LOAD_CONST", queue.MISSING))
                continue
            if str(item.arg).startswith("tmp_") and item.arg not in stored:
                looked_up = _looked_up(edited, start, item.arg)
                if not looked_up:
                    return [Instr("LOAD_CONST", None)]
                copy += looked_up
                continue
        copy.append(item.copy())
        if item.name == "LOAD_ATTR" and _name(item) == "Size":  # it takes no missing sizes
            copy += [Instr("POP_TOP"), Instr("LOAD_CONST", queue.size_of)]
    return copy


def _looked_up(edited: Bytecode, before: int, temporary: object) -> list[Any]:
    """The expression that the temporary name stands for, if that is the attribute of a global; else nothing."""
    stores = [index for index in range(before) if _is_store(edited[index], temporary)]
    if len(stores) != 1:
        return []
    last = stores[0] - 1
    if isinstance(edited[last], Instr) and _instruction(edited, last).name in ("COPY", "DUP_TOP"):
        last -= 1
    first = last
    while isinstance(edited[first], Instr) and _instruction(edited, first).name == "LOAD_ATTR":
        first -= 1
    item = edited[first]
    if not (isinstance(item, Instr) and item.name == "LOAD_GLOBAL"):
        return []
    looked_up = [_instruction(edited, index).copy() for index in range(first, last + 1)]
    if isinstance(item.arg, tuple):
        looked_up[0].arg = (False, item.arg[1])  # the mark of a call comes with what is called
    return looked_up


def _is_store(item: object, temporary: object) -> bool:
    return isinstance(item, Instr) and item.name == "STORE_FAST" and item.arg == temporary


def _assign(value: object, slot: object) -> list[Instr]:
    """``slot[None] = value``: a call that needs no calling convention."""
    return [Instr("LOAD_CONST", part) for part in (value, slot, None)] + [Instr("STORE_SUBSCR")]


def _instruction(edited: Bytecode, index: int) -> Instr:
    item = edited[index]
    assert isinstance(item, Instr)
    return item


def _name(instruction: Instr) -> object:
    """The operand if it is a name, which some opcodes have in a pair with a flag since Python 3.11."""
    arg = instruction.arg
    return arg[1] if isinstance(arg, tuple) and len(arg) == 2 and isinstance(arg[0], bool) else arg


def _takes_whole_slice(edited: Bytecode, index: int) -> bool:
    """Is what follows ``[:]``, in any of the forms that the versions of Python have for it?"""
    following = [(item.name, item.arg) for item in edited[index : index + 3] if isinstance(item, Instr)]
    if following[:1] == [("LOAD_CONST", slice(None, None))]:
        return True
    bounds = [("LOAD_CONST", None), ("LOAD_CONST", None)]
    return following[:2] == bounds and following[2][0] in {"BUILD_SLICE", "STORE_SLICE"}
