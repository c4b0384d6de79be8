"""The edit of Dynamo's generated code, by the `bytecode` library: the replay assigns to the sink.

Dynamo replays appends to a module's list by assigning to the whole of it after the call of the graph::

    <the items>  LOAD_GLOBAL __import_...  LOAD_ATTR queue  LOAD_ATTR graphmend_pending  <slice>  ...  STORE_SUBSCR

Loading ``graphmend_sink`` instead is all that the edit does.
"""

from __future__ import annotations

from types import CodeType

from bytecode import Bytecode, Instr

PENDING, SINK = "graphmend_pending", "graphmend_sink"


class NotUnderstood(Exception):
    """The code reaches for `graphmend_pending` in a way that this edit does not know."""


def redirect_replay(code: CodeType) -> CodeType | None:
    """`code` with its replay redirected to the sink, None if there is none.  Raises NotUnderstood."""
    if PENDING not in code.co_names:
        return None
    edited = Bytecode.from_code(code)
    instructions = [item for item in edited if isinstance(item, Instr)]
    for index, load in enumerate(instructions):
        if _name(load) != PENDING:
            continue
        if load.name != "LOAD_ATTR" or not _slices_everything(instructions[index + 1 :]):
            raise NotUnderstood(f"{load.name} {PENDING} is not followed by an assignment to the whole list")
        load.arg = (load.arg[0], SINK) if isinstance(load.arg, tuple) else SINK
    return edited.to_code()


def _name(instruction: Instr) -> object:
    """The operand if it is a name, which some opcodes have in a pair with a flag since Python 3.11."""
    arg = instruction.arg
    return arg[1] if isinstance(arg, tuple) and len(arg) == 2 and isinstance(arg[0], bool) else arg


def _slices_everything(following: list[Instr]) -> bool:
    """Is the next thing pushed ``slice(None, None)``?"""
    first = following[0]
    if first.name == "LOAD_CONST" and first.arg == slice(None, None):
        return True
    return [(item.name, item.arg) for item in following[:3]] == [
        ("LOAD_CONST", None),
        ("LOAD_CONST", None),
        ("BUILD_SLICE", 2),
    ]
