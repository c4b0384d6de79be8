"""Runs a case and keeps all that its caller could see of it, bit by bit, to be compared with the original in eager."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from observing import observe, with_own_names
from torch.utils._pytree import tree_flatten

Inputs = tuple[Any, ...]


@dataclass
class Outcome:
    """What one call did.

    state: the plain attributes and buffers of a module; gradients: of the inputs, then of its parameters.
    places: the line and the function of each frame of the traceback that is in a file of cases; notes: of the exception.
    """

    value: Any = None
    error: tuple[Any, ...] | None = None
    inputs: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    gradients: list[Any] = field(default_factory=list)
    random: torch.Tensor | None = None
    random_of_python: Any = None
    effects: list[Any] = field(default_factory=list)
    places: list[tuple[int | None, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def fresh(case: Any) -> Any:
    """What is to be called: a function as it is, of a module class an instance that is always the same."""
    if isinstance(case, type):
        torch.manual_seed(0)
        return case()
    return case


def run(call: Callable[..., Any], inputs: Inputs, train: bool, logger: str, owner: Any = None) -> Outcome:
    """Call it on copies of `inputs`; owner: the module that it is made of."""
    torch.manual_seed(1)
    random.seed(1)
    leaves = [_copy(value, train) for value in inputs]
    # What can be written in place must not be a leaf of autograd.
    given = [leaf * 1 if isinstance(leaf, torch.Tensor) and leaf.requires_grad else leaf for leaf in leaves]
    parameters = list(owner.parameters()) if isinstance(owner, torch.nn.Module) else []
    for parameter in parameters:
        parameter.grad = None
    outcome = Outcome()

    def body() -> None:
        try:
            with torch.set_grad_enabled(train):
                value = call(*given)
                outcome.value = _copies(value)
                if train:
                    _backward(value)
        except Exception as error:
            outcome.error = (type(error), error.args, str(error), type(error.__cause__))
            frames = traceback.extract_tb(error.__traceback__)
            outcome.places = [with_own_names((f.lineno, f.name)) for f in frames if f.filename.endswith("_cases.py")]
            outcome.notes = list(getattr(error, "__notes__", ()))

    outcome.effects = [with_own_names(effect) for effect in observe(body, logger).effects]
    outcome.random, outcome.random_of_python = torch.get_rng_state(), random.getstate()
    outcome.inputs = [_copies(value) for value in given]
    outcome.gradients = [_gradient(leaf) for leaf in [*leaves, *parameters]]
    outcome.state = _state(owner)
    return outcome


def differences(got: Outcome, expected: Outcome, exact: bool = True) -> list[str]:
    """What differs, in words."""
    found = []
    if got.error != expected.error:
        found.append(f"error {got.error} instead of {expected.error}")
    if _effects(got) != _effects(expected):
        found.append(f"effects {got.effects} instead of {expected.effects}")
    found += [
        f"{name} {getattr(got, name)} instead of {getattr(expected, name)}"
        for name in ("value", "inputs", "state")
        if not same(getattr(got, name), getattr(expected, name), exact)
    ]
    # The sign of a zero gradient is that of a sum, which selecting adds zeros to.
    for index, pair in enumerate(zip(got.gradients, expected.gradients)):
        if not same(*pair, exact=False):
            found.append(f"gradient {index} {pair[0]} instead of {pair[1]}")
    if not torch.equal(got.random, expected.random):  # type: ignore[arg-type]
        found.append("the random generator has moved")
    if got.random_of_python != expected.random_of_python:
        found.append("Python's random generator has moved")
    return found


def _effects(outcome: Outcome) -> list[Any]:
    """Without what torch.fx writes to stderr when an operation of a graph fails."""
    return [effect for effect in outcome.effects if not (outcome.error and effect[0] == "stderr")]


def same(got: Any, expected: Any, exact: bool = True) -> bool:
    """Are the two trees of values alike: types, dtypes, shapes, strides, and bits (or nearly so)?"""
    left, right = tree_flatten(got), tree_flatten(expected)
    return left[1] == right[1] and all(_same(a, b, exact) for a, b in zip(left[0], right[0]))


def _same(got: Any, expected: Any, exact: bool) -> bool:
    if not isinstance(expected, torch.Tensor) or not isinstance(got, torch.Tensor):
        return type(got) is type(expected) and repr(got) == repr(expected)
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return False
    if not exact or not got.dtype.is_floating_point:
        return torch.allclose(got.double(), expected.double(), rtol=1e-4, atol=1e-6, equal_nan=True)
    signs = torch.equal(torch.signbit(got) & ~got.isnan(), torch.signbit(expected) & ~expected.isnan())
    return signs and torch.equal(got.nan_to_num(123.0), expected.nan_to_num(123.0)) and _places(got, expected)


def _places(got: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.equal(got.isnan(), expected.isnan()) and torch.equal(got.isinf(), expected.isinf())


def _copy(value: Any, train: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return value.clone().requires_grad_(train and value.dtype.is_floating_point)


def _copies(value: Any) -> Any:
    return torch.utils._pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, torch.Tensor) else v, value)


def _backward(value: Any) -> None:
    outputs = [v for v in tree_flatten(value)[0] if isinstance(v, torch.Tensor) and v.requires_grad]
    if outputs:
        sum(output.double().sum() for output in outputs).backward()  # type: ignore[union-attr]


def _gradient(leaf: Any) -> Any:
    return None if not isinstance(leaf, torch.Tensor) or leaf.grad is None else leaf.grad.clone()


def _state(owner: Any) -> dict[str, Any]:
    if not isinstance(owner, torch.nn.Module):
        return {}
    simple = (torch.Tensor, int, float, bool, str, type(None), list, dict)
    plain = {k: v for k, v in vars(owner).items() if not k.startswith("_") and isinstance(v, simple)}
    return {k: _copies(v) for k, v in {**plain, **dict(owner.named_buffers())}.items()}
