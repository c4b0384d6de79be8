"""The assertion that a compiled callable does what it does in eager: results, state, effects and exceptions."""

from __future__ import annotations

import contextlib
import copy
import io
import logging
import os
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..product.explain.observe import name_of

# What the compiler itself says is no effect of the program.
_COMPILER = ("torch", "graphmend_hook")
Effect = tuple[object, ...]  # of a call, beside what it returns: a log record, a warning or a print


@dataclass
class Call:
    """What one call did.  inputs, state: what the arguments and the module's `state_dict` hold afterwards."""

    output: Any = None
    inputs: Any = None
    state: Any = None
    error: Exception | None = None
    effects: tuple[Effect, ...] = ()


def assert_same_as_eager(
    fn_or_module: Callable[..., Any],
    /,
    *args: Any,
    backend: Any = "eager",
    rtol: float | None = None,
    atol: float | None = None,
    calls: int = 1,
    **kwargs: Any,
) -> None:
    """Call copies of `fn_or_module` in eager and compiled, with copies of the arguments, and compare what they do.

    backend: the name of a `torch.compile` backend, or a callable of that kind.
    rtol, atol: tolerances for floating-point tensors as in `torch.testing.assert_close`; without either, every bit
    counts, the sign of zeros included, but not the payload of a NaN.
    calls: how often each arm calls its copy, so that what the first call leaves behind is met by the next.

    Compared are results, arguments and `state_dict` after the call, log records, warnings, prints, and the types and
    arguments of exceptions; gradients are not.  Both arms start from the same random state, which is restored.
    Raises AssertionError with all that differs.
    """
    __tracebackhide__ = True
    import torch

    tolerance = None if rtol is None and atol is None else (rtol or 0.0, atol or 0.0)
    expected = calls_of(fn_or_module, args, kwargs, calls)
    torch.compiler.reset()
    try:
        got = calls_of(fn_or_module, args, kwargs, calls, lambda function: torch.compile(function, backend=backend))
    finally:
        torch.compiler.reset()
    found = [
        f"  call {number}: {difference}"
        for number, pair in enumerate(zip(got, expected, strict=True), 1)
        for difference in differences(*pair, tolerance)
    ]
    if found:
        cause = next((call.error for call in (*got, *expected) if call.error is not None), None)
        raise AssertionError("\n".join(["compiled and eager differ", *found])) from cause


def calls_of(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] = {},
    calls: int = 1,
    compiled: Callable[[Any], Any] = lambda function: function,
) -> list[Call]:
    """What calls of a copy of `function` do, one after the other, each with copies of the arguments.

    compiled: what is called instead of that copy, made of it.
    """
    import torch

    own = copy.deepcopy(function)
    called = compiled(own)
    seen = []
    python_state = random.getstate()
    try:
        with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
            for _ in range(calls):
                call, given = Call(), copy.deepcopy((args, kwargs))
                with recorded() as effects:
                    try:
                        call.output = called(*given[0], **given[1])
                    except Exception as error:
                        call.error = error
                call.effects = tuple(effects)
                # Copies, because the next call may write to what this one gave.
                call.output, call.inputs = _detached(call.output), _detached(given)
                call.state = _detached(own.state_dict()) if isinstance(own, torch.nn.Module) else None
                seen.append(call)
    finally:
        random.setstate(python_state)
    return seen


def _detached(value: Any) -> Any:
    import torch

    from ..engine.door.trees import tree_map

    return tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf, value)


def differences(got: Call, expected: Call, tolerance: tuple[float, float] | None = None) -> Iterator[str]:
    """What two calls did differently, in words.  tolerance: relative and absolute; None where every bit counts."""
    if got.effects != expected.effects:
        yield _different("effects", _lines(got.effects), _lines(expected.effects))
    if got.error is not None or expected.error is not None:
        # What eager would not have reached may have been done: only the exception itself counts.
        if type(got.error) is not type(expected.error):
            yield _different("exception", repr(got.error), repr(expected.error))
        elif got.error is not None and expected.error is not None:
            yield from compare("exception args", got.error.args, expected.error.args, tolerance)
        return
    for name in ("output", "inputs", "state"):
        yield from compare(name, getattr(got, name), getattr(expected, name), tolerance)


