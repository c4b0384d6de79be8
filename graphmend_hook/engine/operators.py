"""The operators of graphs that are ours: `torch.ops.graphmend_hook`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..source.library_functions import NAMESPACE

_libraries: list[torch.library.Library] = []


def define(
    name: str, schema: str, run: Callable[..., Any], run_fake: Callable[..., Any], *tags: torch.Tag
) -> torch.library.Library:
    """Define the operator, once in a process; gives its library, which it ends with.

    schema: its operands and results, as `torch.library` takes them; run, run_fake: what it does, autograd apart, and on
    fake tensors; tags: those beside the one that says that it does what the schema says.
    """
    library = torch.library.Library(NAMESPACE, "FRAGMENT")
    _libraries.append(library)
    library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag, *tags))
    library.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{NAMESPACE}::{name}", run_fake, lib=library)
    return library


def defined(name: str) -> Any:
    """The operator of that name."""
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def set_gradient(library: torch.library.Library, name: str, backward: Callable[..., Any], **how: Any) -> None:
    """Let it have that backward pass, see `torch.library.register_autograd`."""
    torch.library.register_autograd(f"{NAMESPACE}::{name}", backward, lib=library, **how)
