"""The expression that builds the deferred items, made once more for where the graph has given no output."""

from __future__ import annotations

from typing import Any

from bytecode import Bytecode, Instr

from ..runtime import queue
from .graph_call import GraphCall
from .instructions import NotUnderstoodError, instruction_at, name_in

# What the expression may consist of; anything else is not done a second time.
_PURE = (
    *("LOAD_", "BUILD_", "BINARY_", "LIST_", "COPY", "SWAP", "DUP_TOP", "ROT_", "STORE_FAST"),
    *("PUSH_NULL", "PRECALL", "CALL", "KW_NAMES", "MAKE_FUNCTION"),
)


def rebuilt(edited: Bytecode, load: int, call: GraphCall) -> list[Any]:
    """Instructions that build the items that the replay at `load` assigns, with what the graph would give missing."""
    owner = expression_start(edited, load)
    start = expression_start(edited, owner - 1)
    bound = {*edited.argnames, *_stored(edited[: call.last])}
    copy: list[Any] = []
    for item in edited[start:owner]:
        if not isinstance(item, Instr) or not item.name.startswith(_PURE):
            raise NotUnderstoodError(f"{item} in the expression that builds the items")
        if item.name.startswith("LOAD_FAST"):
            copy += _read(edited, start, item, call.output, {*bound, *_stored(copy)})
            continue
        copy.append(item.copy())
        if item.name == "LOAD_ATTR" and name_in(item) == "Size":  # it takes no missing sizes
            copy += [Instr("POP_TOP"), Instr("LOAD_CONST", queue.size_of)]
    return copy


def expression_start(edited: Bytecode, end: int) -> int:
    """The index of the first instruction of the expression whose last one is at `end`."""
    needed, index = 1, end + 1
    while needed:
        index -= 1
        item = instruction_at(edited, index)  # a label is none: there may be a jump into the expression
        if item.has_jump():
            raise NotUnderstoodError(f"{item} in an expression")
        pops, pushes = item.pre_and_post_stack_effect()
        needed += -pops - pushes
    return index


def _stored(items: list[Any]) -> set[object]:
    """The locals that the instructions store to."""
    return {item.arg for item in items if isinstance(item, Instr) and item.name == "STORE_FAST"}


def _read(edited: Bytecode, start: int, load: Instr, output: str, bound: set[object]) -> list[Any]:
    """What reads the locals that `load` reads, as they are where the graph has failed."""
    read: list[Any] = []
    for name in load.arg if isinstance(load.arg, tuple) else (load.arg,):
        if name == output:
            read.append(Instr("LOAD_CONST", queue.MISSING))
        elif name in bound:
            read.append(Instr("LOAD_FAST", name))
        else:
            read += _looked_up(edited, start, name)
    return read


def _looked_up(edited: Bytecode, before: int, temporary: object) -> list[Any]:
    """The expression that a local made after the graph stands for, if it is a global or an attribute of one."""
    stores = [index for index, item in enumerate(edited[:before]) if temporary in _stored([item])]
    if len(stores) != 1:
        raise NotUnderstoodError(f"{temporary} is not stored once")
    last = stores[0] - 1
    if instruction_at(edited, last).name in ("COPY", "DUP_TOP"):
        last -= 1
    first = last
    while instruction_at(edited, first).name == "LOAD_ATTR":
        first -= 1
    if instruction_at(edited, first).name != "LOAD_GLOBAL":
        raise NotUnderstoodError(f"{temporary} cannot be made a second time")
    looked_up = [instruction_at(edited, index).copy() for index in range(first, last + 1)]
    if isinstance(looked_up[0].arg, tuple):
        looked_up[0].arg = (False, name_in(looked_up[0]))  # the mark of a call comes with what is called
    return looked_up
