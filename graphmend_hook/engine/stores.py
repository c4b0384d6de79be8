"""What the sides of a branch store in objects that are older than the branch.

Each side stores for the trace as it would in eager, so that it sees by every name, and in every function, what it has
stored.  At its end that is taken back.  Once both sides are traced, what is selected of both is stored in the places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .door.trace_state import State
from .door.variables import Variable

_CELLS = ("CellVariable", "NewGlobalVariable")  # names of functions around, and of modules
_CONTAINERS = ("ConstDictVariable", "ListVariable")


@dataclass(frozen=True, eq=False)
class Slot:
    """A place of an object that a side has stored to.

    owner: the object, or the list or the dict; key: the attribute's name, the index, or the key as Dynamo has it.
    kind: how Dynamo is to store the attribute, where it tells; before: the item that was there.
    """

    owner: Variable
    key: Any
    is_attribute: bool
    kind: tuple[Any, ...] = ()
    before: Variable = None


@dataclass
class _Contents:
    """A list or a dict as it was before a side changed it."""

    fields: dict[str, Any]
    items: Any
    is_modified: Any

    @classmethod
    def of(cls, variable: Variable, had: Any) -> _Contents | None:
        """had: its items at the begin of the region, if they are known; else it was as the program handed it in then.

        None where that is not known either.
        """
        is_modified = getattr(variable.mutation_type, "is_modified", None)
        if had is None:
            had = _as_handed_in(variable)
        if had is None:
            return None
        return cls(dict(vars(variable)), had, is_modified)

    def changes(self, variable: Variable) -> dict[Any, Variable] | None:
        """The items that are others now; None if there are more or fewer, or in another order."""
        now = _as_dict(variable.items)
        if [*now] != [*_as_dict(self.items)]:
            return None
        return {key: value for key, value in now.items() if value is not self.items[key]}

    def put_back(self, variable: Variable) -> None:
        items = self.fields["items"]
        for name, value in self.fields.items():
            setattr(variable, name, value)
        items.clear()
        items.extend(self.items) if isinstance(items, list) else items.update(self.items)
        if self.is_modified is not None:
            variable.mutation_type.is_modified = self.is_modified


def _as_handed_in(variable: Variable) -> Any:
    """The items of a dict, which Dynamo remembers, or of a list, where an item says by its source where it is from."""
    from torch._dynamo.source import GetItemSource
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.lazy import LazyVariableTracker

    now = variable.items
    if isinstance(now, dict):
        found = getattr(variable, "original_items", {})
        return now.copy() if [*map(id, now.values())] == [*map(id, found.values())] else None
    effects = InstructionTranslator.current_tx().output.side_effects
    given = next((each for each in effects.keepalive if effects.id_to_variable.get(id(each)) is variable), None)
    if type(given) is not list or len(given) != len(now) or variable.source is None:
        return None
    sources = [GetItemSource(variable.source, place) for place in range(len(given))]
    return [
        item if item.source == source else LazyVariableTracker.create(value, source)
        for item, source, value in zip(now, sources, given, strict=True)
    ]


class Stores:
    """What has been stored since it was made, by each side in its turn.

    before: the state that the trace has come to with the branch.
    sides: what each side has stored, by the slot.
    """

    def __init__(self, effects: Any, before: State) -> None:
        self._effects, self._before = effects, before
        self._kinds = {owner: dict(kinds) for owner, kinds in _kinds(effects).items()}
        self._contents: dict[Variable, _Contents | None] = {}
        self._slots: dict[tuple[Variable, Any], Slot] = {}
        self.sides: list[dict[Slot, Variable]] = []
        self._around = effects.mutation
        effects.mutation = self._mutation

    @property
    def slots(self) -> list[Slot]:
        """All that a side has stored to, in order."""
        return [*self._slots.values()]

    def end_side(self) -> None:
        """Take back what the side has stored, as far as it can be stored again; what cannot stays."""
        side: dict[Slot, Variable] = {}
        for owner, stored in [*self._effects.store_attr_mutations.items()]:
            before = self._before.attributes_of(owner)
            changed = {name: value for name, value in stored.items() if before.get(name) is not value}
            if changed and self._may_take(owner, changed):
                side.update((self._slot(owner, name), value) for name, value in changed.items())
                self._put_back(owner)
        for container, contents in self._contents.items():
            changes = contents.changes(container) if contents is not None and self._before.is_older(container) else None
            if contents is not None and changes:
                side.update((self._slot(container, key, contents), value) for key, value in changes.items())
                contents.put_back(container)
        self._contents = {}
        self.sides.append(side)

    def close(self) -> None:
        """Nothing is watched any more."""
        if getattr(self._around, "__func__", None) is type(self._effects).mutation:
            del self._effects.mutation
        else:
            self._effects.mutation = self._around

    def store(self, slot: Slot, value: Variable) -> None:
        """Store that in the slot."""
        if slot.is_attribute:
            self._effects.store_attr(slot.owner, slot.key, value, *slot.kind)
        else:
            self._effects.mutation(slot.owner)
            slot.owner.items[slot.key] = value

    def _may_take(self, owner: Variable, changed: dict[str, Variable]) -> bool:
        is_deleted = any(type(value).__name__ == "DeletedVariable" for value in changed.values())
        return self._before.is_older(owner) and type(owner).__name__ not in _CELLS and not is_deleted

    def _slot(self, owner: Variable, key: Any, contents: _Contents | None = None) -> Slot:
        if (owner, key) not in self._slots:
            if contents is not None:
                found = Slot(owner, key, False, before=contents.items[key])
            else:
                kinds = _kinds(self._effects).get(owner, {})
                kind = (kinds[key],) if key in kinds else ()
                found = Slot(owner, key, True, kind)
            self._slots[owner, key] = found
        return self._slots[owner, key]

    def _put_back(self, owner: Variable) -> None:
        had, how = self._before.attributes_of(owner), self._kinds.get(owner, {})
        for kept, before in ((self._effects.store_attr_mutations, had), (_kinds(self._effects), how)):
            if before:
                kept[owner] = dict(before)
            else:
                kept.pop(owner, None)

    def _mutation(self, variable: Variable) -> Any:
        """Stands for what Dynamo calls before it changes a container."""
        if type(variable).__name__ in _CONTAINERS and variable not in self._contents:
            self._contents[variable] = _Contents.of(variable, self._before.items_of(variable))
        return self._around(variable)


def _kinds(effects: Any) -> Any:
    """How attributes are stored, which Dynamo tells since torch 2.13."""
    return getattr(effects, "attr_mutation_kinds", {})


def _as_dict(items: Any) -> dict[Any, Variable]:
    return items if isinstance(items, dict) else dict(enumerate(items))
