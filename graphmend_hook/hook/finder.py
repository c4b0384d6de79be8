"""The finder: takes over allowlisted modules that plain source files hold, and leaves every other import alone."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import ModuleType

from .. import runtime
from ..reporting.ledger import Ledger, ModuleRecord, Status
from .allowlist import Allowlist
from .loader import Mender, MendingLoader


class MendingFinder(MetaPathFinder):
    """Asks the other finders for a spec and puts a `MendingLoader` where they chose exactly `SourceFileLoader`.

    For every other module it finds nothing, so that the import goes on as if it were not there.
    """

    def __init__(self, allowlist: Allowlist, mender: Mender, ledger: Ledger) -> None:
        self._allowlist = allowlist
        self._mender = mender
        self._ledger = ledger
        self._asking = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not runtime.connected and fullname.startswith("torch._dynamo"):
            runtime.connect()  # nothing can be traced before this import
        if not self._allowlist.may_cover(fullname, path):
            return None
        spec = self._from_others(fullname, path, target)
        if spec is None or not spec.origin or not self._allowlist.covers(fullname, spec.origin):
            return None
        if self._allowlist.passes_over(fullname):
            self._ledger.add(ModuleRecord(fullname, spec.origin, Status.PASSED_OVER))
            return None
        if type(spec.loader) is SourceFileLoader:
            spec.loader = MendingLoader(fullname, spec.origin, self._mender)
            return spec
        loader = type(spec.loader)
        why = f"loaded by {loader.__module__}.{loader.__qualname__}, not from a plain source file"
        self._ledger.add(ModuleRecord(fullname, spec.origin, Status.NOT_ELIGIBLE, why=why))
        return None

    def _from_others(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        """The spec that the import would have had without us.

        Another hook that asks the others too would come back here for the same name; it then finds nobody home.
        """
        asking: set[str] = self._asking.__dict__.setdefault("names", set())
        if fullname in asking:
            return None
        asking.add(fullname)
        try:
            for finder in list(sys.meta_path):
                if isinstance(finder, MendingFinder) or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
            return None
        finally:
            asking.discard(fullname)
