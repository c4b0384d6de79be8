"""Tensors whose shapes the data decides: what [Value] calls to get one that is known, or a symbol for its size.

Where there is neither these give None, and the expression is traced as it was written, from its own frame.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...engine.attempt.restart import expect_success
from ...engine.door.question import in_trace, question
from ...engine.door.tracer import Trace
from ...engine.door.variables import Variable, tensor_node
from ...engine.epilogue.deferral import is_in_a_body, is_transformed
from ...engine.facts import ranges
from ...engine.facts.truths import is_same_mask
from ...engine.numbers import capture
from ...engine.numbers.captured_items import selected
from ...engine.numbers.runtime_asserts import assert_on_host
from ..shared import traced_sides
from ..shared.traced_conditions import are_same_shapes, has_elements, holds_data, is_left_alone
from ..shared.traced_operations import has_known_shape, is_tensor
from ..where import traced_rows
from . import traced_contents
from .traced import as_tensor, is_asked, is_traced, item, on_host
from .traced_contents import are_distinct_captured, known_elements
from .traced_lonely_masks import may_be_viewed, may_fill, widened

_MOST_COUNTED = 1 << 22  # comparisons, in the place of a count


def nonzero(tensor: Any, as_tuple: bool) -> Any:
    """``tensor.nonzero(as_tuple=as_tuple)``."""
    if is_asked(tensor) and holds_data(tensor) and tensor.dim():
        found = _places(tensor, not traced_sides.is_in_region())
        if found is not None:
            return found if as_tuple else torch.stack(found).t()  # laid out as `torch.nonzero` does
        return _captured(torch.nonzero, tensor, as_tuple=as_tuple)
    return None


def taken(container: Any, index: Any) -> Any:
    """``container[index]``."""
    return _taken(container, index, True)


def taken_in_side(container: Any, mask: torch.Tensor) -> Any:
    """The same in a side, which is traced once for all masks."""
    return _taken(container, mask, False)


def masked(container: Any, mask: Any) -> Any:
    """``torch.masked_select(container, mask)``, which takes masks of other shapes, too."""
    is_index = is_tensor(container) and is_tensor(mask) and mask.dtype is torch.bool
    if is_index and has_known_shape(container) and are_same_shapes(container.shape, mask.shape) is True:
        return _taken(container, mask, not traced_sides.is_in_region())
    return None


def _taken(container: Any, index: Any, of_inputs: bool) -> Any:
    if not is_traced(container):
        return None
    number = as_tensor(index)
    if traced_rows.is_number(number):
        return _row(container, number) if is_asked(container) else None
    items = selected(container, index)
    if items is not None:
        return items
    masks = [part for part in _parts(index) if _is_mask(part)]
    if not masks or not is_asked(container):  # no break without a mask
        return None
    if not all([is_tensor(given) for given in (container, *masks)]):  # noqa: C419  Dynamo: no generators
        return None
    if masks[0] is index and index.dim() == 0 and may_be_viewed(container):
        return _captured(operator.getitem, container.unsqueeze(0), widened(index))
    if any([mask.dim() == 0 for mask in masks]):  # noqa: C419
        return None  # of which Dynamo has no shape
    places = _positions(container, index, of_inputs)
    selecting = (_known_mask(index) if masks[0] is index else index) if places is None else places
    if any([_is_mask(part) for part in _parts(selecting)]):  # noqa: C419
        return _captured(operator.getitem, container, selecting)
    return None if places is None else container[places]


@dataclass
class _Masks:
    """The masks that have selected in an attempt."""

    found: list[Variable] = field(default_factory=list)


@question(otherwise=None)
def _find_mask(trace: Trace, mask: Variable) -> Any:
    """A mask that has selected before, and is the same; None if there is none.

    So the data decides one number of what both select.
    """
    if trace.is_in_a_body or mask.is_python_constant():
        return None
    masks, node = trace.compilation.of(_Masks).found, tensor_node(mask)
    for known in masks:
        if is_same_mask(trace, tensor_node(known), node):
            return known
    masks.append(mask.realize())
    return None


def _known_mask(mask: Any) -> Any:
    found = _find_mask(mask) if in_trace() else None
    return mask if found is None else found


def _row(table: Any, index: Any) -> Any:
    found = None
    if has_known_shape(table):
        numbers = known_elements(index, of_inputs=False)
        if numbers is not None and table.dim() and -table.shape[0] <= numbers[0] < table.shape[0]:
            return table[numbers[0]]
        found = traced_rows.row(table, index)
    if found is None:
        traced_contents.refuse()
    return found


def written_to(container: Any, index: Any, value: Any) -> tuple[Any, Any]:
    """`container` and `index` in ``container[index] = value``.

    Where a mask selects, one number of another dtype is converted; where places do, it is refused.  What the inputs of
    the frame hold is not asked: Dynamo traces a write at a mask as it is.
    """
    items = selected(container, index)
    if items is not None:
        return items, ...
    is_lonely = _is_mask(index) and index.dim() == 0 and is_traced(container) and not is_left_alone()
    if is_lonely and may_fill(container, value) and is_asked(index):
        expect_success()
        return container.unsqueeze(0), widened(index)
    converts = isinstance(value, torch.Tensor) and is_traced(container) and value.dtype != container.dtype
    places = None if converts else _positions(container, index, of_inputs=False)
    return container, index if places is None else places


def _positions(container: Any, index: Any, of_inputs: bool = True) -> tuple[Any, ...] | None:
    """`index`, with the places that masks select instead of the masks; None where those of none are known."""
    parts = _parts(index)
    if not is_tensor(container) or not has_known_shape(container) or not _fit(container.shape, parts):
        return None
    known = [_positions_of(part, of_inputs) for part in parts]
    if all([places is None for places in known]):  # noqa: C419  Dynamo: no generators
        return None
    found: list[Any] = []
    for part, places in zip(parts, known):  # noqa: B905  Dynamo: no strict=
        found.extend((part,) if places is None else places)
    return tuple(found)


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _fit(shape: Sequence[int], parts: Sequence[Any]) -> bool:
    """Has each mask the shape of the dimensions that it selects from?  Where it has not it fails; places would not."""
    dimension = 0
    for number in range(len(parts)):  # Dynamo: no generators, and `enumerate` is one
        part = parts[number]
        if part is Ellipsis:
            dimension = len(shape) - sum([_dimensions(later) for later in parts[number + 1 :]])
        elif _is_mask(part) and has_known_shape(part) and not _selects(part, shape[dimension:]):
            return False
        dimension += _dimensions(part)
    return True


def _selects(mask: torch.Tensor, shape: Sequence[Any]) -> bool:
    return are_same_shapes(mask.shape, shape[: mask.dim()]) is True


def _dimensions(part: Any) -> int:
    """How many of a tensor's dimensions the part of an index stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.dim() if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype is torch.bool


