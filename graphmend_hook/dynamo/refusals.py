"""Where statements were left as they were written while Dynamo traced, and with which code."""

from __future__ import annotations

# The codes of this adapter.  Rules declare their own, and `rules.codes` has them all.
REFUSALS = {
    "GM100-T01": "an error of graphmend_hook's own while it was traced; please report it",
    "GM100-T02": "the frame would be compiled a third time because of a guard that it has only since it does not break "
    "here: it breaks again",
}

sentences = REFUSALS  # of every code, once rewritten code can be traced (`runtime.connect`)
Place = tuple[str, int, str]  # file, line, function
NOWHERE: Place = ("?", 0, "?")  # where no code of the program is being traced
Seen = tuple[str, str, int, str]  # a code, and its place
seen: dict[Seen, str] = {}  # in the order of tracing, with the operation that each is about, or ""


def add(code: str, place: Place, operation: str = "") -> bool:
    """Note that what stands at the place was left there; False if that was known."""
    found = (code, *place)
    if found in seen:
        return False
    seen[found] = operation
    return True


def about(known: Seen) -> str:
    """What to add to the sentence of its code: the operation in parentheses, or nothing."""
    return f" ({seen[known]})" if seen[known] else ""
