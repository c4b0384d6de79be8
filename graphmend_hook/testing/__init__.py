"""Assertions about compiled code: that it is one graph, and that it does what eager does."""

from __future__ import annotations

from .equality import assert_same_as_eager
from .graphs import assert_single_graph

__all__ = ["assert_same_as_eager", "assert_single_graph"]
