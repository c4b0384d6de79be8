"""``x.unsqueeze_(0)``, and then ``x.dim()``: up to torch 2.13 Dynamo still has the shape of before.

What ends a graph before it in stock need not end it here, so code that PyTorch gets right would go wrong.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .question import at_connection
from .tracer import covered_trace_at


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo looks whether a tensor has been written to, from now on."""
    from torch._dynamo.variables.tensor import TensorVariable

    otherwise = getattr(TensorVariable, "_sync_if_inplace_mutation", None)
    if otherwise is None or "has_tensor_arg" not in inspect.signature(otherwise).parameters:
        return  # since torch 2.14 it looks at the shape whatever the method is given

    @functools.wraps(otherwise)
    def synchronize(tensor: Any, translator: Any, version_before: int | None, has_tensor_arg: bool) -> None:
        otherwise(tensor, translator, version_before, has_tensor_arg or covered_trace_at(translator) is not None)

    TensorVariable._sync_if_inplace_mutation = synchronize
