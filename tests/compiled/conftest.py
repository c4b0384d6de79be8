"""These tests need torch, and each of them a Dynamo and a list of refusals that remember nothing of the others."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from unittest import mock

import pytest

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    refusals.seen.clear()  # those of a test elsewhere
    refusals.decided.clear()
    yield
    # Up to torch 2.12 an export that fails leaves its hook on all modules, and Dynamo cannot trace that.
    torch.nn.modules.module._global_buffer_registration_hooks.clear()
    refusals.seen.clear()
    understood, queue.understood = queue.understood, True
    assert understood, "generated code was not understood (GM005), and so everything after it declined"


@pytest.fixture
def call_not_understood(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generated code looks as another torch would write it: the graph is called in a form that the edit does not know.

    That is how torch 2.15 looked to an edit that followed no jumps.
    """
    from graphmend_hook.engine.epilogue import graph_call

    monkeypatch.setattr(graph_call, "_calls_lowest", lambda instruction, depth: False)
    yield
    queue.understood = True


@pytest.fixture(autouse=True, scope="session")
def _proved() -> None:
    """What our mechanisms can do is found out once in a process: not while a test makes torch look like another one."""
    from graphmend_hook.engine.door import probes, trust

    assert trust.prover is probes.failures
    trust.prove()
    assert not trust.failed


# Pytest listens to each logger that does not propagate, and for a listener torch writes down all that it compiles.
logging.getLogger("torch.__trace").propagate = True


@pytest.fixture(autouse=True, scope="session")
def _no_log_of_frames() -> Iterator[None]:
    """For its log alone, Dynamo times the guards of each frame on flushed caches, and writes down all settings of torch."""
    settings = ("_get_dynamo_config", "_compiler_config", "_scrubbed_inductor_config", "_functorch_config")
    with contextlib.ExitStack() as patches:
        timed = mock.patch.object(torch._dynamo.guards, "profile_guard_manager", return_value=0.0, create=True)
        patches.enter_context(timed)
        for name in settings:
            written = mock.patch.object(torch._dynamo.utils, f"{name}_for_logging", return_value=None, create=True)
            patches.enter_context(written)
        yield
