"""The state that the trace has come to, to be compared with that at a later instruction."""

from __future__ import annotations

import time
from typing import Any

import torch

from ..epilogue import queue
from . import frame_guards
from .torch_modes import Modes
from .tracer import Trace
from .variables import Variable, is_unread

_GENERATOR = "inline_tracer"  # the field of a generator that has its frame
# Whether Dynamo has a value as a local of generated code says nothing of the value.
_BOOKKEEPING = frozenset({"source", "mutation_type", "user_code_variable_name"})


# Objects of which the fields hold nothing that can change: attributes are kept apart.
_LEADING_NOWHERE = frozenset(
    {"PythonModuleVariable", "TensorVariable", "UnspecializedNNModuleVariable", "UserDefinedClassVariable"}
)
_AS_FOUND: dict[str, Any] = {"is_modified": False}  # the contents of a container that nothing has changed


def has_stored_nothing(trace: Trace) -> bool:
    """Has the traced code changed no object of the program so far, and drawn no random number of Python's?"""
    effects, pending = trace.output.side_effects, id(queue.graphmend_pending)
    draws = any(
        getattr(function, "__module__", "") != time.__name__ for function, *_ in trace.output.random_calls
    )  # else a clock
    if draws or effects.tensor_hooks or effects.save_for_backward:
        return False
    older = [variable for key, variable in effects.id_to_variable.items() if key != pending]
    kept = [variable for variable in older if variable.mutation_type is not None and not _is_new(variable)]
    return not any(effects.is_modified(variable) and not _is_as_before(trace, variable) for variable in kept)


def _is_as_before(trace: Trace, variable: Variable) -> bool:
    """Have the attributes that were stored the values again that they have in the program?  A guard sees to that.

    So of what is set for the time of a call, and set back.
    """
    stored = trace.output.side_effects.store_attr_mutations.get(variable)
    if stored is None or variable.source is None:
        return False
    if not all(type(value).__name__ == "ConstantVariable" for value in stored.values()):
        return False
    now = {name: _identity(value.as_python_constant()) for name, value in stored.items()}

    def holds(owner: Any) -> bool:
        attributes = getattr(owner, "__dict__", {})
        return all(name in attributes and _identity(attributes[name]) == value for name, value in now.items())

    found = frame_guards.inputs_at([variable.source], trace.compilation)
    if found is None or not holds(*found):
        return False
    key = frame_guards.name_of(variable.source), *sorted(now.items())
    frame_guards.install(trace.compilation, key, [variable.source], holds, f"{', '.join(now)} as before")
    return True


def _is_new(variable: Variable) -> bool:
    """Is it an object that the traced code has made?"""
    return type(variable.mutation_type).__name__.endswith("New")


class State:
    """What the traced code could tell: the contents of all that can change, and how many random numbers were drawn.

    Attributes, cells and globals are the changes that Dynamo keeps of objects; lists, dicts, sets and iterators are
    variables of its own, of which it changes the fields.  Nodes of the graph are not part of it.
    """

    def __init__(self, trace: Trace) -> None:
        output = trace.output
        effects = output.side_effects
        self._counts = [len(output.random_calls), len(effects.tensor_hooks), len(effects.save_for_backward)]
        self.modes, self._seed = Modes(), torch.initial_seed()
        self._attributes = {variable: dict(values) for variable, values in effects.store_attr_mutations.items()}
        self._contents = _contents_of_all(trace)

    def is_older(self, variable: Variable) -> bool:
        """Was there the object when the trace had come to this?  Of one that the trace has not made yet, yes."""
        return variable in self._contents or not _is_new(variable)

    def attributes_of(self, variable: Variable) -> dict[str, Variable]:
        """What the trace had stored in attributes of the object."""
        return self._attributes.get(variable, {})

    def items_of(self, container: Variable) -> Any:
        """What a list or a dict had, as a list or a dict; None where the trace had not changed it, nor made it."""
        contents = self._contents.get(container, _AS_FOUND)
        if contents is _AS_FOUND:
            return None
        if isinstance(container.items, dict):
            return {key: value for (_, key), (_, value) in contents["items"]}
        return [value for _, value in contents["items"]]

    def changed_since(self, before: State) -> str:
        """What has changed, for the log; "" for nothing.  Newer objects do not count."""
        if self._counts != before._counts:
            return "random numbers of Python, or hooks of tensors"
        if self.modes != before.modes or self._seed != before._seed:
            return "a mode of torch"
        for variable, attributes in self._attributes.items():
            earlier = before._attributes.get(variable, {})
            changed = {name for name, value in attributes.items() if earlier.get(name) is not value}
            if changed and before.is_older(variable):
                return f"{', '.join(sorted(changed))} of {variable}"
        for variable, contents in self._contents.items():
            if variable not in before._contents:
                if getattr(variable.mutation_type, "is_modified", False):
                    return str(variable)
            elif before._contents[variable] != contents:
                return f"{_differing(before._contents[variable], contents)} of {variable}"
        return ""


