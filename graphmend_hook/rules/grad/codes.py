"""What [Grad] says of a tensor that is told to require a gradient as it was written."""

from __future__ import annotations

from ...diagnostics import code

NOT_PLAIN = code(
    "GM106-T01",
    sentence="what is told to require a gradient raises, or a function transform is at work",
    remedy="Set `requires_grad` before the call of the compiled function, or leave it out.",
    because="the tensor is no plain tensor of floats, or a function transform is at work",
)
CAN_BE_TOLD = code(
    "GM106-T02",
    sentence="the tensor is older than the graph, or what requires its gradient can be told: an operation on it gives what requires no gradient otherwise, it leaves the graph, or code asks for a `requires_grad`",
    remedy="Set `requires_grad` before the call of the compiled function.",
    because="somebody can tell, or an input of the graph was used before, or is not used behind it, or a guard stands before it that may raise",
)
