"""An import hook that frees PyTorch libraries of graph breaks, with no edit to their source.

``import graphmend_hook`` installs the hook if, and only if, ``GRAPHMEND_MODULES`` is set; `install` does it by hand.
Importing this package imports neither torch nor bytecode.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

from .version import __version__

TYPE_CHECKING = False  # as typing has it; under `python -m` a typing.py of the user's could be found first
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .hook.install import Hook

__all__ = ["__version__", "install", "load_ipython_extension", "report", "uninstall", "unload_ipython_extension"]


def install(
    modules: str | Iterable[str],
    *,
    deny: str | Iterable[str] = (),
    rules: str | Iterable[str] | None = None,
    guards: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    strict: bool | None = None,
) -> Hook:
    """Mend the modules that match `modules` when they are imported from now on.

    modules, deny: dotted names (a module and all below it), globs (``pkg.*.modeling_*``) or directories.
    rules: names of the rules to apply; None takes ``GRAPHMEND_RULES``, or all of them.
    guards: what becomes of guards on tensors, "exact", "async" or "keep"; None takes ``GRAPHMEND_GUARDS``, or exact.
    cache_dir: where transformed bytecode is kept; None takes ``GRAPHMEND_CACHE_DIR``, or a per-user directory.
    strict: make "imported too early" an error; None takes ``GRAPHMEND_STRICT``.

    Installing twice with the same arguments gives the same handle.  Its `uninstall()` removes the hook again.
    Raises ConfigError for a value that cannot be used, and StrictError as `strict` says.
    """
    from dataclasses import replace
    from pathlib import Path

    from .config import Settings, parse_guards, parse_rules
    from .hook.install import install_settings

    settings = Settings.from_env().with_modules(_names(modules), _names(deny))
    if guards is not None:
        settings = replace(settings, guards=parse_guards(guards))
    if rules is not None:
        settings = replace(settings, rules=parse_rules(",".join(_names(rules)) or "none"))
    if cache_dir is not None:
        settings = replace(settings, cache_dir=Path(cache_dir).expanduser())
    if strict is not None:
        settings = replace(settings, strict=strict)
    return install_settings(settings)


def uninstall() -> None:
    """Remove every hook of this process from `sys.meta_path`.  What is imported already stays as it is."""
    from .hook.install import uninstall as uninstall_all

    uninstall_all()


def report() -> str:
    """What was mended so far in this process, and what was left alone and why, as text."""
    from .reporting.ledger import ledger
    from .reporting.text import as_text

    return as_text(ledger)


def load_ipython_extension(shell: object) -> None:
    """``%load_ext graphmend_hook``: mend the cells of this notebook from now on."""
    from .ipython import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """``%unload_ext graphmend_hook``: leave the cells to come as they are."""
    from .ipython import unload

    unload(shell)


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    from .config import split_list

    return split_list(value) if isinstance(value, str) else tuple(value)


def _install_from_environment() -> None:
    from .config import Settings
    from .hook.install import install_settings

    settings = Settings.from_env()
    if settings.modules:
        install_settings(settings)


def _is_the_program() -> bool:
    """Is this process our own command line?  Then that reads the environment, together with its options."""
    words = sys.orig_argv
    if "-mgraphmend_hook" in words or ("-m", "graphmend_hook") in pairwise(words):
        return True
    return os.path.basename(words[1] if len(words) > 1 else "") in ("graphmend", "graphmend.exe")


if os.environ.get("GRAPHMEND_MODULES") and not _is_the_program():
    _install_from_environment()
