"""Where statements were left as they were written while Dynamo traced, and with which code."""

from __future__ import annotations

# The codes of this adapter.  Rules declare their own, and `rules.codes` has them all.
REFUSALS = {
    "GM100-T01": "an error of graphmend_hook's own while it was traced; please report it",
}

sentences = REFUSALS  # of every code, once rewritten code can be traced (`runtime.connect`)
# (code, file, line, function), once each, in the order of tracing.
seen: list[tuple[str, str, int, str]] = []


def add(code: str, place: tuple[str, int, str]) -> bool:
    """Note that what stands at the place was left there; False if that was known."""
    if (code, *place) in seen:
        return False
    seen.append((code, *place))
    return True
