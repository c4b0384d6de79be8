"""Why a guard is left as it was written while Dynamo traces: codes and sentences, by the name of the rule."""

from __future__ import annotations

_TRAP = {
    "GM103-T01": "GRAPHMEND_GUARDS=keep leaves guards alone",
}
REFUSALS = {"trap": _TRAP}
