"""Mending what exists already: functions get the code that the rules make of their text, and stay the same objects.

Aliases, tables of functions, bound methods of live models and compiled wrappers keep what they hold, closures their
cells.  A function is left alone unless its code is, to the last instruction, what Python compiles of its text.
"""

from __future__ import annotations
import __future__

import functools
import gc
import linecache
import logging
import operator
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ... import runtime
from ...cells import rewritten_cell
from ...diagnostics import ConfigError, Site, notice
from ...engine.door.compiled_code import drop_compiled_code, is_generated
from ...product.report.ledger import ModuleRecord, Status, ledger
from ...rewrite import Rewritten
from ...rules.base import Rule
from ...settings.config import Settings
from ...settings.syntax import is_unmendable
from ...source.templates import RUNTIME
from ..allowlist import Allowlist, PatternSet
from ..looking import bases_of, is_module, namespace_of, spec_of
from ..mender import Mender
from .twins import Twins, some_of

log = logging.getLogger("graphmend_hook")
_lock = threading.RLock()
_stock: dict[int, tuple[CodeType, CodeType]] = {}  # by the id of mended code: that, and what it took the place of
_texts: dict[tuple[str, tuple[Rule, ...]], tuple[bytes, Rewritten]] = {}  # by file and rules: text, what became of it
_twins: dict[str, Twins] = {}
_NO_TEXT = "its text cannot be found"
_OTHER_CODE = (
    "its code is not what Python makes of its text, which another tool or a later edit has changed, or it stands in a "
    "statement that its mended form has twice"
)
_OTHER_BUILTINS = "its globals have builtins of their own, in which the mended code would not find graphmend_hook"


@dataclass
class Aim:
    """What is to be mended.

    functions: single ones.  files: the modules all of whose functions are, by the path of their source.
    moved: may their code have other lines than in the text?  Then nothing is said of those that are left.
    """

    functions: list[FunctionType] = field(default_factory=list)
    files: dict[str, ModuleType] = field(default_factory=dict)
    moved: bool = False

    @property
    def modules(self) -> set[str]:
        """The names of the whole modules that are meant."""
        return {_name_of(module) for module in self.files.values()}

    def by_file(self) -> dict[str, list[FunctionType]]:
        """The functions that are meant, alive anywhere in this process, by the file that their code names."""
        found: dict[str, dict[int, FunctionType]] = defaultdict(dict, {file: {} for file in self.files})
        for function in self._all() if self.files else self.functions:
            found[function.__code__.co_filename][id(function)] = function
        return {file: list(functions.values()) for file, functions in found.items()}

    def _all(self) -> Iterator[FunctionType]:
        yield from self.functions
        # Those that `gc.freeze` has put aside are only found by their place.
        modules = self.files.values()
        placed = (each for module in modules for each in _placed_in(namespace_of(module), _name_of(module)))
        for function in (*placed, *(each for each in gc.get_objects() if type(each) is FunctionType)):
            code = function.__code__
            if code.co_filename in self.files and code.co_name != "<module>" and not is_generated(code):
                yield function


def aim_at(thing: Any) -> Aim:
    """What `graphmend_hook.mend(thing)` means.  Raises TypeError for what has no code, ConfigError for torch's own."""
    if is_module(thing):
        _check_mendable(_name_of(thing))
        files = dict(_files_below(thing))
        if not files:
            raise TypeError(f"mend() takes a module that was loaded from source; {_name_of(thing)!r} was not")
        return Aim(files=files)
    bases = bases_of(type(thing))
    if type in bases:
        _check_mendable(_owner_of(thing))
        of_bases = [each for base in bases_of(thing) for each in _placed_in(namespace_of(base), _owner_of(base))]
        functions = [each for each in of_bases if not is_unmendable(_module_of(each))]
        # Dataclasses, say, make functions of a text that nobody keeps; under `-c` linecache has another of that name.
        written = [each for each in functions if each.__code__.co_filename != "<string>"]
        return Aim(written or functions)
    functions = list(_placed_in({"": thing}, ""))
    if not functions:
        return _of_instance(thing)
    _check_mendable(_module_of(functions[-1]))
    return Aim([each for each in functions if not is_unmendable(_module_of(each))])


def functions_in_files(namespace: Mapping[str, Any], module: str) -> list[FunctionType]:
    """The functions of `module` that a namespace holds by name, and that were written in a file."""
    placed = (each for each in _placed_in(namespace, module) if each.__module__ == module)
    return [each for each in placed if os.path.isfile(each.__code__.co_filename)]


def mend(aim: Aim, mender: Mender, settings: Settings) -> None:
    """Give the functions that `aim` means their mended code, and note in the ledger what became of their modules."""
    deny = PatternSet(settings.deny)
    with _lock:
        changed = False
        for file, functions in aim.by_file().items():
            name = _name_of(aim.files[file]) if file in aim.files else _module_of(functions[0]) or file
            if deny.matches_name(name) or deny.matches_file(file):
                log.info("%s is left alone: it is denied", name)
                continue
            only = None if file in aim.files else functions
            changed |= _mend_file(name, file, functions, only, mender, moved=aim.moved)
        if changed:
            runtime.connect()
            drop_compiled_code()


