"""Dynamo never compiles a function of this package as a frame of its own: it inlines them, or does not see them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended
from torch._dynamo import convert_frame

from graphmend_hook.dynamo.own import OWN_FILES

PATH = HERE / "own_frames_cases.py"
plain = import_file(PATH, "own_frames_cases_plain")
MENDED = import_mended(PATH, "own_frames_cases_mended")
ONE_GRAPH = ["SelectsByAMaskAndAPlace", "WritesByAMaskAndAPlace", "SelectsByAPlace"]


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of the frames that Dynamo tries to compile."""
    found: list[str] = []
    original = convert_frame.trace_frame

    def trace_frame(code: Any, *arguments: Any, **options: Any) -> Any:
        found.append(code.co_filename)
        return original(code, *arguments, **options)

    monkeypatch.setattr(convert_frame, "trace_frame", trace_frame)
    return found


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", [*ONE_GRAPH, "gives_tuples_of_other_lengths", "is_given_up"])
def test_no_frame_is_ours(name: str, backend: str, frames: list[str]) -> None:
    def called(module: Any) -> Any:
        found = getattr(module, name)
        return found() if isinstance(found, type) else found

    counting = Counting(backend)
    compiled = torch.compile(called(MENDED), backend=counting)
    for call in range(3):
        x = torch.arange(9.0).reshape(3, 3) * (1 - call)
        torch.testing.assert_close(compiled(x.clone()), called(plain)(x.clone()), rtol=0, atol=0)
    assert frames
    assert OWN_FILES.isdisjoint(frames)
    if name in ONE_GRAPH:
        assert counting.graphs == 1
