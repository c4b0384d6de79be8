"""A function of a library that goes round as often as its data says: one operator of the graph, which calls it."""

from __future__ import annotations

from typing import Any

from ...dynamo import capture
from ...dynamo.library_operators import operator_of

CALLED = ("as_operator",)  # by rewritten code


def as_operator(*operands: Any) -> Any:
    """What the function gives that is being traced; None where it is traced as it was written.

    operands: its arguments.
    """
    operator = operator_of(operands, False)
    if operator is not None:
        return operator(*operands)
    operator = operator_of(operands, True)
    if operator is None or not capture.begin_shape():
        return None
    found = operator(*operands)
    capture.end()
    return found
