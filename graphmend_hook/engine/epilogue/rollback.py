"""The state before a graph, to which its frame goes back before it is run again: modes, random numbers, written inputs.

What a graph writes to its inputs is undone by copies, which are made where a guard may fail behind the writes, or what
was taken for granted of a captured number: only of little memory, since every call makes them.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Sequence
from types import CodeType
from typing import Any

import torch

from ..attempt.compilation import Compilation
from ..door import frame_guards
from ..door.torch_modes import Modes
from ..door.variables import most_copied
from ..facts.writes import example_of, has_plain_memory


def reader_of(inputs: Sequence[torch.fx.Node], compilation: Compilation) -> CodeType | None:
    """Code that gives the inputs of a graph, of the frame's locals ``L`` and globals ``G``; None if that is not known.

    So too where they are large, or where more than their contents may come to be another.
    """
    arguments, fakes = [node.meta.get("grapharg") for node in inputs], [node.meta["example_value"] for node in inputs]
    if None in arguments or not all(map(has_plain_memory, fakes)):
        return None
    if any(fake.requires_grad and not fake.is_leaf for fake in fakes):
        return None  # it is part of an autograd graph from then on
    sources = [argument.source for argument in arguments]
    found = frame_guards.inputs_at(sources, compilation)
    if found is None or not all(one is example_of(node) for one, node in zip(found, inputs, strict=True)):
        return None
    if sum(one.numel() * one.element_size() for one in found) > min(most_copied(one.device) for one in found):
        return None
    return compile(f"[{', '.join(map(frame_guards.name_of, sources))}]", "<inputs>", "eval")


class Before:
    """The state of all that a graph changes by itself, as it is when this is made.

    devices: those whose generators are drawn from.
    draws_in_python: are numbers drawn from Python's `random`, or numpy's generator?
    """

    def __init__(
        self,
        devices: frozenset[torch.device] = frozenset(),
        draws_in_python: bool = False,
        written: Sequence[torch.Tensor] = (),
    ) -> None:
        self._modes = Modes()
        self._generators = {device: _generators(device).get_rng_state(*_index(device)) for device in devices}
        self._python = random.getstate() if draws_in_python else None
        numpy = sys.modules.get("numpy") if draws_in_python else None
        self._numpy = None if numpy is None else (numpy.random.mtrand._rand, numpy.random.mtrand._rand.get_state())
        self._written = _Copies(written)

    def restore_modes(self, failed: BaseException | None) -> None:
        """Put the modes back that a graph which failed may have switched."""
        if failed is not None and torch.is_inference_mode_enabled() != self._modes.inference:
            traceback.clear_frames(failed.__traceback__)  # one of them has the object with which inference mode ends
        self._modes.restore()

    def restore(self, failed: BaseException | None) -> None:
        """Put all of it back."""
        self.restore_modes(failed)
        for device, state in self._generators.items():
            _generators(device).set_rng_state(state, *_index(device))
        if self._python is not None:
            random.setstate(self._python)
        if self._numpy is not None:
            generator, state = self._numpy
            generator.set_state(state)
        self._written.restore()


class _Copies:
    """What tensors hold that are written to, or that are given other memory."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        # With the count of writes, by which autograd tells what was saved from what it has become.
        self._versions = [(each, None if each.is_inference() else each._version) for each in tensors]
        with torch._C.DisableTorchFunction(), torch.no_grad():
            self._contents = torch._foreach_clone(list(tensors)) if tensors else []
            self._memory = [each.detach() for each in tensors]

    def restore(self) -> None:
        """Put it back; what is as it was is not written to: it may be memory that nobody may write to."""
        for (tensor, version), contents, memory in zip(self._versions, self._contents, self._memory, strict=True):
            mode = torch.inference_mode() if version is None else torch.no_grad()
            with torch._C.DisableTorchFunction(), mode:
                if not tensor.is_set_to(memory):
                    tensor.data = memory
                if not torch.equal(_bits(tensor), _bits(contents)):
                    tensor.copy_(contents)
            if version is not None:
                torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Its bytes: NaN is as it was, and a zero with another sign is not."""
    return tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _generators(device: torch.device) -> Any:
    """The module of torch that has the generators of such devices."""
    return torch if device.type == "cpu" else torch.get_device_module(device)


def _index(device: torch.device) -> tuple[torch.device, ...]:
    return () if device.type == "cpu" else (device,)
