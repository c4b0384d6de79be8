"""Looking at objects of the program without waking them: no property, no `__getattr__`, no lazy module is run."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

_BASES = type.__dict__["__mro__"]
_NAMESPACE = type.__dict__["__dict__"]


def namespace_of(thing: object) -> Mapping[str, Any]:
    """The attributes that an object has of its own; of a class, those of its body; none where that cannot be told."""
    kind = type(thing)
    if type in _BASES.__get__(kind):
        return _NAMESPACE.__get__(thing)  # type: ignore[no-any-return]
    for base in _BASES.__get__(kind):
        found = _NAMESPACE.__get__(base).get("__dict__")
        if found is not None:
            is_pythons = type(found) in (GetSetDescriptorType, MemberDescriptorType)
            return found.__get__(thing) or {} if is_pythons else {}
    return {}


def bases_of(kind: type) -> tuple[type, ...]:
    return _BASES.__get__(kind)  # type: ignore[no-any-return]


def kind_of(thing: object) -> str:
    """The name of a thing's class, with that of its module."""
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def is_module(thing: object) -> bool:
    return ModuleType in _BASES.__get__(type(thing))


def spec_of(module: object) -> ModuleSpec | None:
    """What the import of a module went by; None for what has none, or is no module."""
    spec = namespace_of(module).get("__spec__") if is_module(module) else None
    return spec if isinstance(spec, ModuleSpec) else None
