"""The edits of Dynamo's generated code, by the `bytecode` library.

Dynamo replays appends to a module's list by assigning to the whole of it after the call of the graph::

    LOAD_GLOBAL __compiled_fn_...  ...  CALL  STORE_FAST graph_out_0
    ...
    <the items>  LOAD_GLOBAL __import_...  LOAD_ATTR queue  LOAD_ATTR graphmend_pending  <slice>  ...  STORE_SUBSCR

Loading ``graphmend_sink`` instead makes that assignment the delivery.  Around the call of the graph goes a handler that
builds the items once more, without the graph's outputs, and hands them over before the exception goes on; or one that
runs the frame again, and returns what that gives.  If there are guards among the items, these are built right behind
the call too, before anything is replayed, and the guards are looked at: what that gives is the sink of the replay.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import CodeType
from typing import Any

from bytecode import Bytecode, Instr, Label
from bytecode.instr import FreeVar, TryBegin, TryEnd

from . import queue
from .deferred_items import rebuilt
from .graph_call import GraphCall, NotUnderstoodError, graph_calls, instruction_at, name_in

BEFORE, LOOKED_AT = "graphmend_before", "graphmend_looked_at"
PENDING, SINK = "graphmend_pending", "graphmend_sink"
_CALLED = (Instr("LOAD_CONST", None), Instr("BINARY_SUBSCR"), Instr("RETURN_VALUE"))  # ``return again[None]``
_CHANGING = ("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")  # a local or a cell


class Rerun:
    """How generated code runs its frame again: as ``rerun[items, cells][None]``, with what is deferred and its closure.

    changes: does the graph change anything by itself, draw a random number say?  If so, or if it switches modes,
        ``rerun[None]``, the state of all that, is wanted before it, under the name BEFORE.
    """

    def __init__(self, code: CodeType, changes: bool) -> None:
        self.code, self.changes = code, changes


def redirect_replay(
    code: CodeType, rerun: Rerun | None = None, has_graph: bool = False, switches: bool = False, guards: Any = None
) -> CodeType | None:
    """`code` with its replay redirected to the sink, and a handler around the call of its graph.

    None where there is nothing to redirect, to run again or to put back, or that has been done.  Raises
    NotUnderstoodError for code that may have any of it in a form that is not known.

    rerun: what runs the frame again if the graph raises.
    has_graph: a graph is known to be called, as there is if the frame can be run again; switches: it switches modes.
    guards: ``guards[items]`` looks at the guards among them; what it raises is handled as a failure of the graph is, if
        the frame can be run again.
    """
    if _is_edited(code) or not (PENDING in code.co_names or rerun is not None or switches):
        return None
    edited = Bytecode.from_code(code)
    load = _redirect(edited) if PENDING in code.co_names else None
    calls = graph_calls(edited)
    if len(calls) > 1 or (not calls and (has_graph or rerun is not None)):
        raise NotUnderstoodError(f"{len(calls)} calls of a graph")
    if calls:
        items = [Instr("BUILD_LIST", 0)] if load is None else rebuilt(edited, load, calls[0])
        call = calls[0]
        if guards is not None and load is not None:
            again = rebuilt(edited, load, call, has_output=True)
            looked_at = [*_item(guards, again), Instr("STORE_FAST", LOOKED_AT)]
            edited[load + 1 : load + 1] = [Instr("POP_TOP"), Instr("LOAD_FAST", LOOKED_AT)]
            behind = call.stored + 1
            edited[behind:behind] = looked_at
            call = call if rerun is None else replace(call, last=call.stored + len(looked_at))
        _handle_failure(edited, call, items, rerun, switches)
    return edited.to_code()


def _is_edited(code: CodeType) -> bool:
    """Has the code been here before?  A hook that is registered twice is handed its own code."""
    return SINK in code.co_names or BEFORE in code.co_varnames or is_run_again(code)


def is_run_again(code: CodeType) -> bool:
    """Is it generated code whose frame is run again if its graph raises?"""
    return any(isinstance(constant, Rerun) for constant in code.co_consts)


def announced(code: CodeType, slot: object) -> CodeType:
    """`code`, which was not generated, that first assigns None to an item of the slot."""
    edited = Bytecode.from_code(code)
    first = _begin(edited)
    edited[first:first] = [Instr("LOAD_CONST", part) for part in (None, slot, None)] + [Instr("STORE_SUBSCR")]
    return edited.to_code()


def _begin(edited: Bytecode) -> int:
    """Where the code of the function itself begins."""
    begins = [index + 1 for index, item in enumerate(edited) if isinstance(item, Instr) and item.name == "RESUME"]
    return begins[0] if begins else 0


def _redirect(edited: Bytecode) -> int:
    """Where the one load of the pending list stands, which now loads the sink."""
    loads = [index for index, item in enumerate(edited) if name_in(item) == PENDING]
    if len(loads) != 1:
        raise NotUnderstoodError(f"{len(loads)} uses of {PENDING}")
    load = instruction_at(edited, loads[0])
    if load.name != "LOAD_ATTR" or not _takes_whole_slice(edited, loads[0] + 1):
        raise NotUnderstoodError(f"{load.name} {PENDING} is not followed by an assignment to the whole list")
    load.arg = (load.arg[0], SINK) if isinstance(load.arg, tuple) else SINK
    return loads[0]


def _takes_whole_slice(edited: Bytecode, index: int) -> bool:
    """Is what follows ``[:]``, in any of the forms that the versions of Python have for it?"""
    following = [(item.name, item.arg) for item in edited[index : index + 3] if isinstance(item, Instr)]
    if following[:1] == [("LOAD_CONST", slice(None, None))]:
        return True
    bounds = [("LOAD_CONST", None), ("LOAD_CONST", None)]
    return following[:2] == bounds and len(following) == 3 and following[2][0] in {"BUILD_SLICE", "STORE_SLICE"}


def _handle_failure(edited: Bytecode, call: GraphCall, items: list[Any], rerun: Rerun | None, switches: bool) -> None:
    """Insert the handler around the call of the graph."""
    before = [*_item(rerun or queue.graphmend_failed, [Instr("LOAD_CONST", None)]), Instr("STORE_FAST", BEFORE)]
    if rerun is None:
        modes = Instr("LOAD_FAST", BEFORE) if switches else Instr("LOAD_CONST", None)
        handed_over = [*items, Instr("LOAD_CONST", queue.graphmend_failed), modes]
        _insert_handler(edited, call, [*handed_over, Instr("STORE_SUBSCR")], returns=False)
        if switches:
            edited[call.first : call.first] = before
        return
    if not {*rerun.code.co_freevars} <= {*edited.freevars}:
        raise NotUnderstoodError("the code has lost a part of the closure")
    changing = [item for item in edited[: call.last] if isinstance(item, Instr) and item.name.startswith(_CHANGING)]
    if not {*edited.argnames}.isdisjoint(map(name_in, changing)):
        raise NotUnderstoodError("an argument is no more what it was when the graph is called")
    opcode = "LOAD_FAST" if sys.version_info >= (3, 13) else "LOAD_CLOSURE"
    cells = [Instr(opcode, FreeVar(name)) for name in rerun.code.co_freevars]
    key = [*items, *cells, Instr("BUILD_TUPLE", len(cells)), Instr("BUILD_TUPLE", 2)]
    _insert_handler(edited, call, _item(rerun, key), returns=True)
    if rerun.changes or switches:
        first = _begin(edited)  # random numbers of Python are drawn before the graph is called
        edited[first:first] = before


def _item(owner: object, key: list[Any]) -> list[Any]:
    """``owner[key]``, which needs no calling convention."""
    return [Instr("LOAD_CONST", owner), *key, Instr("BINARY_SUBSCR")]


def _insert_handler(edited: Bytecode, call: GraphCall, body: list[Any], returns: bool) -> None:
    """Put ``try: ... except BaseException: <body>; raise`` around the call, or ``again = <body>`` for the last part.

    Then ``return again[None]`` follows, where no exception is being handled any more.
    """
    handler = Label()
    if sys.version_info >= (3, 11):
        # As that compiles: the cleanup restores the exception around us.
        cleanup, around = Label(), TryBegin(handler, push_lasti=False)
        inside = TryBegin(cleanup, push_lasti=True)
        edited += [handler, inside, Instr("PUSH_EXC_INFO")]
        if returns:
            left = [Instr("SWAP", 2), Instr("POP_EXCEPT"), *_CALLED]
            edited += [Instr("POP_TOP"), *body, TryEnd(inside), *left]
        else:
            edited += [*body, Instr("RERAISE", 0), TryEnd(inside)]
        edited += [cleanup, Instr("COPY", 3), Instr("POP_EXCEPT"), Instr("RERAISE", 1)]
        edited.insert(call.last + 1, TryEnd(around))
        edited.insert(call.first, around)
    else:
        left = [Instr("ROT_FOUR"), Instr("POP_EXCEPT"), *_CALLED] if returns else [Instr("RERAISE", 0)]
        dropped = [Instr("POP_TOP")] * 3 if returns else []
        edited += [handler, *dropped, *body, *left]
        edited.insert(call.last + 1, Instr("POP_BLOCK"))
        edited.insert(call.first, Instr("SETUP_FINALLY", handler))