def compare(
    where: str, got: Any, expected: Any, tolerance: tuple[float, float] | None, inside: tuple[int, ...] = ()
) -> Iterator[str]:
    """What differs between two trees of values, in words, each with its place in the tree.

    inside: the `id`s of the objects whose attributes are being compared, which may lead back to themselves.
    """
    import torch

    from ..engine.door.trees import keystr, tree_flatten_with_path

    (got_leaves, got_form), (leaves, form) = tree_flatten_with_path(got), tree_flatten_with_path(expected)
    if got_form != form:
        yield _different(f"{where} structure", str(got_form), str(form))
        return
    for (path, got_leaf), (_, leaf) in zip(got_leaves, leaves, strict=True):
        place = f"{where}{keystr(path)}"
        if type(got_leaf) is not type(leaf):
            yield _different(f"{place} type", type(got_leaf).__name__, type(leaf).__name__)
        elif isinstance(leaf, torch.Tensor) or hasattr(leaf, "__array__"):
            yield from _compare_arrays(place, torch.as_tensor(got_leaf), torch.as_tensor(leaf), tolerance)
        elif type(leaf).__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
            if hasattr(leaf, "__dict__") and not callable(leaf) and id(leaf) not in inside:
                yield from compare(place, vars(got_leaf), vars(leaf), tolerance, (*inside, id(leaf)))
        elif got_leaf != leaf and (got_leaf == got_leaf or leaf == leaf):  # noqa: PLR0124  a NaN equals nothing
            yield _different(place, repr(got_leaf), repr(leaf))


def _compare_arrays(where: str, got: Any, expected: Any, tolerance: tuple[float, float] | None) -> Iterator[str]:
    import torch

    rtol, atol = tolerance or (0.0, 0.0)
    try:
        torch.testing.assert_close(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        yield f"{where}: {error}".replace("\n", "\n    ")
        return
    if tolerance is None and expected.is_floating_point():
        zeros = expected == 0
        if not torch.equal(torch.signbit(got[zeros]), torch.signbit(expected[zeros])):
            yield f"{where}: zeros differ in sign"


def _lines(effects: tuple[Effect, ...]) -> str:
    return "".join("\n      " + " ".join(map(str, effect)) for effect in effects) or " none"


def _different(what: str, got: str, expected: str) -> str:
    gap = "" if got.startswith(("\n", " ")) else " "
    return f"{what}:\n    compiled:{gap}{got}\n    eager:{gap}{expected}"


@contextlib.contextmanager
def recorded() -> Iterator[list[Effect]]:
    """Collects the effects of the block, of every logger that is enabled; handlers see the records as well.

    Records of "once" methods (`logging.Logger.warning_once` of transformers) are recorded again in each block.
    """
    import torch

    effects: list[Effect] = []
    make_record = logging.getLogRecordFactory()
    compilers = tuple(os.path.join(os.path.dirname(path), "") for path in (torch.__file__, os.path.dirname(__file__)))

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make_record(*args, **kwargs)
        if made.name.partition(".")[0] not in _COMPILER:
            place = f"{made.pathname}:{made.lineno} in {name_of(made.funcName or '?')}"
            effects.append(("log", made.levelname, made.getMessage(), place))
        return made

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        if not filename.startswith(compilers):
            effects.append(("warning", category.__name__, str(message), f"{filename}:{lineno}"))

    for method in vars(logging.Logger).values():
        if hasattr(method, "cache_clear"):
            method.cache_clear()
    logging.setLogRecordFactory(torch.compiler.disable(record))
    try:
        with contextlib.redirect_stdout(_Stream(effects)), warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = torch.compiler.disable(show)
            yield effects
    finally:
        logging.setLogRecordFactory(make_record)


class _Stream(io.TextIOBase):
    def __init__(self, effects: list[Effect]) -> None:
        self._effects = effects

    def write(self, text: str) -> int:
        self._effects.append(("print", text))
        return len(text)
