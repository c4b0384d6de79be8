"""On which device the programs run, and which of them may: a kernel that fails ends the process's use of a device."""

from __future__ import annotations

import zlib
from typing import Any

import torch

CPU = torch.device("cpu")
where = CPU


def use(name: str) -> None:
    """Let the inputs of programs be made on the device from now on; raises ValueError if it is not at hand."""
    global where
    device = torch.device(name)
    try:
        torch.ones(1, device=device).item()
    except Exception as error:
        raise ValueError(f"{name} is not at hand: {str(error).splitlines()[0]}") from error
    where = device


def state_of_generators() -> tuple[int, ...]:
    """A digest of what each of torch's generators would draw next."""
    states = [torch.get_rng_state()]
    if where.type != "cpu":
        states.append(torch.get_device_module(where).get_rng_state(where))
    return tuple(zlib.crc32(state.cpu().numpy()) for state in states)


def may_end_a_device(on_cpu: list[dict[str, Any]]) -> bool:
    """Did an operation fail in a call on the CPU, and not the program raise?  On a device a kernel would stop there.

    Such are an index out of bounds, a distribution that is none, an assertion on data.
    """
    return any(outcome["error"] and not outcome["raised"] for outcome in on_cpu)
