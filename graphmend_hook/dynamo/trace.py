"""The place that Dynamo has come to: what a question may ask about it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch._guards import TracingContext

from . import refusals
from .compilation import Compilation, compilation_of
from .own import OWN_FILES, is_own

log = logging.getLogger("graphmend_hook.trace")
SourceLine = tuple[str, int]  # a file and a line of the program


class Trace:
    """One attempt of Dynamo to trace a frame, at the instruction that it has come to."""

    def __init__(self, translator: Any) -> None:
        self.translator = translator  # of the innermost frame
        self.output = translator.output
        self.compilation: Compilation = compilation_of(self.output)

    @property
    def graph(self) -> torch.fx.Graph:
        """The graph that operations are added to: the body of a higher-order operator inside of one."""
        graph: torch.fx.Graph = self.output.current_tracer.graph
        return graph

    @property
    def is_in_a_body(self) -> bool:
        """Is the body of a higher-order operator being traced?"""
        return self.output.current_tracer.parent is not None

    def frames(self) -> Iterator[Any]:
        """Dynamo's translators of the traced frames, the innermost first."""
        frame = self.translator
        while frame is not None:
            yield frame
            frame = frame.parent

    def frames_outside(self) -> Iterator[Any]:
        """Those of them that trace code of the program, and not of this package."""
        return (frame for frame in self.frames() if not is_own(frame.f_code))

    @cached_property
    def line(self) -> SourceLine | None:
        """Where the program is; None where a function of ours is compiled by itself, after a break."""
        frame = next(self.frames_outside(), None)
        return None if frame is None else (frame.f_code.co_filename, frame.lineno)


def record(code: str) -> None:
    """Remember that the statement that is being traced stays as it was written."""
    frames = [frame for frame in TracingContext.extract_stack() if frame.filename not in OWN_FILES]
    frame = frames[-1] if frames else None
    place = (frame.filename, frame.lineno or 0, frame.name) if frame else ("?", 0, "?")
    if refusals.add(code, place):
        log.debug("%s: left in place at %s:%s in %s: %s", code, *place, refusals.sentences.get(code, ""))
