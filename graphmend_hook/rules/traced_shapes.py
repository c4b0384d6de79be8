"""What the trace knows of a tensor's shape."""

from __future__ import annotations

from typing import Any

from torch.compiler import is_dynamo_compiling

from ..dynamo.question import question
from ..dynamo.trace import Trace
from ..dynamo.variables import Variable, fake_of, is_unbacked


def has_known_shape(tensor: Any) -> bool:
    """Are all sizes of the tensor numbers, or symbols with a value in the trace?  Asking for others breaks it."""
    return not is_dynamo_compiling() or not _has_unbacked_size(tensor)


@question(otherwise=True)
def _has_unbacked_size(_trace: Trace, tensor: Variable) -> bool:
    return is_unbacked(fake_of(tensor).shape)
