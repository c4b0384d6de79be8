"""Turns the source of a module into mended code, by way of the cache."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from time import perf_counter
from types import CodeType

from .. import runtime
from ..diagnostics import notice
from ..product.report.ledger import Ledger, ModuleRecord, Status
from ..rewrite import Rewritten, active_rules, misspelt, rewrite
from ..settings.config import Settings
from ..settings.syntax import RULE_NAMES
from ..source.covered import cover
from .cache import Cache

log = logging.getLogger("graphmend_hook")


class Mender:
    """Turns source text into mended code, by way of the cache; what every loader of one hook shares."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        self.rules = active_rules(settings.rules)
        self.cache = Cache(settings.cache_dir, self.rules)
        self.ledger = ledger
        self._failures: set[str] = set()  # by what the exception says: of how many modules, the report knows

    def mend(self, name: str, path: str, source: bytes) -> tuple[CodeType | None, bool]:
        """The code of the module `name`, None where it is to run as it is, and whether the cache had it.

        Never raises for a reason of ours.
        """
        made = self.attempt(name, path, lambda: self.result(path, source))
        if made is not None:
            for line, comment in misspelt(source).items():
                rules = ", ".join(RULE_NAMES)
                log.warning("%s", notice("GM020", path=path, line=line, comment=comment, rules=rules))
            if b"graphmend" not in source:  # where something may be switched off, only what was mended is looked at
                cover(name, path, [rule.name for rule in self.rules])
                if "torch._dynamo" in sys.modules:  # else the finder sees it come
                    runtime.connect()
        if made is None or made[0].code is None:
            return None, False
        runtime.connect()  # for a hook that was installed after Dynamo was imported
        return made[0].code, made[1]

    def attempt(
        self, name: str, path: str, make: Callable[[], tuple[Rewritten, bool]]
    ) -> tuple[Rewritten, bool] | None:
        """What `make` gives, noted in the ledger as what became of the module `name`; None where it fails.

        Never raises for a reason of ours.
        """
        start = perf_counter()
        try:
            result, cached = make()
        except SyntaxError:
            return None  # the stock loader reports it as Python does
        except Exception as error:
            say = log.debug if repr(error) in self._failures else log.warning
            self._failures.add(repr(error))
            say("%s", notice("GM002", module=name, error=repr(error)), exc_info=log.isEnabledFor(logging.DEBUG))
            self.ledger.add(ModuleRecord(name, path, Status.FAILED, why=repr(error)))
            return None
        status = Status.UNCHANGED if result.code is None else Status.MENDED
        self.ledger.add(ModuleRecord(name, path, status, result.sites, cached, perf_counter() - start))
        log.debug("%s %s: %d of %d sites", status.value, name, result.mended, len(result.sites))
        return result, cached

    def result(self, path: str, source: bytes) -> tuple[Rewritten, bool]:
        """What the rules make of the module text `source`, and whether the cache had it.  Raises what they raise."""
        result = self.cache.get(path, source)
        if result is not None:
            return result, True
        with self.cache.claim(path):
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
