"""These tests need torch, and each of them a Dynamo and a list of refusals that remember nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from graphmend_hook.runtime import refusals

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    refusals.seen.clear()


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
