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
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from .hook.install import Hook
    from .product.explain.in_process import Explained

    T = TypeVar("T")

__all__ = [
    "__version__",
    "explain",
    "install",
    "load_ipython_extension",
    "mend",
    "report",
    "uninstall",
    "unload_ipython_extension",
    "unmend",
]


def install(
    modules: str | Iterable[str],
    *,
    deny: str | Iterable[str] = (),
    rules: str | Iterable[str] | None = None,
    guards: str | None = None,
    values: str | Iterable[str] | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    strict: bool | None = None,
    report: str | os.PathLike[str] | None = None,
    log: str | None = None,
    late: bool | None = None,
    disable: bool | None = None,
    children: bool = False,
) -> Hook:
    """Mend the modules that match `modules` when they are imported from now on.

    modules, deny: dotted names (a module and all below it), globs (``pkg.*.modeling_*``) or directories; those of
        ``GRAPHMEND_DENY`` are left alone too.
    rules: names of the rules to apply; "-defer" is every rule but that one.
    guards: what becomes of guards on tensors, "exact", "async" or "keep".
    values: names, or globs, of inputs on whose values compiled code may be specialised.
    cache_dir: where transformed bytecode is kept.
    strict: "imported too early" is an error, and that nothing was mended is said when the process ends.
    report: "-" for a table on stderr when the process ends, else the path of a JSON file.
    log: show the tool's own messages: "debug", "info", "warning" or "error".
    late: mend those that were imported before, too, as `mend` does.
    children: switch the hook on in the processes that this one starts, too, by their environment.
    disable: mend nothing; so it is, whatever is said here, where ``GRAPHMEND_DISABLE`` is set.

    None takes the ``GRAPHMEND_*`` variable of the same name, or its default. A process traces under one choice of
    `guards` and `values`: None takes that of a hook that is installed, and another choice is a ConfigError.
    Installing twice with the same arguments gives the same handle.  Its `uninstall()` removes the hook again.
    Raises ConfigError for a value that cannot be used, and StrictError as `strict` says.
    """
    given = dict(locals())  # each argument is a setting of that name, but for one
    with_children = given.pop("children")
    from .hook.install import install_arguments
    from .hook.unmatched import tell_at_exit

    hook = install_arguments(given)
    tell_at_exit(hook)
    if with_children:
        hook.switch_on_children()
    return hook


def uninstall() -> None:
    """Remove every hook of this process from `sys.meta_path`.  What is imported already stays as it is."""
    from .hook.install import uninstall as uninstall_all

    uninstall_all()


def mend(thing: T) -> T:
    """Mend what exists already, whenever it was imported or defined, and give it back; a decorator, too.

    thing: a function or method (with what wraps it, `torch.compile` too), a class (its methods and those it inherits),
        a module (with what is imported below it), or an object, such as a model: the modules of its classes, and of
        the classes of its parts.

    Functions stay the objects that they are, and get other code; what is compiled already is compiled anew at its next
    call, and a module that is reloaded is mended again.  A function whose code is not what Python makes of its text, or
    whose text cannot be found, is left alone, and that is said (GM014).  The settings are those of the hook that is
    installed, else of the environment.
    Raises TypeError for what has no Python code, and ConfigError for torch's own.
    """
    from .hook.install import hook_of_this_process
    from .hook.reach import late

    hook, aim = hook_of_this_process(), late.aim_at(thing)
    if not hook.settings.disable:
        late.mend(aim, hook.mender, hook.settings)
        hook.allowlist.also |= aim.modules
    return thing


def unmend(thing: T) -> T:
    """Give what `mend` (or ``install(..., late=True)``) has mended its own code back, and give `thing` back.

    What was mended when it was imported stays as it is.
    """
    from .hook.install import active
    from .hook.reach import late

    aim = late.aim_at(thing)
    late.unmend(aim)
    for hook in active():
        hook.allowlist.also -= aim.modules
    return thing


