"""Modes of torch and function transforms, on and around what is mended."""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from programs import TAKEN, of, of_each, rows

logger = logging.getLogger("mode_cases")


# --- the modes after a graph that failed ------------------------------------------------------------------------------


def switches_after_a_guard(x, i):
    torch.set_grad_enabled(False)
    if (i > 100).any():
        raise ValueError("i")
    torch.set_grad_enabled(True)
    return x + i


def switches_after_a_guard_in_a_context(x, i):
    with torch.no_grad():
        if (i > 100).any():
            raise ValueError("i")
    return x + i


@torch.no_grad()
def guarded_without_gradients(x, i):
    if (i > 100).any():
        raise ValueError("i")
    return x[i]


@torch.inference_mode()
def guarded_in_inference_mode(x, i):
    if (i > 100).any():
        raise ValueError("i")
    return x[i]


def _modes_after(function: Any, C: Any) -> list[Any]:
    compiled, found = C(function), []
    for index in (1, 101, 7, 1):
        try:
            compiled(torch.arange(3.0), torch.tensor([index]))
        except (ValueError, IndexError) as error:
            found.append(type(error))
        found.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        torch.set_grad_enabled(True)
    return found


case_guarded_without_gradients = functools.partial(_modes_after, guarded_without_gradients)
case_guarded_in_inference_mode = functools.partial(_modes_after, guarded_in_inference_mode)
case_switches_after_a_guard = functools.partial(_modes_after, switches_after_a_guard)
case_switches_after_a_guard_in_a_context = functools.partial(_modes_after, switches_after_a_guard_in_a_context)


def counts_without_gradients(x, w, other):
    h = w * 2
    with torch.no_grad():
        z = x.nonzero() + other
    return h * z.sum()


def counts_in_autocast(x, w, other):
    with torch.autocast("cpu", torch.bfloat16):
        z = x.nonzero() + other
    return torch.mm(w[None], w[:, None]) * z.sum()


def counts_in_inference_mode(x, w, other):
    with torch.inference_mode():
        z = x.nonzero() + other
    return (w.detach() * 2) * z.clone().sum()


def case_counts_in_modes(C):
    found, other = [], torch.ones(3, 1, dtype=torch.long)
    for function in (counts_without_gradients, counts_in_autocast, counts_in_inference_mode):
        compiled = C(function)
        for x in ([1.0, 1.0, 1.0], [0.0, 0.0, 5.0]):
            given = compiled(torch.tensor(x), torch.ones(2, requires_grad=True), other)
            found.append((given.dtype, given.requires_grad, given.is_inference(), given, torch.is_grad_enabled()))
    return found


# --- function transforms, whose tensors have no memory of their own, and in which nothing can be asserted -------------


def squares(x):
    return (x * x).sum()


def after_a_gradient(x):
    return what_follows(torch.func.grad(squares)(x), x)


def after_a_gradient_of_each_row(x):
    return what_follows(torch.vmap(torch.func.grad(squares))(x), x)


def after_a_jacobian(x):
    return what_follows(torch.func.jacrev(lambda row: row * row)(x[0]), x)


def after_a_tangent(x):
    return what_follows(torch.func.jvp(squares, (x,), (x,))[1], x)


def after_a_draw_for_each_row(x):
    return what_follows(torch.vmap(lambda row: row + torch.rand(()), randomness="different")(x), x)


def after_a_write_to_each_row(x):
    y = x * 2
    kept = y if x.sum() > 0 else y * 1
    torch.vmap(lambda row: row.add_(1))(y)
    return kept


def what_follows(y, x):
    y = y * 2 if y.sum() > 0 else y + 1
    positive = int((x > 0).sum())
    logger.warning("%s are positive", positive)
    if (x > 100).any():
        raise ValueError(f"too much: {x.max()}")
    return y, x[:positive]


TRANSFORMED = (
    *(after_a_gradient, after_a_gradient_of_each_row, after_a_jacobian, after_a_tangent),
    *(after_a_draw_for_each_row, after_a_write_to_each_row),
)


def case_function_transforms(C):
    found = []
    for function in TRANSFORMED:
        compiled = C(function)
        for x in (rows(2), -rows(6), 50 * rows(2)):
            try:
                found.append(compiled(x))
            except ValueError as error:  # noqa: PERF203
                found.append(str(error))
    return found


# --- modes that see each call of torch --------------------------------------------------------------------------------


class Hundredfold(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        return found * 100 if function in (torch.where, torch.Tensor.clone) else found


def chooses(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y


def chooses_in_a_mode(x):
    with Hundredfold():
        return chooses(x)


def chooses_behind_a_mode(x):
    y = x
    with Hundredfold():
        if x.sum() > 0:
            y = x + 1
    if y.sum() < 8:
        y = y - 5
    return y


def case_modes_of_the_program(C):
    found, compiled = of_each(C, [chooses_in_a_mode, chooses_behind_a_mode]), C(chooses)
    with Hundredfold():
        return [*found, compiled(of(1.0)), compiled(of(-1.0))]


def case_modes_of_a_graph_that_fails(C):
    """Dynamo gives up a frame with a break in a loop; in one graph `max` of nothing leaves the mode on."""

    def fails_without_gradients(x):
        for _ in range(2):
            if x.ne(0).any():
                pass
        with torch.no_grad():
            return x[:0].max()

    compiled, found = C(fails_without_gradients), []
    for value in TAKEN:
        torch.set_grad_enabled(True)
        try:
            compiled(of(value))
        except RuntimeError as error:
            found.append([type(error).__name__, torch.is_grad_enabled()])
    return found
