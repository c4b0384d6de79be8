"""Loggers that are off: no delivery in the compiled code, and every record that eager would have had."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from observing import Counting, Kept, import_mended

from graphmend_hook.engine.door import trust
from graphmend_hook.engine.epilogue import delivery

SOURCE = """
import logging
import torch
log = logging.getLogger("off_cases")
quiet = log

def steps(x):
    log.debug("before %s", x.shape[0])
    y = x * 2
    quiet.info("mean %s", y.mean())
    return y + 1

def switched(x):
    log.disabled = False
    y = x * 2
    log.warning("on again")
    return y + 1
"""
X = torch.ones(4)


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "off_cases.py"
    path.write_text(SOURCE, encoding="utf-8")
    return import_mended(path, "off_cases")


@pytest.fixture
def kept() -> Iterator[Kept]:
    logger, handler = logging.getLogger("off_cases"), Kept()
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)
    logging.disable(logging.NOTSET)


@pytest.fixture
def deliveries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each delivery had."""
    found: list[int] = []
    stock: Callable[..., None] = delivery.deliver

    def counted(items: Any) -> None:
        found.append(len(items))
        stock(items)

    trust.prove()  # whose programs have deliveries of their own
    monkeypatch.setattr("graphmend_hook.engine.epilogue.delivery.deliver", counted)
    delivery.connect.cache_clear()
    torch._dynamo.reset()
    return found


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_logger_that_is_off_costs_no_delivery(
    module: ModuleType, kept: Kept, deliveries: list[int], backend: str
) -> None:
    counting = Counting(backend)
    compiled = torch.compile(module.steps, backend=counting, fullgraph=True)
    for _ in range(2):
        assert torch.equal(compiled(X), X * 2 + 1)
    assert (kept.texts, deliveries, counting.graphs) == ([], [], 1)


def test_it_is_looked_at_before_each_call(module: ModuleType, kept: Kept) -> None:
    """H: a level, a logger or everything that is switched on and off later."""
    counting = Counting("eager")
    compiled = torch.compile(module.steps, backend=counting, fullgraph=True)
    logger = logging.getLogger("off_cases")
    for level, expected in (
        (logging.WARNING, []),
        (logging.INFO, ["mean tensor(2.)"]),
        (logging.DEBUG, ["before 4", "mean tensor(2.)"]),
        (logging.WARNING, []),
        (logging.DEBUG, ["before 4", "mean tensor(2.)"]),
    ):
        logger.setLevel(level)
        compiled(X)
        assert kept.texts == expected
        kept.texts.clear()
    assert counting.graphs == 3
    logging.disable(logging.INFO)
    compiled(X)
    assert (kept.texts, counting.graphs) == ([], 3)
    logging.disable(logging.NOTSET)
    logger.disabled = True
    compiled(X)
    logger.disabled = False
    assert kept.texts == []
    compiled(X)
    assert kept.texts == ["before 4", "mean tensor(2.)"]


def test_methods_of_ones_own(module: ModuleType, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """H: what is called in the place of a method may do more, whatever the level."""
    logger = logging.getLogger("off_cases")
    seen: list[str] = []
    compiled = torch.compile(module.steps, backend="eager")
    compiled(X)
    with monkeypatch.context() as patch:
        patch.setattr(logger, "info", lambda text, *args: seen.append(text % args))
        compiled(X)
    assert seen == ["mean tensor(2.)"]
    compiled(X)

    def debug(self: logging.Logger, text: str, *args: Any, **options: Any) -> None:
        if self is logger:
            seen.append(text % args)

    with monkeypatch.context() as patch:
        patch.setattr(logging.Logger, "debug", debug)
        compiled(X)
    assert seen == ["mean tensor(2.)", "before 4"]
    with monkeypatch.context() as patch:
        patch.setattr(logging.Logger, "isEnabledFor", lambda self, level: self is logger)
        compiled(X)
    assert kept.texts == ["before 4", "mean tensor(2.)"]


def test_a_logger_that_is_switched_on_in_the_region(module: ModuleType, kept: Kept) -> None:
    """H: while tracing, the logger itself is still off."""
    logger = logging.getLogger("off_cases")
    compiled = torch.compile(module.switched, backend="eager")
    for _ in range(2):
        logger.disabled = True
        compiled(X)
    logger.disabled = False
    assert kept.texts == ["on again"] * 2


def test_another_logger_in_its_place(module: ModuleType, kept: Kept) -> None:
    compiled = torch.compile(module.steps, backend="eager")
    compiled(X)
    other = logging.Logger("another", logging.DEBUG)
    other.addHandler(kept)
    module.quiet = other
    compiled(X)
    assert kept.texts == ["mean tensor(2.)"]


@pytest.mark.slow
def test_a_method_that_was_replaced_before_the_runtime_is_imported() -> None:
    """H: something without code, such as a mock; the hook goes without the guard, and works."""
    program = (
        "import logging; from unittest import mock; logging.Logger.debug = mock.Mock()\n"
        "import torch, graphmend_hook.runtime as runtime; runtime.connect(); assert runtime.connected"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_the_program_reads_of_torch_is_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo gives torch the name under which it met it first: an attribute of a module of ours."""
    path = tmp_path / "flag_cases.py"
    path.write_text(
        "import torch\ndef flagged(x):\n    if x.sum() > 0:\n        y = x * 2\n    else:\n        y = x * 3\n"
        "    if torch.backends.graphmend_flag:\n        y = y + 1\n    return y\n",
        encoding="utf-8",
    )
    compiled = torch.compile(import_mended(path, "flag_cases").flagged, backend="eager")
    for flag in (True, False, True):
        monkeypatch.setattr(torch.backends, "graphmend_flag", flag, raising=False)
        assert torch.equal(compiled(X), X * 2 + flag)


def test_no_guard_is_on_the_package_itself(module: ModuleType) -> None:
    """Its functions stay what they are; what settings say is guarded."""
    torch.compile(module.steps, backend="eager")(X)
    (entry,) = torch._dynamo.eval_frame._debug_get_cache_entry_list(module.steps.__code__)
    guards = str(entry.guard_manager)
    assert "_@graphmend" not in guards
    assert "queue.understood" in guards
