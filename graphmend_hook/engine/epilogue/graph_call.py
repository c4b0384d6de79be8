"""Where generated code calls its graph.

Between the load of the graph's callable and the call stand the arguments, and since torch 2.15 branches that tell a
profiler of them::

    LOAD_GLOBAL __compiled_fn_...  <arguments, with jumps among them>  CALL  STORE_FAST graph_out_0

So the call is found by following every path with the depth of the stack: it is the one that takes the callable off.
"""

from __future__ import annotations

from dataclasses import dataclass

from bytecode import Bytecode, Instr, Label
from bytecode.instr import CellVar, FreeVar, TryBegin, TryEnd

_CALLABLE = "__compiled_fn"  # how Dynamo names the globals that hold what a backend gave it for a graph


class NotUnderstoodError(Exception):
    """The generated code has a form that these edits do not know."""


@dataclass(frozen=True)
class GraphCall:
    """The instructions from the load of the graph's callable to the call, first and last.

    output: the local that the output is stored in; "" where the output is dropped, or goes another way.
    stored: the instruction that stores it there, else the call.
    """

    first: int
    last: int
    output: str
    stored: int


def name_in(item: object) -> str:
    """The name that an instruction has for its operand, beside which there may be flags; "" where it has none."""
    arg = item.arg if isinstance(item, Instr) else None
    if isinstance(arg, (CellVar, FreeVar)):
        return arg.name
    name = arg[-1] if isinstance(arg, tuple) and arg else arg
    return name if isinstance(name, str) else ""


def instruction_at(edited: Bytecode, index: int) -> Instr:
    """The instruction at the index; raises NotUnderstoodError where there is none, or something else."""
    item = edited[index] if 0 <= index < len(edited) else None
    if not isinstance(item, Instr):
        raise NotUnderstoodError(f"no instruction where one was expected, but {item}")
    return item


def graph_calls(edited: Bytecode) -> list[GraphCall]:
    """The calls of graphs in this code, none if it has no graph; raises NotUnderstoodError for what may be one."""
    firsts = [index for index, item in enumerate(edited) if name_in(item).startswith(_CALLABLE)]
    return [_call(edited, first) for first in firsts]


def _call(edited: Bytecode, first: int) -> GraphCall:
    load = instruction_at(edited, first)
    if load.name != "LOAD_GLOBAL":
        raise NotUnderstoodError(f"{load.name} {load.arg} does not load a graph to call it")
    if _is_in_handler(edited, first):
        raise NotUnderstoodError("a handler is around the call of the graph")
    last, reached = _follow(edited, first)
    _check_entries(edited, first, last, reached)
    return GraphCall(first, last, *_output(edited, last))


def _output(edited: Bytecode, call: int) -> tuple[str, int]:
    """The local that takes what the call gives, and where; up to torch 2.14 arguments' locals are deleted before."""
    for index, item in enumerate(edited[call + 1 :], call + 1):
        if not (isinstance(item, Instr) and item.name in ("DELETE_FAST", "NOP")):
            return (name_in(item), index) if isinstance(item, Instr) and item.name == "STORE_FAST" else ("", call)
    return "", call


def _is_in_handler(edited: Bytecode, index: int) -> bool:
    """Does an exception at the index go to a handler in this code?  Before Python 3.11 any block before it says so."""
    opened: set[TryBegin] = set()
    for item in edited[:index]:
        if isinstance(item, TryBegin):
            opened.add(item)
        elif isinstance(item, TryEnd):
            opened.discard(item.entry)
        elif isinstance(item, Instr) and item.name.startswith("SETUP_"):
            return True
    return bool(opened)


def _follow(edited: Bytecode, first: int) -> tuple[int, set[int]]:
    """The index of the call that takes off what is loaded at `first`, and all that lies on the ways to it."""
    targets = {id(item): index for index, item in enumerate(edited) if isinstance(item, Label)}
    lowest = instruction_at(edited, first).stack_effect()  # the callable, and the NULL that may come with it
    depths: dict[int, int] = {}  # of the stack before each item, above what was on it before the load
    waiting, calls = [(first + 1, lowest)], set()
    while waiting:
        index, depth = waiting.pop()
        if depths.setdefault(index, depth) != depth:
            raise NotUnderstoodError("ways to the call of the graph meet at different depths of the stack")
        item = edited[index] if index < len(edited) else None
        if isinstance(item, Label):
            following = [(index + 1, depth)]
        elif not isinstance(item, Instr) or _ends(item):
            raise NotUnderstoodError(f"{item} on the way to the call of the graph")
        elif _calls_lowest(item, depth):
            calls.add(index)
            continue
        else:
            if depth + item.pre_and_post_stack_effect()[0] < lowest:
                raise NotUnderstoodError(f"{item} takes the callable of the graph")
            following = [(index + 1, depth + item.stack_effect(jump=False))] if not item.is_uncond_jump() else []
            if item.has_jump():
                following.append((targets[id(item.arg)], depth + item.stack_effect(jump=True)))
        waiting += [way for way in following if depths.get(way[0]) != way[1]]
    if len(calls) != 1:
        raise NotUnderstoodError(f"{len(calls)} calls of the graph")
    return calls.pop(), {*depths}


def _ends(instruction: Instr) -> bool:
    """Does it leave the code, or begin a block with a handler?"""
    return (instruction.is_final() and not instruction.has_jump()) or instruction.name.startswith("SETUP_")


def _calls_lowest(instruction: Instr, depth: int) -> bool:
    """Is it a call that leaves nothing on the stack but its result, and so takes off what was loaded first?"""
    return instruction.name.startswith("CALL") and depth + instruction.stack_effect() == 1


def _check_entries(edited: Bytecode, first: int, last: int, reached: set[int]) -> None:
    """Raise unless the items from first to last are entered at the first and left at the last alone."""
    if min(reached) < first or max(reached) > last:
        raise NotUnderstoodError("a jump out of the arguments of the graph")
    inside = {id(item) for item in edited[first : last + 1] if isinstance(item, Label)}
    for index, item in enumerate(edited):
        if not first <= index <= last and isinstance(item, Instr) and item.has_jump() and id(item.arg) in inside:
            raise NotUnderstoodError("a jump into the arguments of the graph")
