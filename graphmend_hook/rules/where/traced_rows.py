"""``table[index]`` by one whole number that the data decides: a copy of the row, which nobody can tell from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ...engine.attempt.attempt import STATEMENT
from ...engine.door.question import question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, tensor_node
from ...engine.epilogue.deferral import is_in_a_body, is_transformed
from ...engine.epilogue.rerun import keep
from ...engine.numbers.runtime_asserts import IN_SIDE, assert_on_host
from ..shared import traced_selection, traced_sides
from ..shared.traced_operations import is_tensor

_WHOLE = (torch.int16, torch.int32, torch.int64)  # dtypes of an index; that of a mask is none of them


def is_number(index: Any) -> bool:
    """Is it a plain tensor () that selects a row, and no mask?"""
    return is_tensor(index) and index.dim() == 0 and index.dtype in _WHOLE


def row(table: torch.Tensor, index: torch.Tensor, taken: torch.Tensor | None = None) -> Any:
    """``table[index]``, where `is_number(index)`; None where it has to be traced as it was written.

    table: of a known shape.  taken: is the side taken in which it stands, as a tensor () of bool?  If not, the
    first row is given.  Where the index is out of bounds, the graph fails, and the frame as it was written says so.
    """
    if not is_tensor(table) or (
        index.device != table.device
        or table.dim() == 0
        or table.shape[0] == 0
        or table.requires_grad
        or not table.is_contiguous()
        or is_harmful()
        or is_in_a_body()
        or is_transformed()  # where nothing can be asserted
    ):
        return None
    length = table.shape[0]
    fits = (index >= -length) & (index < length)
    expect_failure()
    holds = fits if taken is None else fits | ~taken
    assert_on_host(holds, "graphmend_hook: index out of bounds" if taken is None else IN_SIDE)
    place = torch.where(fits if taken is None else fits & taken, index, torch.zeros_like(index))
    place = torch.where(place < 0, place + length, place)
    found = table.index_select(0, place.reshape(1))
    if taken is not None:
        remember(found)
    item = found.reshape(table.shape[1:])
    traced_selection.expect_no_alias(table, item)
    return item


@dataclass
class Rows:
    """The operations of an attempt that look up a row that is there, whatever the data is."""

    nodes: set[torch.fx.Node] = field(default_factory=set)


@question(otherwise=None)
def remember(trace: Trace, found: Variable) -> None:
    """Remember that the operation which has found the row fails on no data."""
    trace.compilation.of(Rows).nodes.add(tensor_node(found))


@question(otherwise=True)
def is_harmful(trace: Trace) -> bool:
    """Is the statement to be traced as it was written, as the frame cannot be run again?"""
    return traced_sides.is_harmful(trace)


@question(otherwise=None)
def expect_failure(trace: Trace) -> None:
    """The frame is run again if its graph fails; where it may not be, the statement is traced as it was written."""
    line, reason = trace.line, "the statement may fail in the graph, and the frame cannot be run again"
    keep(trace.compilation).otherwise.add(lambda compilation: compilation.without(STATEMENT.at(line), reason=reason))
