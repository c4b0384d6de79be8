"""Trees of values: torch's own, which has no public name in every version that is supported."""

from __future__ import annotations

from torch.utils._pytree import keystr, tree_flatten_with_path, tree_map

__all__ = ["keystr", "tree_flatten_with_path", "tree_map"]
