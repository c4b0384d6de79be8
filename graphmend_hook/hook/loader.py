"""The loader: a `SourceFileLoader` whose code object has been through the rules, and the work it does for that."""

from __future__ import annotations

import contextlib
import gc
import logging
import warnings
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from time import perf_counter
from types import CodeType

from .. import runtime
from ..config import Settings
from ..diagnostics import notice
from ..reporting.ledger import Ledger, ModuleRecord, Status
from ..rewrite import Rewritten, active_rules, rewrite
from .cache import Cache

log = logging.getLogger("graphmend_hook")


class Mender:
    """Turns source text into mended code, by way of the cache; what every loader of one hook shares."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self.rules = active_rules(settings.rules)
        self.cache = Cache(settings.cache_dir, self.rules)
        self.ledger = ledger

    def mend(self, name: str, path: str, source: bytes) -> tuple[CodeType | None, bool]:
        """The code of the module `name`, None where it is to run as it is, and whether the cache had it.

        Never raises for a reason of ours.
        """
        start = perf_counter()
        try:
            result, cached = self.result(path, source)
        except SyntaxError:
            return None, False  # the stock loader reports it as Python does
        except Exception as error:
            log.warning("%s", notice("GM002", module=name, error=repr(error)), exc_info=log.isEnabledFor(logging.DEBUG))
            self.ledger.add(ModuleRecord(name, path, Status.FAILED, why=repr(error)))
            return None, False
        status = Status.UNCHANGED if result.code is None else Status.MENDED
        self.ledger.add(ModuleRecord(name, path, status, result.sites, cached, perf_counter() - start))
        log.debug("%s %s: %d of %d sites", status.value, name, result.mended, len(result.sites))
        if result.code is not None:
            runtime.connect()  # for a hook that was installed after Dynamo was imported
        return result.code, cached

    def result(self, path: str, source: bytes) -> tuple[Rewritten, bool]:
        """What the rules make of the module text `source`, and whether the cache had it.  Raises what they raise."""
        result = self.cache.get(path, source)
        if result is not None:
            return result, True
        with _alone():
            result = rewrite(source, path, self.rules)
        self.cache.put(path, source, result)
        return result, False


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Without the compiler's warnings, which the stock compile shows, and without garbage collection.

    A syntax tree is many small objects that all live: collecting among them took a third of the rewriting.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if enabled:
            gc.enable()


class MendingLoader(SourceFileLoader):
    """Loads a source file as `SourceFileLoader` does, except for the code it runs."""

    def __init__(self, fullname: str, path: str, mender: Mender) -> None:
        super().__init__(fullname, path)
        self._mender = mender

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that the module's code goes through."""
        return tuple(rule.name for rule in self._mender.rules)

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        try:
            source = self.get_data(path)
        except OSError:
            return super().get_code(fullname)
        code, cached = self._mender.mend(fullname, path, source)
        if code is not None and cached:
            return code
        # Even where its code is not used: it writes the stock pyc and shows the compiler's warnings, as always.
        stock = super().get_code(fullname)
        return stock if code is None else code

    # importlib cuts its own frames off the traceback of a SyntaxError, which it knows by this file name.
    get_code.__code__ = get_code.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