def unmend(aim: Aim) -> None:
    """Give the functions that `aim` means the very code back that they had before `mend`."""
    with _lock:
        changed = False
        for functions in aim.by_file().values():
            for function in functions:
                mended, stock = _stock.get(id(function.__code__), (None, None))
                if stock is not None and mended is function.__code__:
                    function.__code__ = stock
                    changed = True
        if changed:
            drop_compiled_code()


def mend_modules(modules: Iterable[ModuleType], mender: Mender, settings: Settings) -> None:
    """Mend modules that were imported before their hook was installed, each alone and not what lies below it."""
    files = {file: module for module in modules if (file := file_of(module))}
    mend(Aim(files=files), mender, settings)


def _mend_file(
    name: str,
    file: str,
    functions: list[FunctionType],
    only: Collection[FunctionType] | None,
    mender: Mender,
    *,
    moved: bool,
) -> bool:
    """Mend `functions`, whose text is in `file`; was any changed?

    only: those to report on, None for the module.  moved: as `Aim` has it.
    """
    functions = [each for each in functions if id(each.__code__) not in _stock]
    source = _text_of(file)
    if source is None:
        _leave(name, functions, _NO_TEXT)
    if source is None or (only is not None and not functions):
        return False
    before = ledger.modules.get(name)
    made = mender.attempt(name, file, lambda: _rewritten(file, source, functions, mender))
    if made is None:  # a text that cannot be compiled was edited
        _leave(name, functions, _OTHER_CODE)
        return False
    try:
        twins = _twins_of(file, source, functions, made[0].code)
    except (SyntaxError, ValueError):  # of a text in which no rule looks for anything
        _leave(name, functions, _OTHER_CODE)
        return False
    changed = False
    left: dict[str, list[FunctionType]] = {}
    for function in functions:
        twin = twins.of(function.__code__) or (twins.of(function.__code__, moved) if moved else None)
        if twin is None:
            left.setdefault(_OTHER_CODE, []).append(function)
        elif twin is not function.__code__ and not _finds_runtime(function):
            left.setdefault(_OTHER_BUILTINS, []).append(function)
        elif twin is not function.__code__:
            _stock[id(twin)] = twin, function.__code__
            function.__code__ = twin
            changed = True
    if changed:  # functions that are made from now on by those that were mended are mended, too
        for stock, mended in twins.pairs():
            _stock.setdefault(id(mended), (mended, stock))
    _note(ledger.modules[name], before, only, [each for some in left.values() for each in some])
    for why, some in left.items():
        if not moved:
            _leave(name, some, why)
    return changed


def _finds_runtime(function: FunctionType) -> bool:
    """Will the mended code find this package, from the function's globals or builtins?  Sandboxes have their own."""
    return RUNTIME in function.__globals__ or RUNTIME in getattr(function, "__builtins__", ())


def _rewritten(file: str, source: bytes, functions: list[FunctionType], mender: Mender) -> tuple[Rewritten, bool]:
    key = (file, mender.rules)
    known = _texts.get(key)
    if known is not None and known[0] == source:  # so a function that is mended again gets the same code again
        return known[1], True
    if os.path.isfile(file):
        made, cached = mender.result(file, source)
    else:
        names = functions[0].__globals__ if functions else {}
        made, cached = rewritten_cell(source, file, mender.rules, names, _future(functions)), False
    _texts[key] = source, made
    return made, cached


def _twins_of(file: str, source: bytes, functions: Collection[FunctionType], mended: CodeType | None) -> Twins:
    """mended: None where nothing in the text is."""
    known = _twins.get(file)
    if known is None or mended is None or known.mended is not mended:
        # Compiled anew: bytecode on disk may be of another text, if that was edited within a second.
        stock = compile(source, file, "exec", _future(functions), dont_inherit=True)
        known = _twins[file] = Twins(stock, mended or stock)
    return known


