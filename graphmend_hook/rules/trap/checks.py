"""Known functions that raise if a condition does not hold, as data; `trap.traced` asks where each is defined."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from ...source.names import unpacks


@dataclass(frozen=True)
class Check:
    """A check function, and how it is called.

    position: where the condition stands among the arguments.
    reads_condition: it takes a Python bool, so a tensor was read into one before; otherwise every element must hold.
    needs_bool: it takes nothing else, a tensor is a TypeError.
    needs_tensor: it takes no Python bool.
    keyword: the condition's parameter.
    raises: the exception, if Python itself might catch it: its name, or where its class stands among the arguments.
    """

    position: int = 0
    reads_condition: bool = True
    needs_bool: bool = False
    needs_tensor: bool = False
    keyword: str = "cond"
    raises: str | int = ""

    def condition(self, call: ast.Call) -> ast.expr | None:
        """The argument that is the condition, None where it cannot be told."""
        if unpacks(call):
            return None
        if len(call.args) > self.position:
            return call.args[self.position]
        return next((keyword.value for keyword in call.keywords if keyword.arg == self.keyword), None)

    def raised(self, call: ast.Call) -> ast.expr | None:
        """Its exception, as `raises` has it, with the class for its place; None where that cannot be told."""
        if isinstance(self.raises, str):
            return ast.copy_location(ast.Constant(self.raises), call)
        return call.args[self.raises] if len(call.args) > self.raises else None


# By bare name; the object is looked at while tracing, and must come from one of the modules of `trap.traced`.
CHECKS = {
    "torch_compilable_check": Check(reads_condition=False),
    "_check": Check(needs_bool=True),
    "_check_index": Check(needs_bool=True, raises="IndexError"),
    "_check_value": Check(needs_bool=True),
    "_check_type": Check(needs_bool=True),
    "_check_not_implemented": Check(needs_bool=True),
    "_check_with": Check(position=1, needs_bool=True, raises=0),
    "_check_tensor_all": Check(reads_condition=False, needs_tensor=True),
    "_check_tensor_all_with": Check(position=1, reads_condition=False, needs_tensor=True, raises=0),
    "_assert": Check(keyword="condition"),
}
