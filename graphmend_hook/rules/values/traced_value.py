"""Tensors whose values are known while tracing: what [Value] calls to read a number out of one without a break.

Where there is no answer most of these give None, and the statement is traced as it was written, from its own frame.
Dynamo inlines these functions and folds their tests; in eager none of them runs.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.compiler import is_dynamo_compiling

from ...dynamo import capture, queue
from ..branches.traced_conditions import has_elements, has_truth, holds_data, undecided
from ..traced_shapes import has_known_shape
from . import traced_contents

CALLED = (  # by rewritten code
    *("item", "tolist", "known", "elements", "decide", "settle", "settled"),
    *("nonzero", "torch_nonzero", "places", "taken", "selected", "read", "positions", "total", "groupby"),
    *("distinct", "torch_distinct", "all_distinct"),
)

_MOST_CONSTANTS = 1024  # of a list, in the trace
_MOST_SYMBOLS = 64  # of a list, in the graph
try:
    from numpy import ndarray  # type: ignore[import-not-found, unused-ignore]

    _ARRAYS: tuple[type, ...] = (ndarray,)
except ImportError:  # torch can do without
    _ARRAYS = ()


def item(tensor: Any) -> Any:
    """``tensor.item()``."""
    if _is_asked(tensor) and has_truth(tensor):
        text = traced_contents.text(tensor)
        if text:
            return _numbers(tensor, text)[0]
        if capture.begin(tensor):
            number = tensor.item()
            capture.end()
            return number
        traced_contents.refuse()
    return None


def tolist(tensor: Any) -> Any:
    """``tensor.tolist()``."""
    listed = _is_asked(tensor) and has_elements(tensor)
    if listed and 0 < tensor.numel() <= _MOST_CONSTANTS:
        text = traced_contents.text(tensor)
        if text:
            found = _nested(_numbers(tensor, text), tensor.shape)
            return found if tensor.dim() else found[0]
        if tensor.dim() == 1 and tensor.numel() <= _MOST_SYMBOLS and capture.begin(tensor):
            found = tensor.tolist()
            capture.end()
            return found
        traced_contents.refuse()
    return None


def read(method: str, tensor: Any) -> Any:
    """``tensor.item()`` or ``tensor.tolist()``, by an answer or as it was written."""
    found = item(tensor) if method == "item" else tolist(tensor)
    return getattr(tensor, method)() if found is None else found


def known(value: Any) -> Any:
    """`value`, or the number that a tensor of one element stands for; likewise the items of a tuple or list."""
    if isinstance(value, torch.Tensor):
        number = item(value)
        return value if number is None else number
    if type(value) is tuple:
        return tuple([known(part) for part in value])
    if type(value) is list:
        return [known(part) for part in value]
    return value


def elements(tensor: Any) -> Any:
    """`tensor`, or a list of its elements where it has one dimension and they are known."""
    found = tolist(tensor) if _is_asked(tensor) and tensor.dim() == 1 else None
    return tensor if found is None else found


def decide(test: Any) -> Any:
    """A test that is about to be asked for its truth, or that truth where it is known.

    While tracing, numbers of numpy are tensors too.
    """
    if is_dynamo_compiling() and isinstance(test, _ARRAYS):
        found = decide(torch.as_tensor(test))
        return test if isinstance(found, torch.Tensor) else found
    return _decide(test)


def _decide(tensor: Any, is_last: bool = True) -> Any:
    if _is_asked(tensor) and has_truth(tensor):
        text = traced_contents.text(tensor)
        if text:
            return _numbers(tensor, text)[0]
        if is_last:
            traced_contents.refuse()
    return tensor


def settle(test: Any) -> Any:
    """The test of a branch whose sides cannot be merged: as `decide`, if the rule [Value] is asked for."""
    return decide(test) if queue.specialise else test


def settled(test: Any) -> Any:
    """Likewise, of a branch that need not be decided."""
    return _decide(test, is_last=False) if queue.specialise else test


def nonzero(tensor: Any, as_tuple: bool) -> Any:
    """``tensor.nonzero(as_tuple=as_tuple)``."""
    if _is_asked(tensor) and holds_data(tensor) and tensor.dim():
        found = _places(tensor)
        if found is not None:
            return found if as_tuple else torch.stack(found).t()  # laid out as `torch.nonzero` does
        return _captured(torch_nonzero, tensor, as_tuple)
    return None


def torch_nonzero(tensor: Any, as_tuple: bool) -> Any:
    """``torch.nonzero``, for rewritten code, where `torch` may be something else."""
    return torch.nonzero(tensor, as_tuple=as_tuple)


def places(tensor: Any, as_tuple: bool) -> Any:
    """``torch.nonzero``, by an answer or as it was written."""
    found = nonzero(tensor, as_tuple)
    return torch_nonzero(tensor, as_tuple) if found is None else found


def selected(container: Any, index: Any) -> Any:
    """``container[index]``, by an answer or as it was written."""
    found = taken(container, index)
    return container[index] if found is None else found


def taken(container: Any, index: Any) -> Any:
    """``container[index]``."""
    if not _is_asked(container):
        return None
    index = positions(container, index)
    if any([_is_mask(part) for part in _parts(index)]):  # noqa: C419
        return _captured(operator.getitem, container, index)
    return container[index]


def positions(container: Any, index: Any) -> Any:
    """`index`, with the places that a mask selects instead of the mask, where they are known."""
    parts = _parts(index)
    if not isinstance(container, torch.Tensor) or not has_known_shape(container) or not _fit(container.shape, parts):
        return index
    found = [place for part in parts for place in _positions_of(part)]
    return index if len(found) == 1 and found[0] is index else tuple(found)


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _fit(shape: Sequence[int], parts: Sequence[Any]) -> bool:
    """Have the masks the shape of the dimensions that they select from?  Places would not tell."""
    dimension = 0
    for number, part in enumerate(parts):
        if part is Ellipsis:
            dimension = len(shape) - sum([_dimensions(later) for later in parts[number + 1 :]])
        elif _is_mask(part) and has_known_shape(part) and part.shape != shape[dimension : dimension + part.dim()]:
            return False
        dimension += _dimensions(part)
    return True


def _dimensions(part: Any) -> int:
    """How many of a tensor's dimensions the part of an index stands for."""
    if part is None or part is Ellipsis or isinstance(part, bool):
        return 0
    return part.dim() if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype is torch.bool


