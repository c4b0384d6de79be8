"""Mending what another hook loads: its loader makes the code of a module, and its functions get their mended form then.

Type checkers such as beartype, jaxtyping and typeguard have loaders that put decorators on functions, or checks into
them.  Where a function itself is still what Python makes of its text, theirs and ours both do their work; where it is
not, theirs stays as it is, and the report says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from ... import runtime
from ...diagnostics import notice, say_failed
from ...product.report.ledger import Status
from ...source.templates import RUNTIME
from ..looking import kind_of, namespace_of
from ..mender import Mender
from .twins import Twins, some_of

_OURS = "_graphmend_hook_grafts"


def graft_onto(loader: SourceFileLoader, mender: Mender, is_installed: Callable[[], bool]) -> None:
    """Let the code that `loader`, of another hook, makes of a module go through the rules when it is run.

    Its caches hold what it makes by itself.  A loader that does not ask its own `get_code` is not reached.
    """
    theirs: Any = loader.get_code
    if hasattr(theirs, _OURS):  # a finder may give out one loader again and again
        return

    def get_code(*args: Any, **kwargs: Any) -> CodeType | None:
        code: CodeType | None = theirs(*args, **kwargs)
        name = str(args[0] if args else kwargs.get("fullname", loader.name))
        try:
            return code if code is None or not is_installed() else _grafted(code, loader, name, mender)
        except Exception as error:
            say_failed("the import hook", f"mending {name}", error)
            return code

    # As for the loader of ours: importlib cuts such frames off tracebacks.
    get_code.__code__ = get_code.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    setattr(get_code, _OURS, True)
    loader.get_code = get_code  # type: ignore[method-assign]


def _grafted(code: CodeType, loader: SourceFileLoader, name: str, mender: Mender) -> CodeType:
    """`code`, in which the functions that the other hook has left as they were are mended."""
    namespace: Any = namespace_of(sys.modules.get(name))
    spec = namespace.get("__spec__")
    if spec is None or spec.loader is not loader:  # it is not being imported, and who knows what it is run among
        return code
    path = loader.get_filename(name)
    source = loader.get_data(path)
    made = mender.attempt(name, path, lambda: mender.result(path, source))
    if made is None or made[0].code is None:
        return code
    twins = Twins(compile(source, path, "exec", dont_inherit=True), made[0].code)
    grafted = twins.graft(code)
    if grafted is not code:
        namespace[RUNTIME] = runtime  # as the import in a mended module does
    record = mender.ledger.modules[name]
    left = twins.absent(grafted, {site.function for site in record.sites if not site.code})
    if left:
        why = notice("GM016", functions=some_of(left), module=name, loader=kind_of(loader))
        sites = tuple(site for site in record.sites if site.code or site.function not in left)
        mended = Status.MENDED if any(not site.code for site in sites) else Status.NOT_ELIGIBLE
        mender.ledger.add(replace(record, status=mended, sites=sites, why=why))
    return grafted
