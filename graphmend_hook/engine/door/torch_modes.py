"""The modes of torch, as they were before something that may have left them otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from . import frame_guards
from .question import question
from .tracer import Trace

# A graph that switches one of them has a node with such a name.
SWITCHING = frozenset(
    {
        *("_enter_autocast", "_enter_inference_mode", "_set_grad_enabled", "_set_fwd_grad_enabled"),
        *("_saved_tensors_hooks_disable", "set_default_dtype", "_set_default_dtype"),
        *("_set_deterministic_algorithms", "set_float32_matmul_precision", "_set_float32_matmul_precision"),
    }
)


@question(otherwise=False)
def has_no_default_device(trace: Trace) -> bool:
    """Has nobody set a default device?"""
    return is_device_plain(trace)


def is_device_plain(trace: Trace) -> bool:
    """The same, asked by the engine.  Dynamo guards the modes, and the device, of every frame."""
    stack = trace.translator.symbolic_torch_function_state.mode_stack
    return not stack and torch.utils._device.CURRENT_DEVICE is None and frame_guards.may_be_relied_on()


class Modes:
    """Those of this thread, and of the process, as they are when this is made; equal where they are the same."""

    def __init__(self) -> None:
        devices = {"cpu", *filter(None, [torch._C._get_accelerator().type])}
        nesting = torch.autocast_increment_nesting() - 1  # there is no other way to ask
        torch.autocast_decrement_nesting()
        self.inference = torch.is_inference_mode_enabled()
        self._grad = torch.is_grad_enabled()
        self._forward_grad = torch._C._is_fwd_grad_enabled()
        self._autocast = {
            device: (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in sorted(devices)
        }
        self._autocast_cache, self._nesting = torch.is_autocast_cache_enabled(), nesting
        self._hooks = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()
        self._dtype, self._precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
        self._deterministic = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Modes) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Those of gradients, inference and autocast, for as long as the context lasts."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self._grad))
            for device, (enabled, dtype) in self._autocast.items():
                autocast = torch.autocast(device, dtype=dtype, enabled=enabled, cache_enabled=self._autocast_cache)
                stack.enter_context(autocast)
            yield

    def restore(self) -> None:
        """Put all of them back but inference mode, which ends with the object that switched it on."""
        if Modes() == self:
            return
        torch._C._set_grad_enabled(self._grad)
        torch._C._set_fwd_grad_enabled(self._forward_grad)
        for device, (enabled, dtype) in self._autocast.items():
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(self._autocast_cache)
        while torch.autocast_increment_nesting() - 1 > self._nesting:
            torch.autocast_decrement_nesting()
            if torch.autocast_decrement_nesting() == 0:
                torch.clear_autocast_cache()
        torch.autocast_decrement_nesting()
        if self._hooks is None:
            torch._C._autograd._saved_tensors_hooks_enable()
        else:
            torch._C._autograd._saved_tensors_hooks_disable(self._hooks)
        torch.set_default_dtype(self._dtype)
        torch.set_float32_matmul_precision(self._precision)
        torch.use_deterministic_algorithms(self._deterministic[0], warn_only=self._deterministic[1])
