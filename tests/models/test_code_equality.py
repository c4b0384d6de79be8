"""Over all of transformers.models: what is not mended compiles to the code that Python always made of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.source.templates import DELIVERY_ARGUMENTS, OWN

spec = importlib.util.find_spec("transformers")
if spec is None or spec.origin is None:
    pytest.skip("transformers is not installed", allow_module_level=True)
MODELS = Path(spec.origin).parent / "models"
RULES = active_rules(("defer",))


def functions(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Every code object below `code` by its path of names and first lines, without those that a deferred call adds."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and not is_of_a_deferred_call(constant):
            name = f"{constant.co_name}:{constant.co_firstlineno}"
            yield name, constant
            yield from ((f"{name}.{inner}", found) for inner, found in functions(constant))


def is_of_a_deferred_call(code: CodeType) -> bool:
    """Is it the delivery, or a value that is computed at the delivery?"""
    arguments = code.co_varnames[: code.co_argcount]
    return arguments == DELIVERY_ARGUMENTS or any(name.startswith(OWN) for name in arguments)


def deliveries(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from deliveries(constant)
            if constant.co_argcount == 2 and constant.co_varnames[:2] == DELIVERY_ARGUMENTS:
                yield constant


PARTS = [
    *("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_flags", "co_stacksize", "co_qualname"),
    *("co_firstlineno", "co_linetable", "co_exceptiontable", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount"),
]


def same(left: CodeType, right: CodeType) -> bool:
    """Equal instructions, constants, positions and exception handling, apart from the code objects inside."""
    equal = all(getattr(left, part) == getattr(right, part) for part in PARTS)
    return equal and repr(list(map(_flat, left.co_consts))) == repr(list(map(_flat, right.co_consts)))


def _flat(constant: object) -> object:
    if isinstance(constant, frozenset):
        return sorted(constant, key=repr)
    return "code" if isinstance(constant, CodeType) else constant


@pytest.mark.slow
def test_functions_without_a_mended_site_equal_the_stock_compile() -> None:
    modules = checked = 0
    for file in sorted(MODELS.glob("**/*.py")):
        source = file.read_bytes()
        result = rewrite(source, str(file), RULES)
        if result.code is None:
            continue
        modules += 1
        mended_lines = {site.line for site in result.sites if site.outcome is Outcome.MENDED}
        stock = dict(functions(compile(source, str(file), "exec", dont_inherit=True)))
        mended = dict(functions(result.code))
        assert stock.keys() == mended.keys(), file
        assert all(delivery.co_freevars == () for delivery in deliveries(result.code)), file
        for name, code in stock.items():
            lines = {line for _, _, line in code.co_lines() if line is not None}
            if lines.isdisjoint(mended_lines):
                checked += 1
                assert same(code, mended[name]), (file, name)
            assert code.co_varnames[: code.co_argcount] == mended[name].co_varnames[: code.co_argcount]
            assert (code.co_filename, code.co_name) == (mended[name].co_filename, mended[name].co_name)
    assert modules > 300
    assert checked > 10_000
