"""Stands for a library that calls torch.compile on a model it is given, and knows nothing of graphmend_hook."""

from __future__ import annotations

from typing import Any

import torch


def accelerate(model: torch.nn.Module, backend: Any) -> Any:
    options = {"backend": backend, "dynamic": False}
    return torch.compile(model, **options)
