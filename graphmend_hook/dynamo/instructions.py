"""What the edits of generated code ask of single instructions, as the `bytecode` library has them."""

from __future__ import annotations

from bytecode import Bytecode, Instr
from bytecode.instr import CellVar, FreeVar


class NotUnderstoodError(Exception):
    """The generated code has a form that these edits do not know."""


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
