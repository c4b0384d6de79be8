"""What stands in the place of an attribute, or of an item of a dict, whose value is a local of a region.

Eager code would find there what the region has stored, which the trace stores behind it.  Whatever looks at the place,
by whatever name, Dynamo comes to this, and the attempt ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NoReturn

from .door.tracer import Trace
from .door.variables import Variable, python_of

_NOTHING = object()  # where nothing has been stored before


class Hidden:
    """Places of which the trace shows the values no more.

    seen: called where something looks at one; it orders another attempt.
    """

    def __init__(self, trace: Trace, seen: Callable[[], NoReturn]) -> None:
        self._effects, self._seen = trace.output.side_effects, seen
        self._stack = ExitStack()
        self._are_as_left = True

    def attribute(self, owner: Variable, name: str) -> bool:
        """Hide that attribute of the object; False if it is hidden already, by another name of the object."""
        owner = owner.realize()
        kinds = getattr(self._effects, "attr_mutation_kinds", {})  # since torch 2.13
        kept = [(each, each.get(owner, {}).get(name, _NOTHING)) for each in (kinds, self._effects.store_attr_mutations)]
        if any(_is_stand_in(value) for _, value in kept):
            return False
        self._effects.store_attr(owner, name, self._stand_in())
        self._stack.callback(self._put_back_attribute, owner, name, kept)
        return True

    def item(self, container: Variable, key: str) -> bool:
        """Hide the item of that key of a dict; False where there is none, or it is hidden already."""
        items = container.realize().items
        found = next((each for each in items if python_of(each.vt) == key), None)
        if found is None or _is_stand_in(items[found]):
            return False
        self._stack.callback(self._put_back, items, found, items[found])
        items[found] = self._stand_in()
        return True

    def registered(self, module: Variable, registry: Variable, name: str) -> bool:
        """Hide a parameter, a buffer or a submodule, which its module keeps in a dict.

        Dynamo asks the module itself for all of them, but where one is another by now.
        """
        module = module.realize()
        self._stack.callback(setattr, module, "is_state_mutated", module.is_state_mutated)
        module.is_state_mutated = True
        return self.item(registry, name)

    def show(self) -> bool:
        """Put back what was there; False if something else has been stored meanwhile."""
        self._stack.close()
        return self._are_as_left

    def _put_back_attribute(self, owner: Variable, name: str, kept: list[tuple[Any, Any]]) -> None:
        stored = self._effects.store_attr_mutations
        if not _is_stand_in(stored.get(owner, {}).get(name)):
            self._are_as_left = False
            return
        for each, value in kept:
            contents = each.get(owner, {})
            contents.pop(name, None)
            if value is not _NOTHING:
                contents[name] = value
            if not contents:
                each.pop(owner, None)

    def _put_back(self, items: Any, key: Any, value: Variable) -> None:
        if _is_stand_in(items.get(key)):
            items[key] = value
        else:
            self._are_as_left = False

    def _stand_in(self) -> Variable:
        variable, cache = _classes()
        return variable(cache(self._seen))


def _is_stand_in(variable: object) -> bool:
    return type(variable) is _classes()[0]


@functools.cache
def _classes() -> tuple[type, type]:
    """A variable that Dynamo has not looked at yet, and what it would look at."""
    from torch._dynamo.variables.lazy import LazyCache, LazyVariableTracker

    class Cache(LazyCache):  # type: ignore[misc]
        def __init__(self, seen: Callable[[], NoReturn]) -> None:
            self.seen, self.vt = seen, None

        def __getattr__(self, _name: str) -> NoReturn:
            self.seen()

        def realize(self) -> NoReturn:
            self.seen()

    class HiddenVariable(LazyVariableTracker):  # type: ignore[misc]
        pass

    return HiddenVariable, Cache
