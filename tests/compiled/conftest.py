"""These tests need torch, and each of them a Dynamo and a list of refusals that remember nothing of the others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphmend_hook.dynamo import refusals

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    refusals.seen.clear()