def explain(function: Callable[..., Any], *, backend: Any = "eager") -> Callable[..., Explained]:
    """``print(graphmend_hook.explain(f)(*args))``: how many graphs a call of `f` makes, where they break, and why.

    function: a function or module, compiled already or not.  backend: for one that is not.
    Gives a function that calls it once, as `torch._dynamo.explain` does, and returns an `Explained`: its `result`, the
    number of `graphs`, the `breaks` with their callers and what the hook says of each, and `as_dict()`.
    Everything that was compiled before in this process is compiled anew at its next call.
    """

    def call(*args: Any, **kwargs: Any) -> Explained:
        from .product.explain.in_process import explained
        from .product.explain.verdicts import NOTEBOOK, PROGRAM

        extension = sys.modules.get(f"{__name__}.ipython")
        is_notebook = extension is not None and extension.is_loaded()
        return explained(function, args, kwargs, backend, NOTEBOOK if is_notebook else PROGRAM)

    return call


def report(as_dict: bool = False) -> Any:
    """What was mended so far in this process, and what was left alone and why, as text.

    as_dict: as a dictionary instead, of what the JSON file of a report holds (docs/report.md).
    """
    from .product.report.ledger import as_json, ledger
    from .product.report.text import as_text

    return as_json(ledger) if as_dict else as_text(ledger)


def load_ipython_extension(shell: object) -> None:
    """``%load_ext graphmend_hook``: mend the cells of this notebook from now on."""
    from .ipython import load

    load(shell)


def unload_ipython_extension(shell: object) -> None:
    """``%unload_ext graphmend_hook``: leave the cells to come as they are."""
    from .ipython import unload

    unload(shell)


def _install_from_environment() -> None:
    from .diagnostics import GraphmendError, say_failed
    from .hook.install import install_settings
    from .hook.unmatched import tell_at_exit
    from .settings.config import Setting, Settings

    try:
        settings = Settings.from_env()
        if settings.modules:
            tell_at_exit(install_settings(settings, Setting.variable))
    except GraphmendError as error:
        _show_in_a_line(error)
        raise
    except Exception as error:
        say_failed("the start of the hook", "from GRAPHMEND_MODULES", error)


def _tell_of_unknown_variables() -> None:
    """Where nothing is to be mended, a misspelt GRAPHMEND_MODULES would be silence."""
    from .diagnostics import ConfigError
    from .settings.config import check_names

    try:
        check_names(os.environ)
    except ConfigError as error:
        import logging

        logging.getLogger(__name__).warning("%s", error)


def _show_in_a_line(wrong: BaseException) -> None:
    """Let python show `wrong`, if it ends the program, without a traceback: no line of code is at fault."""
    others = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: object) -> None:
        if error is wrong and sys.stderr is not None:
            print(f"graphmend_hook: error: {error}", file=sys.stderr)
        else:
            others(kind, error, traceback)  # type: ignore[arg-type]

    sys.excepthook = show


def _is_the_program() -> bool:
    """Is this process our own command line?  Then that reads the environment, together with its options."""
    words = sys.orig_argv
    ours = {("-m", __name__), ("-m", f"{__name__}.product.explain")}
    if f"-m{__name__}" in words or not ours.isdisjoint(pairwise(words)):
        return True
    return os.path.basename(words[1] if len(words) > 1 else "") in ("graphmend", "graphmend.exe")


def _is_relaunched() -> bool:
    """Was this process started anew by `hook.relaunch`?  It has the hook while its sitecustomize runs, as others do."""
    return os.environ.get("_GRAPHMEND_RELAUNCHED") == str(os.getpid())


def _without_collecting(act: Callable[[], None]) -> None:
    """What is imported lives on: to look for garbage among it is a twentieth of the start."""
    import gc

    is_enabled = gc.isenabled()
    gc.disable()
    try:
        act()
    finally:
        if is_enabled:
            gc.enable()


if os.environ.get("GRAPHMEND_MODULES") and (_is_relaunched() or not _is_the_program()):
    _without_collecting(_install_from_environment)
elif any(name.startswith("GRAPHMEND_M") and name != "GRAPHMEND_MODULES" for name in os.environ):
    _tell_of_unknown_variables()  # no other setting begins so
