"""Putting the hook into `sys.meta_path` and taking it out again."""

from __future__ import annotations

import logging
import sys
import threading
from importlib.machinery import SourceFileLoader

from ..config import Settings
from ..diagnostics import StrictError, notice
from ..dynamo import queue
from ..reporting.exit import report_at_exit
from ..reporting.ledger import HookRecord, ModuleRecord, Status, ledger
from .allowlist import Allowlist
from .finder import MendingFinder
from .loader import Mender

log = logging.getLogger("graphmend_hook")
_lock = threading.RLock()
_active: list[Hook] = []


class Hook:
    """An installed hook.  As a context manager it uninstalls itself at the end of the block."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.mender = Mender(settings, ledger)
        self._finder = MendingFinder(Allowlist(settings.modules, settings.deny), self.mender, ledger)

    @property
    def installed(self) -> bool:
        return self._finder in sys.meta_path

    def uninstall(self) -> None:
        """Stop mending imports.  Modules that are already imported stay as they are.  Twice is no error."""
        with _lock:
            if self._finder in sys.meta_path:
                sys.meta_path.remove(self._finder)
            if self in _active:
                _active.remove(self)

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.uninstall()

    def _install(self) -> None:
        directory = self.mender.cache.directory  # opens the cache: nothing is imported inside an import later
        ledger.hooks.append(HookRecord(self.settings, directory))
        queue.guards, queue.values = self.settings.guards, self.settings.values
        queue.cond = self.settings.cond
        queue.specialise = "value" in self.settings.rules
        sys.meta_path.insert(0, self._finder)
        _active.append(self)


def install_settings(settings: Settings) -> Hook:
    """Install a hook for `settings`; the one that is there already if it has the same settings.

    Raises StrictError where `settings.strict` is on and a module was imported too early.
    """
    with _lock:
        for hook in _active:
            if hook.settings == settings and hook.installed:
                return hook
        if settings.log:
            _log_to_stderr(settings.log)
        hook = Hook(settings)
        if settings.disable:
            log.info("%s", notice("GM007"))
            return hook
        _note_early_modules(settings)
        hook._install()
        report_at_exit(settings)
        return hook


def active() -> tuple[Hook, ...]:
    """The hooks that are installed in this process, in the order in which they were."""
    with _lock:
        return tuple(hook for hook in _active if hook.installed)


def uninstall() -> None:
    """Uninstall every hook of this process."""
    with _lock:
        for hook in tuple(_active):  # `uninstall` takes it out
            hook.uninstall()


def _note_early_modules(settings: Settings) -> None:
    allowlist = Allowlist(settings.modules, settings.deny)
    early = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
            continue
        if name == "__main__" and name in ledger.modules:  # mended by our runner, with the stock loader
            continue
        if allowlist.covers(spec.name, spec.origin):  # the spec has the own name of what runs as __main__
            early.append(name)
            ledger.add(ModuleRecord(name, spec.origin, Status.TOO_EARLY))
    if not early:
        return
    more = f" (and {len(early) - 1} more)" if len(early) > 1 else ""
    message = notice("GM001", module=early[0] + more)
    if settings.strict:
        raise StrictError(message)
    log.warning("%s", message)


def _log_to_stderr(level: str) -> None:
    log.setLevel(level)
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("graphmend_hook[%(process)d] %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
