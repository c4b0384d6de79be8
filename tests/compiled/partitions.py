"""Which parts of a graph Inductor would record as CUDA graphs, without a device: what it schedules is looked at instead of
being compiled, and what it asks of the device it is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from waits import on_device

_PROPERTIES = {
    **dict.fromkeys(("multi_processor_count", "warp_size"), 32),
    **dict.fromkeys(("max_threads_per_multi_processor", "max_threads_per_block"), 1024),
    **dict.fromkeys(("regs_per_multiprocessor", "total_memory", "L2_cache_size"), 2**20),
    **{"major": 9, "minor": 0, "name": "", "gcnArchName": "", "shared_memory_per_block_optin": 2**17},
}


class _ScheduledError(BaseException):
    """What is to be compiled has been seen."""


def partitions(function: Callable[..., Any], *inputs: Any) -> list[tuple[int, bool, bool]]:
    """Of each part, in order: how many kernels it has, whether it is recorded, and whether data decides a size of it."""
    from torch._inductor.scheduler import Scheduler

    found: list[tuple[int, bool, bool]] = []

    def look(scheduler: Any) -> None:
        for part, signature in zip(*scheduler.graph_partition(), strict=True):
            symbols = any(str(symbol).startswith("u") for symbol in signature.symbol_inputs)
            found.append((len(part), not signature.skip_cudagraph, symbols))
        raise _ScheduledError

    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(function, mode="reduce-overhead")
    with torch.no_grad(), _a_device(), mock.patch.object(Scheduler, "codegen", look):
        try:
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                compiled(*(on_device(given, mode) for given in inputs))
        except _ScheduledError:
            pass
    broken = dict(torch._dynamo.utils.counters["graph_break"])
    assert not broken, broken
    return found


@contextlib.contextmanager
def _a_device() -> Iterator[None]:
    """Answers to what Inductor asks of a device; it makes no constant there."""
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor import config, scheduler
    from torch._inductor.runtime.hints import DeviceProperties

    properties = SimpleNamespace(**_PROPERTIES)
    with contextlib.ExitStack() as patches:
        patches.enter_context(config.patch(joint_graph_constant_folding=False, force_disable_caches=True))
        patches.enter_context(mock.patch.object(scheduler, "has_triton", return_value=True))
        patches.enter_context(mock.patch.object(torch.cuda, "get_device_properties", return_value=properties))
        patches.enter_context(mock.patch.object(torch.cuda, "get_device_capability", return_value=(9, 0)))
        patches.enter_context(mock.patch.object(torch.cuda, "current_device", return_value=0))
        for answer in ("get_device_properties", "get_compute_capability"):
            patches.enter_context(
                mock.patch.object(CudaInterface, answer, return_value=getattr(properties, answer, properties))
            )
        DeviceProperties.create.cache_clear()
        yield
        DeviceProperties.create.cache_clear()
