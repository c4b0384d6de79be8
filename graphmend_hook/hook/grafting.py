"""Mending what another hook loads: its loader makes the code of a module, and its functions get their mended form then.

Type checkers such as beartype, jaxtyping and typeguard have loaders that put decorators on functions, or checks into
them.  Where a function itself is still what Python makes of its text, theirs and ours both do their work; where it is
not, theirs stays as it is, and the report says so.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import TYPE_CHECKING

from ..diagnostics import notice, say_failed
from ..reporting.ledger import Status
from .twins import Twins, some_of

if TYPE_CHECKING:
    from .loader import Mender


def graft_onto(loader: SourceFileLoader, name: str, mender: Mender) -> None:
    """Let the code that `loader`, of another hook, makes of the module `name` go through the rules when it is run.

    Its caches hold what it makes by itself.  A loader that does not ask its own `get_code` is not reached.
    """
    theirs = loader.get_code

    def get_code(fullname: str) -> CodeType | None:
        code = theirs(fullname)
        try:
            return code if code is None else _grafted(code, loader, name, mender)
        except Exception as error:
            say_failed("the import hook", f"mending {fullname}", error)
            return code

    # As for the loader of ours: importlib cuts such frames off tracebacks.
    get_code.__code__ = get_code.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    loader.get_code = get_code  # type: ignore[method-assign]


def _grafted(code: CodeType, loader: SourceFileLoader, name: str, mender: Mender) -> CodeType:
    """`code`, in which the functions that the other hook has left as they were are mended."""
    source = loader.get_data(loader.path)
    made = mender.attempt(name, loader.path, lambda: mender.result(loader.path, source))
    if made is None or made[0].code is None:
        return code
    twins = Twins(compile(source, loader.path, "exec", dont_inherit=True), made[0].code)
    grafted = twins.graft(code)
    record = mender.ledger.modules[name]
    left = twins.absent(grafted, {site.function for site in record.sites if not site.code})
    if left:
        kind = f"{type(loader).__module__}.{type(loader).__qualname__}"
        why = notice("GM016", functions=some_of(left), module=name, loader=kind)
        sites = tuple(site for site in record.sites if site.code or site.function not in left)
        mended = Status.MENDED if any(not site.code for site in sites) else Status.NOT_ELIGIBLE
        mender.ledger.add(replace(record, status=mended, sites=sites, why=why))
    return grafted
