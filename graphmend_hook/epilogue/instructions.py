"""What the edits of generated code ask of single instructions, as the `bytecode` library has them."""

from __future__ import annotations

from bytecode import Bytecode, Instr


class NotUnderstoodError(Exception):
    """The generated code has a form that these edits do not know."""


def operand(instruction: Instr) -> object:
    """The operand; the last name where there is more, such as a flag beside the name of a global."""
    arg = instruction.arg
    return arg[-1] if isinstance(arg, tuple) and arg and isinstance(arg[-1], str) else arg


def instruction_at(edited: Bytecode, index: int) -> Instr:
    """The instruction at the index; raises NotUnderstoodError where there is none, or something else."""
    item = edited[index] if 0 <= index < len(edited) else None
    if not isinstance(item, Instr):
        raise NotUnderstoodError(f"no instruction where one was expected, but {item}")
    return item
