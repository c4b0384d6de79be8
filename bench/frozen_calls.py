"""Records what the tests compile: ``GRAPHMEND_FROZEN=FOLDER python -m pytest -p bench.frozen_calls tests/compiled``.

FOLDER, to which several runs may add, gets a copy of each module of programs that a test has mended, and `calls.pickle`
with what was compiled of them and called with, so that `bench.frozen` can do the same with another version of the hook,
whatever has become of the tests.  What cannot be pickled (a closure) is left out.  Nothing is compiled meanwhile, so
that it is quick, and tests fail that count graphs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import torch
from torch.utils._pytree import tree_map

CALLS, VARIANTS = 6, 3  # at most so many calls of one compiled function, and so many ways to compile and call it
_KEPT = ("dynamic", "fullgraph")  # options of torch.compile
_COMPILER = "C"  # a function with this parameter alone compiles what is in it by what it is given


@dataclass
class Entry:
    """What was compiled, as bytes, and the calls that were made of it: the arguments, and whether gradients were on.

    names: of the modules that the bytes name, those that they have in the folder.
    """

    made: bytes
    names: dict[str, str]
    options: dict[str, Any]
    given: list[tuple[bytes, bool]] = field(default_factory=list)


# --- to record -------------------------------------------------------------------------------------------------------

_entries: dict[str, list[Entry]] = {}
_texts: dict[str, bytes] = {}  # by the name that a mended module has in the folder
_names: dict[str, str] = {}  # the same by the name that it has had last
_compile = torch.compile


def _owner(function: Any) -> str:
    """The name of the mended module that the function, or the class of the object, stands in; else ""."""
    if isinstance(function, MethodType):
        function = function.__self__
    owner = function if hasattr(function, "__code__") else type(function)
    module = sys.modules.get(owner.__module__)
    is_mended = type(getattr(module, "__loader__", None)).__name__ == "MendingLoader"
    return owner.__module__ if is_mended else ""


def _detached(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or type(value) is not torch.Tensor:
        return value
    return value.detach().clone().requires_grad_(value.requires_grad)


def _recording(function: Any = None, **options: Any) -> Any:
    """In the place of `torch.compile`: gives the function, or what records its calls before they are made."""
    if function is None:
        return functools.partial(_recording, **options)
    module = _owner(function)
    if not module:
        is_proof = str(getattr(function, "__module__", "")).startswith("graphmend_hook")
        return _compile(function, **options) if is_proof else function
    _names[module] = stem = _kept_text(Path(sys.modules[module].__file__ or ""))
    try:
        made = pickle.dumps(function)
    except Exception:
        return function
    entry = Entry(made, dict(_names), {key: options[key] for key in _KEPT if key in options})
    _entries.setdefault(f"{stem}.{_qualname(function)}", []).append(entry)

    def call(*given: Any, **named: Any) -> Any:
        if getattr(options.get("backend"), "graphs", None) == 0:
            options["backend"].graphs = 1  # what most tests expect, which go on then
        if len(entry.given) < CALLS:
            try:
                arguments = pickle.dumps((tree_map(_detached, given), tree_map(_detached, named)))
                entry.given.append((arguments, torch.is_grad_enabled()))
            except Exception:
                entry.options["unknown"] = True
        return function(*given, **named)

    return functools.update_wrapper(call, function, updated=())


def _kept_text(file: Path) -> str:
    """The name under which the text of a module is kept; many of those that tests write have the same."""
    text = file.read_bytes()
    stem = file.stem if "tests" in file.parts else f"{file.stem}_{hashlib.sha256(text).hexdigest()[:8]}"
    _texts[stem] = text
    return stem


def _qualname(function: Any) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def pytest_configure() -> None:
    torch.compile = _recording


def pytest_unconfigure() -> None:
    torch.compile = _compile
    folder = Path(os.environ["GRAPHMEND_FROZEN"])
    folder.mkdir(parents=True, exist_ok=True)
    kept = {key: found for key, entries in _entries.items() if (found := _different(entries))}
    for stem, text in _texts.items():
        (folder / f"{stem}.py").write_bytes(text)
    for helper in Path("tests/compiled").glob("*.py"):
        if not helper.name.startswith(("test_", "conftest")) and not (folder / helper.name).exists():
            shutil.copy(helper, folder)
    file = folder / "calls.pickle"
    modules, known = pickle.loads(file.read_bytes()) if file.exists() else ((), {})
    file.write_bytes(pickle.dumps((sorted({*modules, *_texts}), {**known, **kept})))


def _different(entries: list[Entry]) -> list[Entry]:
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.given and not entry.options.pop("unknown", False):
            found.setdefault(repr((entry.options, len(entry.given), entry.made)), entry)
    return sorted(found.values(), key=lambda entry: -len(entry.given))[:VARIANTS]


# --- to do the same again --------------------------------------------------------------------------------------------


@dataclass
class Again:
    """An entry, to be compiled and called again.  compiles: it is given what compiles, and called once."""

    function: Any
    options: dict[str, Any] = field(default_factory=dict)
    given: list[tuple[Any, bool]] = field(default_factory=lambda: [(((), {}), True)])
    trains: bool = False
    compiles: bool = False

    def calls(self) -> Iterator[Callable[[], Any]]:
        return (functools.partial(self._arguments, *each) for each in self.given)

    @staticmethod
    def _arguments(given: Any, has_gradients: bool) -> Any:
        torch.set_grad_enabled(has_gradients)
        return tree_map(_as_computed, given)


def _as_computed(value: Any) -> Any:
    """A tensor that needs gradients is the result of something: what is written to must not be a leaf."""
    return value * 1 if isinstance(value, torch.Tensor) and value.requires_grad else value


class Recorded:
    """A folder of what was recorded."""

    def __init__(self, folder: Path) -> None:
        modules, self._entries = pickle.loads((folder / "calls.pickle").read_bytes())
        self.modules = tuple(modules)

    def names(self) -> list[str]:
        return sorted({*self._entries, *self._compiling()})

    def _compiling(self) -> dict[str, Any]:
        """The functions that are given what compiles."""
        found: dict[str, Any] = {}
        for module in map(importlib.import_module, self.modules):
            functions = {key: each for key, each in vars(module).items() if isinstance(each, FunctionType)}
            own = {key: each for key, each in functions.items() if [*signature(each).parameters] == [_COMPILER]}
            found |= {f"{module.__name__}.{key}": each for key, each in own.items()}
        return found

    def entries(self, name: str) -> list[Again]:
        if name not in self._entries:
            return [Again(self._compiling()[name], compiles=True)]
        return [
            Again(
                _Unpickler(entry.made, entry.names).load(),
                entry.options,
                [(_Unpickler(given, entry.names).load(), has_gradients) for given, has_gradients in entry.given],
                any(has_gradients for _, has_gradients in entry.given),
            )
            for entry in self._entries[name]
        ]


class _Unpickler(pickle.Unpickler):
    def __init__(self, made: bytes, names: dict[str, str]) -> None:
        super().__init__(io.BytesIO(made))
        self._known = names

    def find_class(self, module: str, name: str) -> Any:
        module = self._known.get(module, module)
        importlib.import_module(module)
        return super().find_class(module, name)
