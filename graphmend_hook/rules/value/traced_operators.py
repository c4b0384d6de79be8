"""A function of a library that goes round as often as its data says: one operator of the graph, which calls it."""

from __future__ import annotations

from typing import Any

from ...engine.door import recurrent  # noqa: F401  the functions of recurrent layers are operators as well
from ...engine.door.library_operators import operator_of
from ...engine.numbers import capture
from ..where import traced_rows


def as_operator(*operands: Any) -> Any:
    """What the function gives that is being traced; None where it is traced as it was written.

    operands: its arguments.
    """
    if traced_rows.is_harmful():
        return None
    operator = operator_of(operands, False)
    if operator is not None:
        traced_rows.expect_failure()  # a graph that fails leaves the modes of torch as they are inside of it
        return operator(*operands)
    operator = operator_of(operands, True)
    if operator is None or not capture.begin_shape():
        return None
    traced_rows.expect_failure()
    found = operator(*operands)
    capture.end()
    return found