def _positions_of(part: Any) -> tuple[Any, ...]:
    if _is_asked(part) and part.dtype is torch.bool and part.dim() and holds_data(part):
        found = _places(part)
        if found is not None:
            return found
    return (part,)


def distinct(tensor: Any, name: str, counts: bool) -> Any:
    """``torch.unique(tensor)`` or ``torch.unique_consecutive(tensor)``, with how often each stands there perhaps."""
    if _is_asked(tensor) and holds_data(tensor) and tensor.dim() == 1:
        found = _distinct(tensor, name, counts)
        return _captured(torch_distinct, tensor, name, counts) if found is None else found
    return None


def torch_distinct(tensor: Any, name: str, counts: bool) -> Any:
    """``torch.unique`` or ``torch.unique_consecutive``, for rewritten code, where `torch` may be something else."""
    if name == "unique":
        return torch.unique(tensor, return_counts=counts)
    return torch.unique_consecutive(tensor, return_counts=counts)


def all_distinct(tensor: Any, name: str, counts: bool) -> Any:
    """The same, by an answer or as it was written."""
    found = distinct(tensor, name, counts)
    if found is not None:
        return found
    if isinstance(tensor, torch.Tensor):
        return torch_distinct(tensor, name, counts)
    return getattr(tensor, name)(return_counts=counts) if counts else getattr(tensor, name)()


def _distinct(tensor: Any, name: str, counts: bool) -> Any:
    numbers = _all_numbers(tensor)
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


def groupby(items: Any, key: Any) -> Any:
    """``itertools.groupby(items, key)`` of a list that nobody else has; Dynamo traces it of few iterators."""
    if not is_dynamo_compiling():
        return itertools.groupby(items, key)
    groups: list[tuple[Any, list[Any]]] = []
    for item in items:
        found = key(item)
        if groups and groups[-1][0] == found:
            groups[-1][1].append(item)
        else:
            groups.append((found, [item]))
    return [(found, iter(group)) for found, group in groups]


def total(tensor: Any) -> int | None:
    """The sum of whole numbers where they are known, for the `output_size` of ``repeat_interleave``."""
    if not _is_asked(tensor) or not has_elements(tensor):
        return None
    if 0 < tensor.numel() <= _MOST_CONSTANTS and not tensor.dtype.is_floating_point:
        text = traced_contents.text(tensor)
        if text:
            found: int = sum(_numbers(tensor, text))
            return found
        traced_contents.refuse()
    return None


def _captured(operation: Callable[..., Any], *operands: Any) -> Any:
    """What an operation gives whose shape the data decides, as a symbol of the graph; None, recorded, if it may not."""
    if not capture.begin_shape():
        traced_contents.refuse()
        return None
    found = operation(*operands)
    capture.end()
    return found


def _all_numbers(tensor: Any) -> list[Any] | None:
    """The elements, where they are known and not too many for the trace."""
    if not has_known_shape(tensor) or not 0 < tensor.numel() <= _MOST_CONSTANTS:
        return None
    text = traced_contents.text(tensor)
    return _numbers(tensor, text) if text else None


def _places(tensor: Any) -> tuple[torch.Tensor, ...] | None:
    """What ``nonzero(as_tuple=True)`` gives, where the elements are known."""
    numbers = _all_numbers(tensor)
    if numbers is None:
        return None
    chosen = [place for place, number in enumerate(numbers) if number]
    found = []
    for size in reversed(tensor.shape):
        found.append(torch.tensor([place % size for place in chosen], dtype=torch.long, device=tensor.device))
        chosen = [place // size for place in chosen]
    return tuple(reversed(found))


def _is_asked(tensor: Any) -> bool:
    return is_dynamo_compiling() and undecided(tensor)


def _numbers(tensor: torch.Tensor, text: str) -> list[Any]:
    """The elements of `tensor` out of its text (`traced_contents.text`): a string is always a constant of the trace."""
    parts = text.split(" ")
    if tensor.dtype is torch.bool:
        return [part == "True" for part in parts]
    if tensor.dtype.is_floating_point:
        return [float(part) for part in parts]
    return [int(part) for part in parts]


def _nested(flat: list[Any], shape: Sequence[int]) -> list[Any]:
    for size in reversed(shape[1:]):
        flat = [flat[start : start + size] for start in range(0, len(flat), size)]
    return flat