def _positions_of(part: Any, of_inputs: bool) -> tuple[Any, ...] | None:
    is_known = _is_mask(part) and part.dim() and is_asked(part) and holds_data(part)
    return _places(part, of_inputs) if is_known else None


def distinct(tensor: Any, name: str, inverse: bool, counts: bool) -> Any:
    """``torch.unique(tensor)`` or ``torch.unique_consecutive(tensor)``, with where, and how often, each stands."""
    if not is_asked(tensor) or not holds_data(tensor) or not tensor.dim():
        return None
    found = None if inverse or tensor.dim() > 1 else _distinct(tensor, name, counts)
    if found is not None:
        return found
    operation = torch.unique if name == "unique" else torch.unique_consecutive
    return _captured(operation, tensor, return_inverse=inverse, return_counts=counts)


def _distinct(tensor: Any, name: str, counts: bool) -> Any:
    numbers = known_elements(tensor, of_inputs=not are_distinct_captured(tensor))
    # -0.0 is equal to 0.0: which of them is kept is torch's own affair.
    if numbers is None or any([str(number) == "-0.0" for number in numbers]):  # noqa: C419
        return None
    found: list[list[Any]] = []
    for number in sorted(numbers) if name == "unique" else numbers:
        if found and found[-1][0] == number:
            found[-1][1] += 1
        else:
            found.append([number, 1])
    made = torch.tensor([number for number, _ in found], dtype=tensor.dtype, device=tensor.device)
    return (made, torch.tensor([count for _, count in found], device=tensor.device)) if counts else made


