"""Why a tensor is told to require a gradient as it was written: codes and sentences, by the name of the rule."""

from __future__ import annotations

_GRAD = {
    "GM106-T01": "what is told to require a gradient raises, or a function transform is at work",
    "GM106-T02": "the tensor is older than the graph, or what requires its gradient can be told: an operation on it "
    "gives what requires no gradient otherwise, it leaves the graph, or code asks for a `requires_grad`",
}
REFUSALS = {"grad": _GRAD}
