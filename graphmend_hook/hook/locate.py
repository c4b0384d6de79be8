"""Where the source of a module lies, found without running any of its code, its parent packages included."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader

from ..diagnostics import ConfigError
from ..program import is_path_safe
from ..settings.syntax import check_mendable, is_directory_pattern, named
from .allowlist import Allowlist


def source_file(name: str) -> str:
    """The path of the source file of the module `name`.

    Raises ConfigError if there is no such module, or if it does not come from a plain source file.
    """
    spec = _find(name)
    if type(spec.loader) is SourceFileLoader and spec.origin:
        return spec.origin
    if spec.loader is None or spec.submodule_search_locations:
        raise ConfigError(f"{name!r} is a package without a source file of its own; name one of its modules")
    raise ConfigError(f"{name!r} does not come from a plain source file ({spec.origin}), so it is never mended")


def modules(patterns: Iterable[str], deny: Iterable[str] = ()) -> dict[str, str]:
    """The modules that a hook for `patterns` would mend, by the path of their file, as imports will name it.

    patterns, deny: as in `Settings`.  Raises ConfigError for a pattern that matches nothing.
    """
    found: dict[str, str] = {}
    for pattern in patterns:
        allowlist = Allowlist([pattern], deny)
        matching = {path: name for path, name in _candidates(pattern) if allowlist.covers(name, path)}
        if not matching:
            raise ConfigError(f"{pattern!r} matches no module that could be mended")
        found |= matching
    return found


def _candidates(pattern: str) -> Iterator[tuple[str, str]]:
    """Paths and names of the modules among which those that match `pattern` are."""
    if is_directory_pattern(pattern):
        directory = os.path.abspath(os.path.expanduser(pattern))
        if os.path.isfile(directory):
            yield directory, os.path.splitext(os.path.basename(directory))[0]
            return
        if not os.path.isdir(directory):
            raise ConfigError(f"{pattern!r} is not a directory")
        yield from _below(directory, "")
        return
    with named("MODULES"):
        check_mendable(pattern)
    name = ".".join(itertools.takewhile({*"*?"}.isdisjoint, pattern.split(".")))
    if not name:
        raise ConfigError(f"{pattern!r}: the name of the package cannot be a glob here; write it out")
    spec = _find(name)
    if spec.submodule_search_locations is None:
        yield source_file(name), name
    for location in spec.submodule_search_locations or ():
        yield from _below(location, f"{name}.")


def _below(directory: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Paths and names of the Python files in and below `directory` that an import statement could name."""
    for folder, inside, files in os.walk(directory):
        inside[:] = sorted(name for name in inside if name.isidentifier() and name != "__pycache__")
        below = os.path.relpath(folder, directory)
        package = prefix + ("" if below == os.curdir else f"{below.replace(os.sep, '.')}.")
        for file in sorted(files):
            stem, suffix = os.path.splitext(file)
            if suffix == ".py" and stem.isidentifier():
                yield os.path.join(folder, file), package[:-1] if stem == "__init__" and package else package + stem


def _find(name: str) -> ModuleSpec:
    """The spec that an import of `name` by python in the current directory would have."""
    here = [] if is_path_safe() else [os.getcwd()]
    top, *rest = name.split(".")
    spec = PathFinder.find_spec(top, [*here, *sys.path])
    if spec is None or spec.loader is None:  # editable installs have finders of their own
        with contextlib.suppress(ValueError):  # a running program's __main__ has no spec
            spec = importlib.util.find_spec(top) or spec
    found = top
    for part in rest:
        if spec is None:
            break
        if spec.submodule_search_locations is None:
            raise ConfigError(f"there is no module {name!r}: {found!r} is not a package")
        parent, found = found, f"{found}.{part}"
        # By its last name: for a namespace package importlib would look its parents up in sys.modules.
        spec = PathFinder.find_spec(part, list(spec.submodule_search_locations))
        if spec is None:
            raise ConfigError(f"there is no module {name!r}: the package {parent!r} has no {part!r} in its directory")
    if spec is None:
        raise ConfigError(f"there is no module {name!r}: this python ({sys.executable}) does not find {top!r}")
    return spec
