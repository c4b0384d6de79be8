"""Progress bars of libraries: what shows how far a loop has come, and does nothing else that a program can see."""

from __future__ import annotations

# The class of tqdm's bars, from which those for notebooks and coroutines derive, and the methods that only show.
TQDM = ("tqdm.std", "tqdm")
SHOWING = frozenset(
    {
        *("clear", "close", "display", "refresh", "reset", "set_description", "set_description_str", "set_postfix"),
        *("set_postfix_str", "unpause", "update"),
    }
)
OF_RANGE = ("trange", "tnrange", "tarange")  # functions that make a bar for what `range` makes of their arguments
TRACK = ("rich.progress", "track")  # a generator function, of the iterable
