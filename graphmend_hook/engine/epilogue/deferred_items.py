"""The expression that builds the deferred items, made once more: right behind the graph, or where that has failed."""

from __future__ import annotations

from typing import Any

from bytecode import Bytecode, Instr

from . import queue
from .graph_call import GraphCall, NotUnderstoodError, instruction_at, name_in

# What the expression may consist of; anything else is not done a second time.
_PURE = (
    *("LOAD_", "BUILD_", "BINARY_", "LIST_", "COPY", "SWAP", "DUP_TOP", "ROT_", "STORE_FAST"),
    *("PUSH_NULL", "PRECALL", "CALL", "KW_NAMES", "MAKE_FUNCTION"),
)


def rebuilt(edited: Bytecode, load: int, call: GraphCall, has_output: bool = False) -> list[Any]:
    """Instructions that build the items that the replay at `load` assigns, right behind the call of the graph.

    has_output: the graph has ended; else what it would give is missing.
    """
    owner = _expression_start(edited, load)
    items = range(_expression_start(edited, owner - 1), owner)
    bound = {*edited.argnames, *_stored(edited[: call.stored + 1 if has_output else call.last])}
    return _again(edited, items, items, "" if has_output else call.output, bound)


def _again(edited: Bytecode, part: range, items: range, output: str, bound: set[object]) -> list[Any]:
    """The instructions of the part, for where there is no output of the graph.  What they store to becomes bound."""
    copy: list[Any] = []
    for item in edited[part.start : part.stop]:
        if not isinstance(item, Instr) or not item.name.startswith(_PURE):
            raise NotUnderstoodError(f"{item} in the expression that builds the items")
        if item.name.startswith("LOAD_FAST"):
            for name in item.arg if isinstance(item.arg, tuple) else (item.arg,):
                if name == output:
                    copy.append(Instr("LOAD_CONST", queue.MISSING))
                    continue
                if name not in bound:
                    copy += _made(edited, name, items, output, bound)
                copy.append(Instr("LOAD_FAST", name))
            continue
        copy.append(item.copy())
        bound |= _stored([item])
        if item.name == "LOAD_ATTR" and name_in(item) == "Size":  # it takes no missing sizes
            copy += [Instr("POP_TOP"), Instr("LOAD_CONST", queue.size_of)]
    return copy


def _made(edited: Bytecode, name: object, items: range, output: str, bound: set[object]) -> list[Any]:
    """What makes, once more, the local that is made after the graph for the items."""
    stores = [index for index, item in enumerate(edited) if name in _stored([item])]
    end = stores[0] - 1 if len(stores) == 1 else -1
    if instruction_at(edited, end).name in ("COPY", "DUP_TOP"):
        end -= 1
    if end >= items.start or _may_change(edited, end, items, name):
        raise NotUnderstoodError(f"{name} cannot be made a second time")
    made = _again(edited, range(_expression_start(edited, end), end + 1), items, output, bound)
    left = sum(item.stack_effect() for item in made)
    if left == 2 and made[0].name == "LOAD_GLOBAL":
        made[0].arg, left = (False, name_in(made[0])), 1  # the mark of a call comes with what is called
    if left != 1:
        raise NotUnderstoodError(f"{name} is not one value")
    bound.add(name)
    return [*made, Instr("STORE_FAST", name)]


def _may_change(edited: Bytecode, end: int, items: range, name: object) -> bool:
    """May what is made there be changed before the items are built?  Not if it is looked up, or merely kept."""
    made = instruction_at(edited, end)
    is_argument = made.name.startswith("LOAD_FAST") and {name_in(made)} <= {*edited.argnames} - _stored(edited)
    is_item = made.name == "BINARY_SUBSCR" and instruction_at(edited, end - 1).name == "LOAD_CONST"
    if is_argument or is_item or made.name in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR"):
        return False
    reads = [index for index, item in enumerate(edited[: items.start]) if _reads(item, name)]
    return not all(_is_merely_kept(edited, index, items.start) for index in reads)


def _is_merely_kept(edited: Bytecode, read: int, stop: int) -> bool:
    """Does nothing before `stop` take what is read there off the stack, but to put it into a container?"""
    depth = 1
    for index in range(read + 1, stop):
        pops, pushes = instruction_at(edited, index).pre_and_post_stack_effect()
        if depth + pops < 1:
            return instruction_at(edited, index).name.startswith("BUILD_")
        depth += pops + pushes
    return True


def _reads(item: object, name: object) -> bool:
    if not isinstance(item, Instr) or not item.name.startswith("LOAD_FAST"):
        return False
    return name in (item.arg if isinstance(item.arg, tuple) else (item.arg,))


def _expression_start(edited: Bytecode, end: int) -> int:
    """The index of the first instruction of the expression whose last one is at `end`."""
    needed, index = 1, end + 1
    while needed > 0:
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
