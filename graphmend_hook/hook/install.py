"""Putting the hook into `sys.meta_path` and taking it out again."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.machinery import SourceFileLoader

from ..config import Form, Kind, Setting, Settings, settings_of_kind
from ..diagnostics import ConfigError, StrictError, notice
from ..dynamo import queue, trust
from ..reporting.exit import report_at_exit
from ..reporting.ledger import HookRecord, ModuleRecord, Status, ledger
from . import console
from .allowlist import Allowlist
from .finder import MendingFinder
from .loader import Mender

log = logging.getLogger("graphmend_hook")
TRACING = settings_of_kind(Kind.TRACING)
_RULES = settings_of_kind(Kind.REWRITING)[0]
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
        """Stop mending imports.  Twice is no error.

        Modules that are already imported stay mended; they are traced under the settings of the hooks that remain, or
        under the defaults if none does.
        """
        with _lock:
            if self._finder in sys.meta_path:
                sys.meta_path.remove(self._finder)
            if self in _active:
                _active.remove(self)
            _follow_hooks()

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_exc_info: object) -> None:
        self.uninstall()

    def _install(self) -> None:
        directory = self.mender.cache.directory  # opens the cache: nothing is imported inside an import later
        trust.directory = directory
        ledger.hooks.append(HookRecord(self.settings, directory))
        sys.meta_path.insert(0, self._finder)
        _active.append(self)
        _follow_hooks()


def install_arguments(given: Mapping[str, object], form: Form = Setting.keyword) -> Hook:
    """Install a hook for the settings in `given`, by name; what is missing there, or None, is as in the environment.

    What traced code does is, if it is not in `given`, as the hooks say that are installed: see `install_settings`.
    Raises ConfigError that names the setting by `form`, and StrictError as `install_settings` does.
    """
    settings = Settings.from_env().with_arguments(given, form)
    return install_settings(settings, form, [setting.name for setting in TRACING if given.get(setting.name) is None])


def install_settings(settings: Settings, form: Form = Setting.keyword, unsaid: Collection[str] = ()) -> Hook:
    """Install a hook for `settings`; the one that is there already if it has the same settings.

    A process traces under one choice of the settings of Kind.TRACING. form: how the user names a setting. unsaid: names
    of those that nobody chose for this hook; they are taken from a hook that is installed.
    Raises ConfigError if a hook is installed that wants another choice, and StrictError if `settings.strict` is on and
    a module was imported too early.
    """
    with _lock:
        hooks = active()
        if hooks:
            settings = replace(settings, **{name: getattr(hooks[0].settings, name) for name in unsaid})
        for hook in hooks:
            if hook.settings == settings:
                return hook
        if settings.disable:
            console.show(settings.log)
            log.info("%s", notice("GM007"))
            return Hook(settings)
        _refuse_another_choice(settings, form)
        console.show(settings.log)
        hook = Hook(settings)
        try:
            _note_early_modules(settings)
        except StrictError:
            _follow_hooks()
            raise
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


def _refuse_another_choice(settings: Settings, form: Form) -> None:
    for hook in active():
        other = hook.settings
        differ = [setting for setting in TRACING if getattr(settings, setting.name) != getattr(other, setting.name)]
        if {_decides_branches(settings), _decides_branches(other)} == {True, False}:
            differ.append(_RULES)
        for setting in differ:
            mine, theirs = (setting.show(getattr(each, setting.name)) for each in (settings, other))
            what = "with the rule value, or all without" if setting is _RULES else f"under one choice of {setting.name}"
            raise ConfigError(
                f"{form(setting)}: {mine} is asked for {_whose(settings)}, but {theirs} for {_whose(other)}, whose "
                f"hook is installed, and a process traces all modules {what}; give both the same, or uninstall that "
                "hook first"
            )


def _decides_branches(settings: Settings) -> bool | None:
    """May [Value] decide the branches that [Where] mends?  None if that is not asked for."""
    return "value" in settings.rules if "where" in settings.rules else None


def _whose(settings: Settings) -> str:
    return ", ".join(settings.modules) or "the cells of this notebook"


def _follow_hooks() -> None:
    """Put what the installed hooks say, or else the defaults, where traced code and logging look."""
    hooks = [hook.settings for hook in active()]
    first = hooks[0] if hooks else Settings()
    for setting in TRACING:
        setattr(queue, setting.name, getattr(first, setting.name))
    queue.specialise = next((said for said in map(_decides_branches, hooks) if said is not None), True)
    console.show(next((each.log for each in reversed(hooks) if each.log), ""))
