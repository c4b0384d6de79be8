"""Delivers what was deferred: a bytecode hook on Dynamo's output, and the sink that makes the calls."""

from __future__ import annotations

from .install import connect

__all__ = ["connect"]
