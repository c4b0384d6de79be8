"""Imports case modules twice, as they are and mended, and records everything that a call lets one observe."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import logging
import re
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from graphmend_hook.hook.loader import Mender, MendingLoader
from graphmend_hook.product.report.ledger import Ledger
from graphmend_hook.settings.config import Settings

HERE = Path(__file__).parent


def import_file(path: Path, name: str, loader: Any = None) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def import_mended(path: Path, name: str) -> ModuleType:
    """The module in `path` through the rules, by the loader that the hook uses."""
    mender = Mender(Settings(modules=(name,), cache_dir=Path("/dev/null/no-cache")), Ledger())
    return import_file(path, name, MendingLoader(name, str(path), mender))


@functools.cache
def both(stem: str) -> tuple[ModuleType, ModuleType]:
    """A file of cases as it is, and mended: the same modules for all tests, since Dynamo finds them by their names."""
    path = HERE / f"{stem}.py"
    return import_file(path, f"{stem}_plain"), import_mended(path, f"{stem}_mended")


def begun(kind: type[torch.nn.Module], backend: Any) -> tuple[Any, Any]:
    """A module with the parameters of one seed, and what is called: it, or it compiled if there is a backend."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    module = kind()
    return module, module if backend is None else torch.compile(module, backend=backend)


def assert_alike(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """Are they the same, part by part: texts and types equal, numbers and tensors close?"""
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, (str, type)):
            assert one == other
        elif isinstance(other, list):
            assert isinstance(one, list)
            assert_alike(one, other)
        else:
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def assert_calls_alike(found: Iterable[list[Any]], expected: Iterable[list[Any]], **tolerance: float) -> None:
    """Are they the same, call by call and part by part: tensors within the tolerance, and all else equal?"""
    for one, other in zip(found, expected, strict=True):
        for part, wanted in zip(one, other, strict=True):
            if isinstance(wanted, torch.Tensor):
                torch.testing.assert_close(part, wanted, **tolerance)
            else:
                assert part == wanted


def assert_left(
    seen: Callable[..., Iterable[list[Any]]], modules: Sequence[ModuleType], name: str, **tolerance: float
) -> None:
    """Is the case as in eager, with no more graphs than without the hook?  modules: the cases plain, and mended."""
    countings = []
    for module in modules:
        countings.append(Counting("aot_eager"))
        expected = seen(modules[0], modules[0].LEFT[name], None)
        assert_calls_alike(seen(module, module.LEFT[name], countings[-1]), expected, **tolerance)
    plain, mended = countings
    assert mended.graphs <= plain.graphs and mended.runs <= plain.runs


@dataclass
class Observed:
    """What a call returned or raised, and every effect it had, in order."""

    value: Any = None
    error: tuple[type, str] | None = None
    effects: list[tuple[object, ...]] = field(default_factory=list)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Observed)
        same = torch.equal(self.value, other.value) if self.error is None and other.error is None else True
        return same and self.error == other.error and self.effects == other.effects


class Stream(io.TextIOBase):
    """A text stream that records what is written to it."""

    def __init__(self, name: str, effects: list[tuple[object, ...]]) -> None:
        self._name, self._effects = name, effects

    def write(self, text: str) -> int:
        self._effects.append((self._name, text))
        return len(text)


class _Handler(logging.Handler):
    def __init__(self, effects: list[tuple[object, ...]]) -> None:
        super().__init__()
        self._effects = effects

    def emit(self, record: logging.LogRecord) -> None:
        where = (record.pathname, record.lineno, record.funcName)
        self._effects.append((record.levelname, record.getMessage(), *where))


class Kept(logging.Handler):
    """The texts of records, as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


class PerThread(logging.Handler):
    """Messages by the thread that delivered them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[int, list[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.setdefault(record.thread or 0, []).append(record.getMessage())

    def take(self) -> list[str]:
        """Those of this thread, which are forgotten."""
        return self.seen.pop(threading.get_ident(), [])


@contextlib.contextmanager
def _torch_silent() -> Iterator[None]:
    """What torch logs is no effect of the program: since 2.15 its handlers write to the `sys.stderr` of the moment."""
    loggers = [logger for name, logger in logging.root.manager.loggerDict.items() if name.startswith("torch")]
    handlers = [handler for logger in loggers for handler in getattr(logger, "handlers", ())]
    handlers = [handler for handler in handlers if getattr(handler, "stream", None) is sys.stderr]
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


def _nothing(_record: logging.LogRecord) -> bool:
    return False


def observe(call: Callable[[], Any], logger_name: str) -> Observed:
    """Run `call` and record its prints (both streams), log records and warnings in one sequence, with their places."""
    seen = Observed()
    logger = logging.getLogger(logger_name)
    handler = _Handler(seen.effects)
    logger.addHandler(handler)
    if logger.level != logging.DEBUG:  # to set it makes every logger there is forget what it has asked
        logger.setLevel(logging.DEBUG)
    logger.propagate = False

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        if Path(filename).parent == HERE or "pytest" in filename:
            seen.effects.append((category.__name__, str(message), filename, lineno))

    streams = contextlib.ExitStack()
    streams.enter_context(contextlib.redirect_stdout(Stream("stdout", seen.effects)))
    streams.enter_context(contextlib.redirect_stderr(Stream("stderr", seen.effects)))
    with streams, _torch_silent(), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            seen.value = call()
        except Exception as error:
            seen.error = (type(error), str(error))
        finally:
            logger.removeHandler(handler)
    return seen


def on(names: Iterable[str], inductor: Collection[str] = ()) -> list[tuple[str, str]]:
    """Each of the cases with backends; with Inductor, which takes long, those of which it compiles what no other case has."""
    of_each = ("eager", "aot_eager")
    return [(name, backend) for name in names for backend in (*of_each, *["inductor"] * (name in inductor))]


class Counting:
    """A backend that counts the graphs it is handed, and how often any of them runs.

    has_unused: has one of them an operation of which nothing uses the result?  AOTAutograd drops it, and with it what it
    would have drawn or raised.
    """

    def __init__(self, name: str) -> None:
        self.graphs = 0
        self.runs = 0
        self.has_unused = False
        self._compile = torch._dynamo.lookup_backend(name)

    def __repr__(self) -> str:
        return "Counting"  # errors of a backend show it, and two runs are compared

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        self.has_unused |= _has_unused(graph.graph)
        compiled = self._compile(graph, inputs)

        def run(*args: Any) -> Any:
            self.runs += 1
            return compiled(*args)

        return run


def _has_unused(graph: torch.fx.Graph) -> bool:
    used: set[torch.fx.Node] = set()
    for node in reversed(graph.nodes):
        if node in used or node.op == "output":
            used.update(node.all_input_nodes)
    return any(node not in used and node.op.startswith("call") for node in graph.nodes)


def with_own_names(effect: tuple[Any, ...]) -> tuple[Any, ...]:
    """Without the names that Dynamo gives to what follows a graph break."""
    return tuple(
        re.sub(r"torch_dynamo_resume_in_(.*)_at_\d+", r"\1", part) if isinstance(part, str) else part for part in effect
    )
