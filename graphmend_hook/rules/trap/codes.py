"""What [Trap] says of a guard that is left as it was written; what it shares with [Where] stands in `shared.codes`."""

from __future__ import annotations

from ...diagnostics import code, of_rules

CAUGHT = code(
    "GM103-R16",
    sentence="no handler in the function could catch the exception",
    remedy="Move the statement out of the `try`, whichever exceptions its handlers name; a `finally` alone may stay around it.",
    because="a handler in the function could catch the exception (of an `assert`: GM101-T10)",
)
CONDITION_HIDDEN = of_rules(
    "GM103-R19",
    sentence="a known check function is called with arguments that can be told apart",
    remedy="Write the arguments of the check out, as its signature has them.",
    because="the condition of a check function is not written out among its arguments",
)
GUARDS_KEPT = code(
    "GM103-T01",
    sentence="GRAPHMEND_GUARDS=keep leaves guards alone",
    remedy="Leave `--guards` at exact (GRAPHMEND_GUARDS, install(guards=...)).",
)
