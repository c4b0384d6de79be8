"""What a branch selects, compared, looked up and written to as an object.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
import torch.nn.functional as F
from expectations import DOWN, PAIRS, UP, Expectation, register

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT)


class WithLast(torch.nn.Module):
    """Has an attribute for a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)


# --- H6: identity ----------------------------------------------------------------------------------------------------


@case(declined="GM102-T11")
def h6_written_in_place_later(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    y.add_(1)
    return x + y


@case(declined="GM102-T11")
def h6_a_conditional_expression_written_in_place_later(x: torch.Tensor) -> torch.Tensor:
    y = x if x.sum() > 0 else x + 1
    y.add_(1)
    return x + y


@case(declined="GM102-T11")
def h6_compared_by_identity_later(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    return x + 1 if y is x else x + 2


@case(declined="GM102-T11")
def h6_a_conditional_expression_compared_by_identity(x: torch.Tensor) -> torch.Tensor:
    y = x if x.sum() > 0 else x + 1
    return x + 1 if y is x else x + 2


@case(declined="GM102-T11")
def h6_a_view_of_the_result_is_written_later(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    y.view(-1).add_(1)
    return x + y


@case(declined="GM102-T11")
def h6_a_view_made_before_is_written_later(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    view = y.view(-1)
    if x.sum() > 0:
        y = y + 5
    view.add_(1)
    return y


@case(declined="GM102-T11")
def h6_a_view_made_after_is_written_later(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    z = y
    if x.sum() > 0:
        y = y + 5
    view = y[1:]
    view.add_(1)
    return y + z


@case(declined="GM102-T11")
def h6_written_behind_a_graph_break(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    z = y
    if y.sum() > 0:
        y = y + 5
    torch._dynamo.graph_break()
    add_one(y)
    return y + z


@case(declined="GM102-T11")
def h6_written_by_a_function_of_torch(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    torch.relu_(y)
    return x + y


@case(declined="GM102-T11")
def h6_written_by_inplace_true(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    F.leaky_relu(y, 0.5, inplace=True)
    return x + y


def add_one(y: torch.Tensor) -> None:
    y.add_(1)


@case(declined="GM102-T11")
def h6_written_by_a_helper(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    add_one(y)
    return x + y


@case(declined="GM102-T11")
def h6_out_equals(x: torch.Tensor) -> torch.Tensor:
    x = x.detach()
    y = x
    if x.sum() > 0:
        y = x + 1
    torch.add(y, 1, out=y)
    return x + y


class h6_an_attribute_written_in_place_later(WithLast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = x.detach() + 0
        if z.sum() > 0:
            self.last = z
        self.last.add_(1)
        return x + z


case(declined="GM102-T11", inputs=((DOWN,), (UP,), (DOWN,)))(h6_an_attribute_written_in_place_later)


def observe(least: torch.Tensor) -> None:
    """Writes to the tensor by an operation of torch that no name gives away."""
    on, one, zero = torch.ones(1, dtype=torch.int64), torch.ones(1), torch.zeros(1, dtype=torch.int32)
    torch.fused_moving_avg_obs_fake_quant(torch.arange(6.0) + 7, on, on, least, one + 8, one, zero, 0.5, 0, 255, 0)


@case(declined="GM102-T11")
def h6_written_by_what_does_not_say_so(x: torch.Tensor) -> torch.Tensor:
    y = x.detach() + 0
    z = y
    if y.sum() > 0:
        y = y + 5
    observe(y[:1])
    return y + z


@case(declined="GM102-T11", inputs=PAIRS)
def h6_compared_by_identity_inside_a_side(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x
    if x.max() > -10:
        if x.sum() > 0:
            a = x
        else:
            a = y
        if a is x:
            z = x + 1
        else:
            z = x + 2
    return z


def at_least(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x
    return x.abs()


@case(declined="GM102-T11")
def h6_a_caller_asks_for_the_object(x: torch.Tensor) -> torch.Tensor:
    y = at_least(x)
    if y is x:
        return x + 1
    return y + 2


@case(declined="GM102-T11")
def h6_a_caller_asks_twice_removed(x: torch.Tensor) -> torch.Tensor:
    y = at_least(at_least(x) * 1)
    z = at_least(at_least(y))
    return x + 1 if z is not y else x + 2


@case(declined="GM102-T11")
def h6_a_caller_asks_two_of_one_kind(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if at_least(x) is at_least(x) else x + 2


@case(declined="GM102-T11")
def h6_another_helper_asks(x: torch.Tensor) -> torch.Tensor:
    def differs(one: torch.Tensor, other: torch.Tensor) -> bool:
        return operator.is_not(one, other)

    return x + 1 if differs(at_least(x), x) else x + 2


@case(declined="GM102-T11")
def h6_a_caller_compares_lists(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if [x].index(at_least(x)) == 0 else x + 2


@case(declined="GM102-T11", inputs=((UP,), (UP,)))
def h6_a_caller_compares_tuples(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if (1, x) == (1, at_least(x)) else x + 2


@case(declined="GM102-T11")
def h6_a_caller_looks_it_up(x: torch.Tensor) -> torch.Tensor:
    return x + {x: 1}.get(at_least(x), 2)


def is_changed(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one is not other


@case(declined="GM102-T11")
def h6_a_caller_hands_it_to_one_that_asks(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x * 2
    return y + 100 if is_changed(y, x) else y


@case(declined="GM102-T11")
def h6_a_caller_asks_in_a_lambda(x: torch.Tensor) -> torch.Tensor:
    check = lambda one: one is x  # noqa: E731
    y = x
    if x.sum() > 0:
        y = x * 2
    return y + 100 if check(y) else y


@case(declined="GM102-T11", inputs=PAIRS)
def h6_a_caller_swaps_and_asks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    p, q = (x, y) if x.sum() > 0 else (y, x)
    return p + q * 2 if is_changed(p, x) else p


def tagged(x: torch.Tensor) -> torch.Tensor:
    x.label = "tagged"
    return x


@case(declined="GM102-T11")
def h6_a_caller_reads_what_hangs_on_it(x: torch.Tensor) -> torch.Tensor:
    y = x = tagged(x)
    if x.sum() > 0:
        y = x * 2
    return y + (100 if getattr(y, "label", None) == "tagged" else 0)


@case(declined="GM102-T11")
def h6_a_caller_asks_what_hangs_on_it(x: torch.Tensor) -> torch.Tensor:
    y = at_least(tagged(x))
    return y + (100 if hasattr(y, "label") else 0)


@case(declined="GM102-T11")
def h6_a_caller_hangs_something_on_it(x: torch.Tensor) -> Any:
    y = x = x + 0
    if x.sum() > 0:
        y = x * 2
    tagged(y)
    return y, getattr(x, "label", None)


class h6_a_caller_asks_for_its_class(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = torch.nn.Buffer(torch.ones(3)), torch.nn.Buffer(torch.zeros(3))

    def forward(self, x: torch.Tensor) -> Any:
        y = self.a if x.sum() > 0 else self.b
        return x + y, isinstance(y, torch.nn.Buffer)


case(declined="GM102-T02")(h6_a_caller_asks_for_its_class)


@case()
def h6_a_caller_looks_another_up(x: torch.Tensor) -> torch.Tensor:
    y = at_least(x)
    return x + {x: 1}.get(x, 2) + y


@case()
def h6_a_caller_asks_about_others(x: torch.Tensor) -> torch.Tensor:
    y, z = at_least(x), x + 1
    return y + 1 if y is z else y + 2


@case()
def h6_the_same_object_on_both_sides_is_kept(x: torch.Tensor) -> Any:
    y = x + 1
    if x.sum() > 0:
        a, b = y, x + 1
    else:
        a, b = y, x + 2
    return b, a + 0


class h6_a_parameter_stays_one(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3), requires_grad=False)
        self.v = torch.nn.Parameter(torch.ones(3) * 2, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            self.w = self.v
        return x + self.w


case(declined="GM102-T11", inputs=((DOWN,), (UP,), (DOWN,)))(h6_a_parameter_stays_one)
