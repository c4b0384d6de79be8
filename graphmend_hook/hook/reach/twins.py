"""The code objects of a module's functions, each beside the one that the rules make of it."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

_Key = tuple[str, int]


class Twins:
    """Finds the mended form of a function's code.

    stock: the code of the whole module as Python compiles it.  mended: what the rules made of the same text.
    """

    def __init__(self, stock: CodeType, mended: CodeType) -> None:
        self.mended = mended
        self._pairs: dict[_Key, list[tuple[CodeType, CodeType]]] = defaultdict(list)
        for pair in _paired(stock, mended):
            self._pairs[_key(pair[0])].append(pair)

    def of(self, code: CodeType, moved: bool = False) -> CodeType | None:
        """What takes the place of `code`: itself where nothing in it is to be mended, None where that is not known.

        It is not where the text has changed since `code` was compiled, where another tool has changed the code, and
        for one of several functions of the same name on the same line.
        moved: may `code` have other lines, and another class around it, than in the text?
        """
        if moved:
            wanted = _without_places(code)
            named = (pair for key, some in self._pairs.items() if key[0] == code.co_name for pair in some)
            found = [mended for stock, mended in named if _without_places(stock) == wanted]
        else:
            pairs = self._pairs.get(_key(code), ())
            found = [mended for stock, mended in pairs if _is_same(code, stock) or _is_same(code, mended)]
        if not found or any(mended != found[0] for mended in found) or found[0].co_freevars != code.co_freevars:
            return None
        return code if found[0] == code else found[0]

    def pairs(self) -> Iterator[tuple[CodeType, CodeType]]:
        """All that differ: the code as Python compiles it, and the mended one."""
        return ((stock, mended) for some in self._pairs.values() for stock, mended in some if stock != mended)

    def absent(self, grafted: CodeType, functions: set[str]) -> set[str]:
        """Those of `functions`, by their qualified names, that have another form in `grafted` than the mended one."""
        ours = {id(code) for _, code in _named(self.mended)}
        return functions - {name for name, code in _named(grafted) if id(code) in ours}

    def graft(self, code: CodeType) -> CodeType:
        """`code`, of the whole module or of a part, with each function in it that has a mended form in that form."""
        constants = tuple(
            (self.of(each) or self.graft(each)) if isinstance(each, CodeType) else each for each in code.co_consts
        )
        changed = any(new is not old for new, old in zip(constants, code.co_consts, strict=True))
        return code.replace(co_consts=constants) if changed else code


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Is it the same code from the same place?  Python's comparison asks for neither file nor qualified name."""
    if code != other or code.co_filename != other.co_filename:
        return False
    if getattr(code, "co_qualname", "") != getattr(other, "co_qualname", ""):
        return False
    pairs = zip(code.co_consts, other.co_consts, strict=True)
    return all(_is_same(mine, its) for mine, its in pairs if isinstance(mine, CodeType))


def _without_places(code: CodeType) -> CodeType:
    names: dict[str, Any] = {"co_qualname": code.co_name} if hasattr(code, "co_qualname") else {}
    constants = tuple(_without_places(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_filename="", co_consts=constants, **names)


def some_of(names: Iterable[str]) -> str:
    """A few of the names of functions, and how many there are besides."""
    shown = sorted(set(names))
    return ", ".join(shown[:3]) + (f" (and {len(shown) - 3} more)" if len(shown) > 3 else "")


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


def _named(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """The functions and classes in `code`, at any depth, with their qualified names."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            name = prefix + each.co_name
            yield name, each
            yield from _named(each, f"{name}.<locals>." if each.co_flags & inspect.CO_OPTIMIZED else f"{name}.")


def _inside(code: CodeType) -> Mapping[_Key, list[CodeType]]:
    found: dict[_Key, list[CodeType]] = defaultdict(list)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found[_key(constant)].append(constant)
    return found