def _identity(value: object) -> tuple[object, object]:
    """Is equal for the same object, which it keeps alive, and for the same number or text."""
    return (type(value) if isinstance(value, (int, str)) else id(value), value)


def _contents_of_all(trace: Trace) -> dict[Variable, dict[str, Any]]:
    """The contents of every variable that the traced code could get at and that can change."""
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.iter import IteratorVariable

    found: dict[Variable, dict[str, Any]] = {}
    effects = trace.output.side_effects
    unseen = {*map(id, effects.ignore_mutation_on_these_variables)}

    def note(variable: Variable) -> None:
        if is_unread(variable):  # nothing has changed it, and to look at it would guard on it
            return
        is_generator = _GENERATOR in vars(variable)
        is_iterator = is_generator or isinstance(variable, IteratorVariable)
        if (variable.mutation_type is not None or is_iterator) and variable not in found:
            is_as_found = not is_iterator and _is_as_found(variable) and id(variable) not in unseen
            found[variable] = _AS_FOUND if is_as_found else _contents(variable)
            if is_generator:
                roots.append(_names_and_stack(variable.inline_tracer))

    roots: list[Any] = [*map(_names_and_stack, trace.frames())]
    for variable in (*effects.id_to_variable.values(), *effects.store_attr_mutations):
        if _is_as_found(variable) and id(variable) not in unseen:
            found[variable] = _AS_FOUND
        elif _may_lead_to_others(variable, effects):
            roots.append(variable)
    seen: dict[int, Any] = {}  # what one root leads to is not visited again from the next
    while roots:
        VariableTracker.visit(note, roots.pop(), seen, effects)
    return found


def _is_as_found(variable: Variable) -> bool:
    """Is it a container that is older than the trace, which has not changed it?  Dynamo marks what it has to replay."""
    return getattr(variable.mutation_type, "is_modified", True) is False


def _may_lead_to_others(variable: Variable, effects: Any) -> bool:
    """May an object that Dynamo keeps lead to what can change, and that the frames do not lead to by themselves?

    What the trace has made is dead where nothing leads to it: the sides of earlier branches, say, with their cells.
    """
    if type(variable.mutation_type).__name__ == "AttributeMutationNew":
        return False
    is_plain = type(variable).__name__ in _LEADING_NOWHERE and getattr(variable, "_base_vt", None) is None
    return not is_plain or variable in effects.store_attr_mutations


def _names_and_stack(frame: Any) -> list[Variable]:
    return [*frame.symbolic_locals.values(), *frame.stack]


def _contents(variable: Variable) -> dict[str, Any]:
    """The fields of a container or an iterator; other objects have but attributes, and caches of Dynamo's."""
    if type(variable).__name__ == "RandomVariable":
        return {"random": variable.random.getstate()}
    if _GENERATOR in vars(variable):  # `iter` of one, and all that is written with it
        frame = variable.inline_tracer
        return {"at": frame.instruction_pointer, "names": _frozen(_names_and_stack(frame))}
    if type(variable.mutation_type).__name__.startswith("Attribute"):
        return {}
    return {name: _frozen(value) for name, value in vars(variable).items() if name not in _BOOKKEEPING}


def _differing(before: dict[str, Any], after: dict[str, Any]) -> str:
    return ", ".join(sorted(name for name in before | after if before.get(name) != after.get(name)))


def _frozen(value: Any) -> Any:
    if type(value) in (list, tuple):
        return [*map(_identity, value)]
    if isinstance(value, dict):
        return [(_identity(key), _identity(item)) for key, item in value.items()]
    return set(value) if isinstance(value, set) else _identity(value)
