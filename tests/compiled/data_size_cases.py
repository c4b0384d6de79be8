"""Sizes that the data decides: what is squeezed, reshaped, measured and computed of them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint
from programs import TAKEN, of, rows


def measures_a_batch(x):
    n = (x[:, 0] > 0).sum().item()
    return torch.vmap(lambda row: row[:n] * 2)(x.t()).shape


def asks_for_strides(x):
    return x[x[:, 0] > 0].t().contiguous().stride()


def asks_for_strides_of_what_is_expanded(x):
    n = int((x[:, 0] > 0).sum())
    return strides_of(x[:, :1].expand(6, n))


def strides_of(x):
    return x.stride()


def _for_each_count(function: Any, C: Any) -> list[Any]:
    compiled = C(function)
    return [compiled(rows(count)) for count in (3, 1, 0, 2, 6)]


case_measures_a_batch = functools.partial(_for_each_count, measures_a_batch)
case_asks_for_strides = functools.partial(_for_each_count, asks_for_strides)
case_asks_for_strides_of_what_is_expanded = functools.partial(_for_each_count, asks_for_strides_of_what_is_expanded)


# --- sizes that the data decides --------------------------------------------------------------------------------------


def squeezes_by_an_operator(x):
    return torch.ops.aten.squeeze.dim(x[x[:, 0] > 0], 0).dim()


def squeezes_a_copy(x):
    return torch.squeeze_copy(x[x[:, 0] > 0], 0).dim()


def squeezes_as_numpy(x):
    return np.squeeze(x[x[:, 0] > 0].numpy()).ndim


def squeezes_in_a_body(x):
    return torch.utils.checkpoint.checkpoint(lambda a: a.squeeze(0) * 2, x[x[:, 0] > 0], use_reentrant=False).dim()


class Squeeze(torch.autograd.Function):
    @staticmethod
    def forward(_, a):
        return a.squeeze(0) * 1

    @staticmethod
    def backward(_, gradient):
        return gradient


def squeezes_in_a_function(x):
    return Squeeze.apply(x[x[:, 0] > 0]).dim()


def writes_to_what_is_contiguous(x):
    k = (x[:, 0] > 0).sum().item()
    y = x[:, :k].contiguous()
    y.add_(10)
    return x[0, 0].item()


def writes_to_what_is_reshaped(x):
    r = x[x[:, 0] > 0]
    c = r.t().reshape(-1)
    c.add_(10)
    return r.tolist()


def gives_what_is_contiguous(x):
    k = (x[:, 0] > 0).sum().item()
    return x[:, :k].contiguous()


def case_sizes(C):
    found = []
    for function in (
        *(squeezes_by_an_operator, squeezes_a_copy, squeezes_as_numpy, squeezes_in_a_body, squeezes_in_a_function),
        *(writes_to_what_is_contiguous, writes_to_what_is_reshaped, gives_what_is_contiguous),
    ):
        compiled = C(function)
        for count in (3, 1, 2):
            x = rows(count)
            given = compiled(x)
            if isinstance(given, torch.Tensor):
                given.add_(1)
            found.append((given, x))
    return found


# --- a size of zero, of which a kernel will have nothing --------------------------------------------------------------


def resizes(k, x):
    return torch.nn.functional.interpolate(x[: int(k.max())].t().unsqueeze(0), scale_factor=2.0)


def case_resizes_nothing(C):
    compiled, found = C(resizes), []
    for count in (3, 2, 0, 1):
        try:
            found.append(compiled(torch.tensor([0, count]), torch.arange(24.0).reshape(6, 4)))
        except RuntimeError as error:  # noqa: PERF203
            found.append(type(error).__name__)
    return found


# --- arithmetic on sizes that fails in Python -------------------------------------------------------------------------


def divides_by_one_less(y):
    return y.sum(0) * (1.0 / (len(y) - 1))


def takes_a_root(y):
    try:
        scale = len(y) ** -0.5
    except ZeroDivisionError:
        scale = 1.0
    return y.sum(0) * scale


def takes_a_root_of_one_less(y):
    return y.sum(0) * (len(y) - 1) ** 0.5


def takes_a_square_root(y):
    return y.sum(0) * math.sqrt(len(y) - 1)


def takes_a_logarithm(y):
    return y.sum(0) * math.log2(len(y))


def divides_whole_numbers(y):
    return y.sum(0) * (7 // len(y) + 7 % len(y))


def divides_in_vain(y):
    try:
        mean = 10 // len(y)
    except ZeroDivisionError:
        return y.sum(0) * 0
    return y.sum(0) + 2, mean > 100 and mean


def divides_for_nothing(y):
    mean = 10 / len(y)  # noqa: F841
    return y.sum(0) + 2


def halves_and_squares(y):
    n = len(y)
    return y.sum(0) * (n // 2 + n**2 + n % 3 + n / 4)


SIZED = (
    *(divides_by_one_less, takes_a_root, takes_a_root_of_one_less, takes_a_square_root, takes_a_logarithm),
    *(divides_whole_numbers, divides_in_vain, divides_for_nothing, halves_and_squares),
)


def of_selected(function):
    def called(x):
        return function(x[x[:, 0] > 0])

    return called


def case_arithmetic_on_sizes(C):
    found = []
    for function in SIZED:
        compiled = C(of_selected(function))
        for count in (3, 2, 0, 1, 4):
            try:
                found.append(compiled(rows(count)))
            except (ZeroDivisionError, ValueError) as error:  # noqa: PERF203
                found.append(type(error).__name__)
    return found


def case_powers_of_a_count_after_a_write(C):
    """The frame may not run again, so that what is asserted of the count decides: 0 ** 0.5 is 0, and 0 ** -0.5 fails."""

    def is_raised(x, y):
        y.add_(1)
        return len(y[x > 0]) ** 0.5

    def has_a_root(x, y):
        y.add_(1)
        return math.sqrt(len(y[x > 0]))

    def divides(x, y):
        y.add_(1)
        return 1.0 / len(y[x > 0])

    def is_inverted(x, y):
        y.add_(1)
        return len(y[x > 0]) ** -0.5

    found = []
    for function in (is_raised, has_a_root, divides, is_inverted):
        compiled = C(function)
        for value in TAKEN:
            written = of(1)
            try:
                found.append(compiled(of(value), written))
            except (ArithmeticError, RuntimeError) as error:
                found.append([type(error).__name__, str(error)])
            found.append(written)
    return found
