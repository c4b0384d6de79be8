"""Putting the hook into `sys.meta_path` and taking it out again."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from types import ModuleType

from ..diagnostics import ConfigError, StrictError, notice
from ..engine.door import trust
from ..engine.epilogue import queue
from ..product.report.exit import report_at_exit
from ..product.report.ledger import HookRecord, ModuleRecord, Status, ledger
from ..settings.config import Form, Kind, Setting, Settings, settings_of_kind
from .allowlist import Allowlist
from .loader import MendingFinder
from .looking import spec_of
from .mender import Mender
from .reach import by_location, children, late
from .unreached import note_unreached

log = logging.getLogger("graphmend_hook")
TRACING = settings_of_kind(Kind.TRACING)
_RULES = settings_of_kind(Kind.REWRITING)[0]
_lock = threading.RLock()
_active: list[Hook] = []
_log_before: tuple[int, bool, list[logging.Handler]] | None = None  # the logger's state, once we have changed it


class Hook(AbstractContextManager["Hook"]):
    """An installed hook.  As a context manager it uninstalls itself at the end of the block."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.mender = Mender(settings, ledger)
        self.is_asked_for = True  # or was it made for late mending alone?
        self._leave_children: Callable[[], None] | None = None
        self.allowlist = Allowlist(settings.modules, settings.deny)
        self.finder = MendingFinder(self.allowlist, self.mender)

    def switch_on_children(self) -> None:
        """Let the processes that this one starts have such a hook, until it is uninstalled.  Twice is no error."""
        with _lock:
            if self.installed and self._leave_children is None:
                self._leave_children = children.switch_on(self.settings)

    @property
    def installed(self) -> bool:
        return self.finder in sys.meta_path

    def uninstall(self) -> None:
        """Stop mending imports.  Twice is no error.

        Modules that are already imported stay mended; they are traced under the settings of the hooks that remain, or
        under the defaults if none does.
        """
        with _lock:
            note_unreached(hook.allowlist for hook in active())  # what comes later is not this hook's to see to
            if self.finder in sys.meta_path:
                sys.meta_path.remove(self.finder)
            if self in _active:
                _active.remove(self)
            if self._leave_children is not None:
                self._leave_children()
                self._leave_children = None
            _follow_hooks()

    def __exit__(self, *_exc_info: object) -> None:
        self.uninstall()


def install_arguments(given: Mapping[str, object], form: Form = Setting.keyword) -> Hook:
    """Install a hook for the settings in `given`, by name; what is missing there, or None, is as in the environment.

    What traced code does is, if it is not in `given`, as the hooks say that are installed: see `install_settings`.
    Raises ConfigError that names the setting by `form`, and StrictError as `install_settings` does.
    """
    environment = Settings.from_env()  # what it denies stays denied, and what it disables stays disabled
    settings = environment.with_given(given, form)
    deny = tuple(dict.fromkeys((*environment.deny, *settings.deny)))
    settings = replace(settings, deny=deny, disable=environment.disable or settings.disable)
    return install_settings(settings, form, [setting.name for setting in TRACING if given.get(setting.name) is None])


def install_settings(settings: Settings, form: Form = Setting.keyword, unsaid: Collection[str] = ()) -> Hook:
    """Install a hook for `settings`; the one that is there already if it has the same settings.

    A process traces under one choice of the settings of Kind.TRACING. form: how the user names a setting. unsaid: names
    of those that nobody chose for this hook; they are taken from a hook that is installed.
    Raises ConfigError if a hook is installed that wants another choice, and StrictError if `settings.strict` is on and
    a module was imported too early.
    """
    with _lock:
        mended_late = _make_room()
        hooks = active()
        if hooks:
            settings = replace(settings, **{name: getattr(hooks[0].settings, name) for name in unsaid})
        for hook in hooks:
            if hook.settings == settings:
                return hook
        if settings.disable:
            _show(settings.log)
            log.info("%s", notice("GM007"))
            return Hook(settings)
        _refuse_another_choice(settings, form)
        _show(settings.log)
        hook = Hook(settings)
        hook.allowlist.also |= mended_late
        try:
            directory = hook.mender.cache.directory  # opens the cache: nothing is imported inside an import later
            _mend_or_note_early_modules(hook)
            trust.directory = directory
            ledger.hooks.append(HookRecord(settings, directory, lambda: hook.mender.cache.problem))
            sys.meta_path.insert(0, hook.finder)
            _active.append(hook)
            _follow_hooks()
            report_at_exit(settings, children.is_child())
        except BaseException:
            hook.uninstall()
            raise
        return hook


