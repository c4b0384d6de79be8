"""Why a loop is not swept while Dynamo traces: codes and sentences, by the name of the rule."""

from __future__ import annotations

_SWEEP = {
    "GM105-T01": "a step of the loop does more than compute from its rows, or could fail on none",
    "GM105-T02": "which gradients a step without rows leaves as None cannot be told apart",
    "GM105-T03": "the loop has too many steps to make all of them",
}
REFUSALS = {"sweep": _SWEEP}