def repeated(tensor: Any, counts: Any, dim: Any = None) -> Any:
    """``torch.repeat_interleave(tensor, counts, dim)``, or without a tensor, ``torch.repeat_interleave(counts)``."""
    if not is_asked(counts) or not has_elements(counts) or counts.dtype not in (torch.int32, torch.int64):
        return None
    if counts.dim() != 1 if tensor is None else not _has_a_count_each(tensor, counts, dim):
        return None
    numbers = known_elements(counts)
    if numbers is None:
        return _captured(torch.repeat_interleave, *((counts,) if tensor is None else (tensor, counts, dim)))
    if any([number < 0 for number in numbers]):  # noqa: C419
        traced_contents.refuse()
        return None
    if tensor is None:
        return torch.repeat_interleave(counts, output_size=sum(numbers))
    if len(numbers) == 1:  # of all rows
        return torch.repeat_interleave(tensor, numbers[0], dim)
    return torch.repeat_interleave(tensor, counts, dim, output_size=sum(numbers))


def _has_a_count_each(tensor: Any, counts: Any, dim: Any) -> bool:
    """Is there a count for each row of a tensor beside them, or one for all?"""
    if not is_asked(tensor) or not has_elements(tensor) or counts.dim() > 1 or tensor.device != counts.device:
        return False
    if dim is not None and not (type(dim) is int and -tensor.dim() <= dim < tensor.dim()):
        return False
    return bool(counts.numel() in (1, tensor.numel() if dim is None else tensor.shape[dim]))


def counted(tensor: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """``torch.bincount(tensor, weights, minlength)``."""
    if is_asked(tensor) and has_elements(tensor) and tensor.dim() == 1 and type(minlength) is int:
        if weights is None and ranges.are_below(tensor, minlength) and tensor.numel() * minlength <= _MOST_COUNTED:
            expect_success()
            return (tensor.unsqueeze(-1) == torch.arange(minlength, device=tensor.device)).sum(0)
        return _captured(torch.bincount, tensor, weights, minlength)
    return None


def one_hot(tensor: Any) -> Any:
    """``torch.nn.functional.one_hot(tensor)``: as many classes as the largest number says."""
    if not is_asked(tensor) or not has_elements(tensor) or tensor.dtype is not torch.int64 or not tensor.numel():
        return None
    if traced_rows.is_harmful() or is_in_a_body() or is_transformed():
        return None
    least, most = tensor.min(), tensor.max()
    if tensor.device.type != "cpu":  # `is_cpu` would be an operation of the graph
        least, most = on_host(torch.stack((least, most)))
    classes = item(most + 1)
    if classes is None:
        return None
    traced_rows.expect_failure()
    assert_on_host(least >= 0, "graphmend_hook: a class is below zero")
    places = torch.arange(classes, device=tensor.device)  # `one_hot` itself takes no symbol
    return (tensor.contiguous().unsqueeze(-1) == places).long()


def operated(operator: Any, *operands: Any) -> Any:
    """``operator(*operands)``, of an operator of `torch.ops` that is not torch's own, such as ``nms``."""
    if in_trace() and capture.is_shaped_by_data(operator, operands):
        return _captured(operator, *operands)
    return None


def _captured(operation: Callable[..., Any], *operands: Any, **options: Any) -> Any:
    """What the operation gives, with a symbol for the size that data decides; None, recorded, where none is allowed."""
    if not capture.begin_shape():
        traced_contents.refuse()
        return None
    found = operation(*operands, **options)
    capture.end()
    return found


def _places(tensor: Any, of_inputs: bool = True) -> tuple[torch.Tensor, ...] | None:
    """What ``nonzero(as_tuple=True)`` gives, where the elements are known."""
    numbers = known_elements(tensor, of_inputs)
    if numbers is None:
        return None
    chosen = [place for place in range(len(numbers)) if numbers[place]]
    found = []
    for size in reversed(tensor.shape):
        found.append(torch.tensor([place % size for place in chosen], dtype=torch.long, device=tensor.device))
        chosen = [place // size for place in chosen]
    return tuple(reversed(found))
