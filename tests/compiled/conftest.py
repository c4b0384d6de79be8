"""These tests need torch, and each of them a Dynamo and a list of refusals that remember nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from graphmend_hook.dynamo import queue, refusals

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    refusals.seen.clear()
    understood, queue.understood = queue.understood, True
    assert understood, "generated code was not understood (GM005), and so everything after it declined"


@pytest.fixture
def call_not_understood(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generated code looks as another torch would write it: the graph is called in a form that the edit does not know.

    That is how torch 2.15 looked to an edit that followed no jumps.
    """
    from graphmend_hook.dynamo import graph_call

    monkeypatch.setattr(graph_call, "_calls_lowest", lambda instruction, depth: False)
    yield
    queue.understood = True


@pytest.fixture(autouse=True, scope="session")
def _untimed_guards() -> Iterator[None]:
    """Dynamo times the guards of each frame on flushed caches, for its log: 20 ms of the 50 that a small frame takes."""
    with mock.patch.object(torch._dynamo.guards, "profile_guard_manager", return_value=0.0, create=True):
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the backends only eager is quick: Inductor waits for a C++ compiler."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec and callspec.params.get("backend") in ("aot_eager", "inductor"):
            item.add_marker("slow")
