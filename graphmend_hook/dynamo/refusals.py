"""Where statements were left as they were written while Dynamo traced, and with which code."""

from __future__ import annotations

# The codes of this adapter.  Rules declare their own, and `rules.codes` has them all.
REFUSALS = {
    "GM100-T01": "an error of graphmend_hook's own while it was traced; please report it",
}

sentences = REFUSALS  # of every code, once rewritten code can be traced (`runtime.connect`)
Seen = tuple[str, str, int, str]  # code, file, line, function
seen: list[Seen] = []  # once each, in the order of tracing
operations: dict[Seen, str] = {}  # the operation that the refusal is about, where it is about one


def add(code: str, place: tuple[str, int, str], operation: str = "") -> bool:
    """Note that what stands at the place was left there; False if that was known."""
    found = (code, *place)
    if found in seen:
        return False
    seen.append(found)
    if operation:
        operations[found] = operation
    return True


def about(known: Seen) -> str:
    """What to add to the sentence of its code: the operation in parentheses, or nothing."""
    return f" ({operations[known]})" if known in operations else ""