def hook_of_this_process() -> Hook:
    """A hook that is installed; else one is, by the settings of the environment, that mends no imports."""
    with _lock:
        hooks = active()
        if hooks:
            return hooks[0]
        settings = replace(Settings.from_env(), modules=())
        hook = install_settings(settings, Setting.variable, [setting.name for setting in TRACING])
        hook.is_asked_for = False
        return hook


def active() -> tuple[Hook, ...]:
    """The hooks that are installed in this process, in the order in which they were."""
    with _lock:
        return tuple(hook for hook in _active if hook.installed)


ledger.complete = lambda: note_unreached(hook.allowlist for hook in active())


def uninstall() -> None:
    """Uninstall every hook of this process."""
    with _lock:
        for hook in tuple(_active):  # `uninstall` takes it out
            hook.uninstall()


def _mend_or_note_early_modules(hook: Hook) -> None:
    """Mend the modules that were imported before, where `Settings.late` says so, else say that they are not mended.

    Raises StrictError as `install_settings` does.
    """
    settings = hook.settings
    early: dict[str, ModuleType] = {}
    for name, module in list(sys.modules.items()):
        spec = spec_of(module)
        if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
            continue
        if name == "__main__" and name in ledger.modules:  # mended by our runner, with the stock loader
            continue
        if hook.allowlist.covers(spec.name, spec.origin):  # the spec has the own name of what runs as __main__
            passed_over = hook.allowlist.passes_over(spec.name)
            ledger.add(ModuleRecord(name, spec.origin, Status.PASSED_OVER if passed_over else Status.TOO_EARLY))
            if not passed_over:
                early[name] = module
    if settings.late:
        late.mend_modules(early.values(), hook.mender, settings)
        early = {name: module for name, module in early.items() if ledger.modules[name].status is Status.TOO_EARLY}
    if not early:
        return
    more = f" (and {len(early) - 1} more)" if len(early) > 1 else ""
    message = notice("GM001", module=next(iter(early)) + more)
    if settings.strict:
        raise StrictError(message)
    log.warning("%s", message)


def _make_room() -> set[str]:
    """Take away the hook that late mending has made for itself: what is asked for now has settings of its own.

    Gives the names of the modules that were mended late, and are to be mended again when they are reloaded.
    """
    made = [hook for hook in active() if not hook.is_asked_for]
    for hook in made:
        hook.uninstall()
    return {name for hook in made for name in hook.allowlist.also}


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
    """Put what the installed hooks say, or else the defaults, where traced code, logging and loading by place look."""
    hooks = [hook.settings for hook in active()]
    by_location.follow(bool(hooks))
    first = hooks[0] if hooks else Settings()
    for setting in TRACING:
        setattr(queue, setting.name, getattr(first, setting.name))
    queue.specialise = next((said for said in map(_decides_branches, hooks) if said is not None), True)
    _show(next((each.log for each in reversed(hooks) if each.log), ""))


def _show(level: str) -> None:
    """Show the tool's own messages of `level` and above on stderr; "" gives the logger back as it was found."""
    global _log_before
    if not level:
        if _log_before is not None:
            log.setLevel(_log_before[0])
            log.propagate, log.handlers[:] = _log_before[1:]
            _log_before = None
        return
    if _log_before is None:
        _log_before = log.level, log.propagate, list(log.handlers)
    log.setLevel(level)
    if not log.handlers:  # else the program shows messages in its own way
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("graphmend_hook[%(process)d] %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
