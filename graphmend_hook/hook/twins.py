"""The code objects of a module's functions, each beside the one that the rules make of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import CodeType

_Key = tuple[str, int]


class Twins:
    """Finds the mended form of a function's code.

    stock: the code of the whole module as Python compiles it.  mended: what the rules made of the same text.
    """

    def __init__(self, stock: CodeType, mended: CodeType) -> None:
        self._pairs: dict[_Key, list[tuple[CodeType, CodeType]]] = defaultdict(list)
        for pair in _paired(stock, mended):
            self._pairs[_key(pair[0])].append(pair)

    def of(self, code: CodeType) -> CodeType | None:
        """What takes the place of `code`: itself where nothing in it is to be mended, None where that is not known.

        It is not where the text has changed since `code` was compiled, where another tool has changed the code, and
        for one of several functions of the same name on the same line.
        """
        found = [mended for stock, mended in self._pairs.get(_key(code), ()) if code in (stock, mended)]
        if not found or any(mended != found[0] for mended in found) or found[0].co_freevars != code.co_freevars:
            return None
        return code if found[0] == code else found[0]


def _key(code: CodeType) -> _Key:
    return code.co_name, code.co_firstlineno


def _paired(stock: CodeType, mended: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The functions and class bodies in `stock`, at any depth, each with that of `mended` which stands in its place."""
    ours = _inside(mended)
    for key, theirs in _inside(stock).items():
        if len(theirs) == len(ours.get(key, ())):  # a statement of ours may hold what it replaces once more
            for pair in zip(theirs, ours[key], strict=True):
                yield pair
                yield from _paired(*pair)


def _inside(code: CodeType) -> Mapping[_Key, list[CodeType]]:
    found: dict[_Key, list[CodeType]] = defaultdict(list)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[_key(constant)].append(constant)
    return found
