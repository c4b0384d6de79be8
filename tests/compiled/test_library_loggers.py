"""[Defer] on adapters and on loggers of libraries, against eager: the same records, from the same places."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import library_logger_cases as NAMES
import pytest
import torch
from observing import Counting, both, observe, with_own_names

from graphmend_hook.engine.attempt import refusals

PLAIN, MENDED = both("library_logger_cases")


class Records(logging.Handler):
    """What records say, where they come from, and what adapters add to them."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__(1)
        self.seen = seen

    def emit(self, record: logging.LogRecord) -> None:
        own = {key: str(value) for key, value in vars(record).items() if key in ("who", "layer", "shown")}
        self.seen.append((record.getMessage(), record.lineno, record.funcName, record.pathname, own))


@contextlib.contextmanager
def _loguru(seen: list[Any]) -> Iterator[None]:
    from loguru import logger

    logger.remove()

    def sink(message: Any) -> None:
        of = message.record
        seen.append((str(message), of["line"], of["function"], of["file"].path, of["level"].name, str(of["extra"])))

    sink_id = logger.add(sink, format="{message} {extra}")
    yield
    logger.remove(sink_id)


@contextlib.contextmanager
def _absl(seen: list[Any]) -> Iterator[None]:
    from absl import logging as of_absl

    of_absl._log_counter_per_token.clear()
    of_absl.set_verbosity(of_absl.DEBUG)
    handler, logger = Records(seen), of_absl.get_absl_logger()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)


@contextlib.contextmanager
def _structlog(seen: list[Any]) -> Iterator[None]:
    import structlog

    def keep(_logger: Any, method: str, event: Any) -> str:
        seen.append((method, str({key: value for key, value in event.items() if "module" not in key})))
        return str(event["event"])

    for module in (PLAIN, MENDED):
        module.bound_by_structlog._processors = [structlog.processors.CallsiteParameterAdder(), keep]
    structlog.configure(processors=[structlog.processors.CallsiteParameterAdder(), keep])
    yield
    structlog.reset_defaults()


WATCHING = {"loguru": _loguru, "absl": _absl, "structlog": _structlog}


def records(function: Callable[..., Any], library: str = "logging") -> list[Any]:
    """What three calls say."""
    seen: list[Any] = []
    handler = Records(seen)
    PLAIN.logger.addHandler(handler)
    watching = WATCHING.get(library, lambda _seen: contextlib.nullcontext())
    with watching(seen):
        for _ in range(3):
            observed = observe(lambda: function(torch.arange(3.0)), "library_logger_cases")
            assert observed.error is None
            seen += observed.effects
    PLAIN.logger.removeHandler(handler)
    return seen


@pytest.mark.parametrize("name", NAMES.LIBRARY)
def test_equal_to_eager(name: str) -> None:
    library = NAMES.LIBRARY[name]
    expected = records(getattr(PLAIN, name), library)
    assert expected
    counting = Counting("aot_eager")
    compiled = torch.compile(getattr(MENDED, name), backend=counting, fullgraph=True)
    assert records(compiled, library) == expected
    assert counting.graphs == 1
    assert records(getattr(MENDED, name), library) == expected


@pytest.mark.parametrize("name", NAMES.DECLINED)
def test_declined(name: str) -> None:
    expected = records(getattr(PLAIN, name))
    refusals.seen.clear()
    counting = Counting("eager")
    compiled = torch.compile(getattr(MENDED, name), backend=counting)
    for module in (PLAIN, MENDED):
        module.changing.extra = {"layer": 0}
    assert [with_own_names(record) for record in records(compiled)] == expected
    assert NAMES.DECLINED[name] <= {code for code, *_ in refusals.seen}


def test_what_an_adapter_shows_is_guarded() -> None:
    """A value that is not plain, after the function was compiled, has the function compiled anew, with its break."""
    MENDED.changing.extra = {"layer": 0}
    compiled = torch.compile(MENDED.with_a_changing_adapter, backend=(counting := Counting("eager")))
    seen: list[Any] = []
    handler = Records(seen)
    MENDED.logger.addHandler(handler)
    MENDED.logger.setLevel(1)
    shown: list[Any] = [1, 2]
    for layer in (0, "one", shown):
        MENDED.changing.extra = {"layer": layer}
        compiled(torch.ones(2))
        shown.append(3)
    MENDED.logger.removeHandler(handler)
    assert [own["layer"] for *_, own in seen] == ["0", "one", "[1, 2, 3, 3]"]
    assert counting.graphs == 2
