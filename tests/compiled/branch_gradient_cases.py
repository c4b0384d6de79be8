"""Gradients of what a branch selects, and values that are not finite.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import torch
from expectations import DOWN, HALF, PAIRS, UP, Expectation, register, t

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT)


# --- H1, H2: gradients -----------------------------------------------------------------------------------------------


@case(inputs=((UP,), (DOWN,), (t(0.0, 0.0, 0.0),)))
def h1_the_untaken_side_has_a_singular_gradient(x: torch.Tensor) -> torch.Tensor:
    if (x > 0).all():
        y = x.log() + x.sqrt()
    else:
        y = x * 2
    return y


@case(inputs=((UP, t(1.0, 1.0, 1.0)), (DOWN, t(0.0, 0.0, 0.0))))
def h1_a_division_by_the_untaken(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if (y != 0).all():
        z = x / y
    else:
        z = x + y
    return z


@case(inputs=((t(0.5, 0.5),), (t(0.0, 0.0),), (t(2.0, 2.0),)))
def h1_singular_by_power_acos_and_softmax(x: torch.Tensor) -> torch.Tensor:
    return x.acos() + x**0.5 + x.softmax(0) if (x > 0).all() else x + 1


@case(inputs=((UP,), (DOWN,), (t(0.0, float("nan"), float("inf")),), (t(-1.0, 0.0, 1e38),)), inductor=True)
def h1_singular_sides_in_sides(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        if x.mean() > 1:
            y = torch.log(x).softmax(-1) / x
        else:
            y = x.rsqrt() ** x
    else:
        y = torch.acos(x) * x.exp()
    return y


@case(declined="GM102-T02", train="GM102-T06", inputs=((UP,), (DOWN,)))
def h1_singular_with_gaps(x: torch.Tensor) -> torch.Tensor:
    y = x[::2]
    if x.sum() > 0:
        y = y.exp()
    return y


@case(train="GM102-T06", inputs=((UP,), (DOWN,)))
def h1_singular_right_of_an_and(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0 and (x.log() * x).sum() > 0:
        x = x + 1
    return x


@case(inputs=((UP,), (t(0.0, 0.0, 0.0),)), inductor=True)
def h1_singular_in_an_early_return(x: torch.Tensor) -> torch.Tensor:
    if x.abs().sum() == 0:
        return x + 1
    return x / x.abs().sum()


class h2_a_parameter_of_one_side(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))
        self.v = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x + self.w
        else:
            y = x + self.v
        return y


case(inductor=True)(h2_a_parameter_of_one_side)


class h2_a_parameter_of_one_side_by_getattr(h2_a_parameter_of_one_side):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x + getattr(self, "w")  # noqa: B009
        else:
            y = x + getattr(self, "v")  # noqa: B009
        return y


case()(h2_a_parameter_of_one_side_by_getattr)

GLOBAL = torch.nn.Parameter(torch.ones(3))


class h2_a_global_parameter_of_one_side(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = GLOBAL

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x + GLOBAL
        else:
            y = x + 1
        return y


case()(h2_a_global_parameter_of_one_side)


@case(train="GM102-T06", inputs=PAIRS)
def h2_an_input_of_one_side(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y if x.sum() > 0 else x + 1


@case(train="GM102-T06", inputs=PAIRS)
def h2_read_by_both_sides_but_used_by_one(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.detach().sum() > 0:
        z = x + y.detach()
    else:
        z = y + x.detach()
    return z


@case(train="GM102-T06", inputs=PAIRS)
def h2_read_by_both_sides_for_its_shape_by_one(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.detach().sum() > 0:
        z = x + y.shape[0]
    else:
        z = y + x.shape[0]
    return z


@case(train="GM102-T06")
def h2_one_side_needs_no_gradient(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 1
    else:
        y = torch.zeros_like(x)
    return y


@case()
def h2_the_same_leaf_on_both_sides(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 1
    else:
        y = -x
    return y


# --- H13: values that are not finite ---------------------------------------------------------------------------------


@case(
    inputs=((t(-0.0, float("inf"), float("nan")),), (t(0.0, -1.0, float("inf")),), (t(-0.0, -1.0, -2.0),)),
    inductor=True,
    exact=True,
)
def h13_zeros_with_a_sign_infinities_and_nan(x: torch.Tensor) -> torch.Tensor:
    if torch.isnan(x).any():
        y = -x
    else:
        y = x.relu() - x.abs()
    return y


@case(inputs=HALF, inductor=True, exact=True)
def h13_the_clamp_of_half_precision(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    h = x * y
    if h.dtype == torch.float16 and (torch.isinf(h).any() or torch.isnan(h).any()):
        clamp_value = torch.finfo(h.dtype).max - 1000
        h = torch.clamp(h, min=-clamp_value, max=clamp_value)
    return h


@case(inputs=HALF, inductor=True, exact=True)
def h13_half_precision_made_wider_for_the_test(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    h = x * y
    if h.float().isinf().any():
        h = torch.clamp(h, min=-1000.0, max=1000.0)
    return h


@case(inputs=HALF, inductor=True, exact=True)
def h13_half_precision_read_by_item(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    h = x * y
    if h.max().item() > 65504.0:
        h = torch.clamp(h, min=-1000.0, max=1000.0)
    return h


@case(inputs=HALF, inductor=True, exact=True)
def seven_clamps_of_half_precision(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    for _ in range(7):
        x = x * y
        if x.dtype == torch.float16 and torch.isinf(x).any():
            clamp_value = torch.finfo(x.dtype).max - 1000
            x = torch.clamp(x, min=-clamp_value, max=clamp_value)
    return x


# --- H1: what is computed before the branch, and used by one side alone ------------------------------------------------

OVERFLOWING = ((UP,), (t(1.0, 200.0, 3.0),), (t(1.0, float("inf"), -3.0),), (t(0.0, 1.0, -1.0),))


@case(inputs=OVERFLOWING, inductor=True)
def h1_an_exponential_before_the_branch(x: torch.Tensor) -> torch.Tensor:
    y, b = x, x.exp()
    if x.max() < 80:
        y = b
    return y * 2


@case(inputs=OVERFLOWING)
def h1_what_is_not_finite_is_replaced(x: torch.Tensor) -> torch.Tensor:
    h = (x * 2).exp()
    if not torch.isfinite(h).all():
        h = torch.zeros_like(h)
    return h + x


@case(inputs=OVERFLOWING)
def h1_two_branches_use_it(x: torch.Tensor) -> torch.Tensor:
    b, c = x.exp(), x.sqrt()
    y = b if x.max() < 80 else x
    if x.min() > 0:
        y = y + c
    return y


@case(inputs=OVERFLOWING)
def h1_a_nested_side_uses_it(x: torch.Tensor) -> torch.Tensor:
    b = x.exp().sqrt()
    if x.max() < 90:
        if x.min() > 0:
            y = b
        else:
            y = x
    else:
        y = x * 2
    return y


@case(inputs=OVERFLOWING)
def h1_it_is_used_behind_the_branch_too(x: torch.Tensor) -> torch.Tensor:
    b = (x * 0.25).exp()
    y = b if x.max() < 80 else x
    return y + b


@case(inputs=OVERFLOWING)
def h1_it_returns_before_it_is_used(x: torch.Tensor) -> torch.Tensor:
    b = torch.log(x)
    if torch.isnan(b).any() or torch.isinf(b).any():
        return x * 3
    return b.sin()


@case(inputs=OVERFLOWING)
def h1_both_sides_use_it(x: torch.Tensor) -> torch.Tensor:
    b = (x * 0.25).exp()
    return b.clamp(max=2) if x.max() < 80 else b