def _future(functions: Collection[FunctionType]) -> int:
    """The compiler's flags of `from __future__` imports that hold for a text without standing in it."""
    features = (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
    known: int = functools.reduce(operator.or_, features)
    return functools.reduce(operator.or_, (each.__code__.co_flags for each in functions), 0) & known


def _note(
    record: ModuleRecord,
    before: ModuleRecord | None,
    only: Collection[FunctionType] | None,
    left: Collection[FunctionType],
) -> None:
    """Take from `record`, which tells of a whole module, the sites that were not meant, and those that were left."""
    sites = [site for site in record.sites if only is None or any(_is_inside(site, each) for each in only)]
    sites = [site for site in sites if site.code or not any(_is_inside(site, each) for each in left)]
    if only is not None and before is not None and before.path == record.path:
        sites += [site for site in before.sites if site not in sites]
    status = before.status if before is not None and (left or only is not None) else Status.UNCHANGED
    status = Status.MENDED if any(not site.code for site in sites) else status
    ledger.add(replace(record, status=status, sites=tuple(sorted(sites, key=lambda site: site.line))))


def _is_inside(site: Site, function: FunctionType) -> bool:
    name = getattr(function.__code__, "co_qualname", function.__qualname__)  # `functools.wraps` gives another one
    return f"{site.function}.".startswith(f"{name}.")


def _leave(name: str, functions: Collection[FunctionType], why: str) -> None:
    if functions:
        shown = some_of(each.__qualname__ for each in functions)
        text = notice("GM014", functions=shown, module=name, why=why)
        if name in ledger.modules:
            ledger.add(replace(ledger.modules[name], why=text))
        log.warning("%s", text)


def _text_of(file: str) -> bytes | None:
    """The text that the code of `file` was compiled from, as far as anybody has it."""
    try:
        if os.path.isfile(file):
            return Path(file).read_bytes()
        return "".join(linecache.getlines(file)).encode() or None  # a notebook keeps its cells there
    except (OSError, ValueError):  # no right to read, a name that no file has, a text that is none
        return None


def _layers(thing: Any) -> Iterator[FunctionType]:
    """The Python functions that a call of `thing` goes through by way of wrappers, the outermost first."""
    seen: list[object] = []
    while thing is not None and not any(thing is each for each in seen):
        seen.append(thing)
        kind = type(thing)
        if kind is FunctionType:
            yield thing
        way = next((_HELD[base] for base in bases_of(kind) if base in _HELD), None)
        thing = namespace_of(thing).get("__wrapped__") if way is None else way(thing)


# By a kind of wrapper, where it has what it wraps.
_HELD: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((MethodType, staticmethod, classmethod), operator.attrgetter("__func__")),
    **dict.fromkeys(
        (functools.partial, functools.partialmethod, functools.cached_property, functools.singledispatchmethod),
        operator.attrgetter("func"),
    ),
}


def _placed_in(namespace: Mapping[str, Any], module: str) -> Iterator[FunctionType]:
    """The functions that a module or a class holds by name, and those of the classes in it that are of `module`."""
    seen: set[int] = set()
    namespaces = [namespace]
    while namespaces:
        for value in list(namespaces.pop().values()):
            bases = bases_of(type(value))
            if type in bases:
                if id(value) not in seen and namespace_of(value).get("__module__") == module:
                    seen.add(id(value))
                    namespaces.append(namespace_of(value))
            elif property in bases:
                for part in (value.fget, value.fset, value.fdel):
                    yield from _layers(part)
            else:
                yield from _layers(value)


def _files_below(module: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """`module` and the imported modules below it that a hook for its name would mend, by their files."""
    name = _name_of(module)
    allowlist = Allowlist([name])
    for each in (module, *(below for key, below in list(sys.modules.items()) if key.startswith(f"{name}."))):
        file = file_of(each)
        if file and (each is module or not allowlist.passes_over(_name_of(each))):
            yield file, each


def _of_instance(thing: object) -> Aim:
    """The modules of the classes of an object, of all its parts if it is a model; TypeError if those have no code."""
    torch = sys.modules.get("torch")
    parts = thing.modules() if torch is not None and isinstance(thing, torch.nn.Module) else [thing]
    aim = Aim()
    for each in dict.fromkeys(base for part in parts for base in bases_of(type(part))):
        owner = _owner_of(each)
        if not is_unmendable(owner):
            module = sys.modules.get(owner)
            file = module and file_of(module)
            if module is not None and file:
                aim.files[file] = module
            else:  # of a notebook
                aim.functions += _placed_in(namespace_of(each), owner)
    if not aim.files and not aim.functions:
        kind = type(thing).__qualname__
        raise TypeError(f"mend() takes a function, a class, a module or a model; {kind} has no Python code of its own")
    return aim


def file_of(module: object) -> str:
    """The path of the source file of `module`, "" if it has none, or is no module."""
    spec = spec_of(module)
    if spec is not None:
        is_source = isinstance(spec.loader, SourceFileLoader) and spec.has_location
        file = spec.origin if is_source else None
    else:
        file = namespace_of(module).get("__file__") if is_module(module) else None
    return file if isinstance(file, str) and os.path.isabs(file) else ""


def _name_of(module: ModuleType) -> str:
    return str(namespace_of(module).get("__name__", ""))


def _owner_of(kind: type) -> str:
    """The name of the module of a class."""
    return str(namespace_of(kind).get("__module__", "builtins"))


def _check_mendable(module: str) -> None:
    if is_unmendable(module):
        raise ConfigError(f"mend(): {module!r} cannot be mended; give it what runs inside torch.compile")


def _module_of(function: FunctionType) -> str:
    """The module that the function was written in, whatever `functools.wraps` says."""
    return str(function.__globals__.get("__name__", ""))
