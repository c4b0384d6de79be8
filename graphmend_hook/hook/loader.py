"""The loader, a `SourceFileLoader` whose code object has been through the rules, and the finder that puts it in."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType

from .. import runtime
from ..diagnostics import say_failed
from ..product.report.ledger import ModuleRecord, Status
from .allowlist import Allowlist
from .looking import kind_of
from .mender import Mender
from .reach.grafting import graft_onto

log = logging.getLogger("graphmend_hook")


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
        try:
            code, cached = self._mender.mend(fullname, path, source)
        except Exception as error:
            say_failed("the import hook", f"mending {fullname}", error)
            code, cached = None, False
        if code is not None and cached:
            return code
        # Even where its code is not used: it writes the stock pyc and shows the compiler's warnings, as always.
        stock = super().get_code(fullname)
        return stock if code is None else code

    # importlib cuts its own frames off the traceback of a SyntaxError, which it knows by this file name.
    get_code.__code__ = get_code.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")


def _is_plain(loader: object, name: str, path: str) -> bool:
    """Is it Python's own loader, as Python makes it for that module and file?"""
    return type(loader) is SourceFileLoader and vars(loader) == {"name": name, "path": path}


class MendingFinder:
    """Asks the other finders for a spec and puts a `MendingLoader` where they chose exactly `SourceFileLoader`.

    For every other module it finds nothing, so that the import goes on as if it were not there.  It has no base class:
    that is in `importlib.abc`, which imports tempfile, shutil and three ways to compress at each start of python.
    """

    def __init__(self, allowlist: Allowlist, mender: Mender) -> None:
        self._allowlist = allowlist
        self._mender = mender
        self._asking = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        try:
            if not runtime.announced and fullname.startswith("torch._dynamo"):
                runtime.connect()  # nothing can be traced before this import, and its parts are imported until then
            if not self._allowlist.may_cover(fullname, path):
                return None
            spec = self._from_others(fullname, path, target)
            return None if spec is None else self.adopt(fullname, spec)
        except Exception as error:
            if error is self._asking.__dict__.pop("theirs", None):
                raise
            say_failed("the import hook", f"looking for {fullname}", error)
            return None

    def adopt(self, fullname: str, spec: ModuleSpec, brought: bool = False) -> ModuleSpec | None:
        """`spec` with a loader that mends; None where the module is none of ours to mend.

        brought: is the loader one that the program itself has made, and may have changed?
        """
        if not spec.origin or not self._allowlist.covers(fullname, spec.origin):
            return None
        if self._allowlist.passes_over(fullname):
            self._mender.ledger.add(ModuleRecord(fullname, spec.origin, Status.PASSED_OVER))
            return None
        if _is_plain(spec.loader, fullname, spec.origin) and not brought:
            spec.loader = MendingLoader(fullname, spec.origin, self._mender)
            return spec
        if isinstance(spec.loader, MendingLoader):  # another finder has made its spec by `by_location`
            return spec
        why = f"loaded by {kind_of(spec.loader)}, not from a plain source file"
        if type(spec.loader) is SourceFileLoader:
            why = "loaded by a loader of the program's own; mend it by graphmend_hook.mend(module)"
        self._mender.ledger.add(ModuleRecord(fullname, spec.origin, Status.NOT_ELIGIBLE, why=why))
        if isinstance(spec.loader, SourceFileLoader) and not brought:
            graft_onto(spec.loader, self._mender, lambda: self in sys.meta_path)
            return spec
        return None

    def mended_script(self, path: str) -> CodeType | None:
        """The mended code of the script at `path`, None where it is to run as it is.  Raises OSError."""
        if not self._allowlist.covers("__main__", os.path.abspath(path)):
            return None
        with io.open_code(path) as stream:
            source = stream.read()
        if source.startswith(MAGIC_NUMBER):  # bytecode
            return None
        return self._mender.mend(os.path.basename(path), path, source)[0]

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
                try:
                    spec = finder.find_spec(fullname, path, target)
                except Exception as error:
                    self._asking.theirs = error
                    raise
                if spec is not None:
                    return spec
            return None
        finally:
            asking.discard(fullname)
