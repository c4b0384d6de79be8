"""Functions with branches on tensor data, in each form of the statement and of the test.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

from typing import Any

import torch
from expectations import DOWN, PAIRS, UP, Expectation, register, t

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT)


# --- forms -----------------------------------------------------------------------------------------------------------


@case(inputs=PAIRS)
def names_as_templates_spell_theirs(TARGET: torch.Tensor, VALUES: torch.Tensor) -> torch.Tensor:
    if TARGET.sum() > 0:
        TEST = VALUES + TARGET
    else:
        TEST = VALUES - TARGET
    return TEST


@case(inductor=True)
def scaled(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x * 2.0
    elif x.sum() < -1e3:
        y = torch.mul(x, 0.5) / 4
    else:
        y = -3 * x
    return y


@case()
def scaled_beyond_what_is_finite(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x * 1e39
    else:
        y = x / 1e-45
    return y


@case(inductor=True)
def if_else(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1


@case(inputs=((UP,), (DOWN,), (t(0.0, 0.0, 0.0),)))
def if_elif_else(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 2
    elif x.sum() < 0:
        y = x - 1
    else:
        y = x + 5
    return y + 1


@case()
def without_else(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        x = x + 2
    return x + 1


@case(inductor=True)
def an_early_return(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 2
    y = x - 1
    return y + y


@case()
def early_returns_on_both_sides(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 2
    else:
        return x - 1


@case(inputs=((UP,), (DOWN,), (t(0.0, 0.0, 0.0),), (t(9.0, 9.0, 9.0),)))
def several_early_returns(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 20:
        return x + 9
    y = x + 1
    if x.sum() > 0:
        return y + 2
    elif x.sum() < 0:
        return y - 2
    return y


@case(inputs=((UP,), (DOWN,), (t(9.0, 9.0, 9.0),)))
def nested(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    if x.sum() > 0:
        z = x + 2
        if z.max() > 6:
            y = z + 3
        else:
            y = z - 3
    return y + 1


@case()
def nested_under_a_python_test(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if x.dim() == 1:
        if x.sum() > 0:
            y = x + 2
        if x.dtype == torch.float64:
            y = x + 100
    return y


@case()
def a_python_test_in_a_side(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    if x.sum() > 0:
        if x.dim() == 1:
            z = x + 2
            y = z + 1
        else:
            y = x - 2
        if x.dim() == 3:
            y = y + 100
        elif x.shape[0] == 3:
            y = y + 1
        y = y + 1
    return y


@case(inputs=((UP,), (DOWN,), (t(9.0, 9.0, 9.0),)))
def returns_under_tests_of_both_kinds(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        if x.dim() == 2:
            return x - 9
        if x.max() > 8:
            if x.dim() == 1:
                return x + 9
            x = x + 1
        x = x + 2
    return x + 1


class WithLast(torch.nn.Module):
    """Has an attribute for a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)


class attributes_under_a_python_test_in_a_side(WithLast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = x.detach() + 0
        if z.sum() > 0:
            if z.dim() == 1:
                self.last = z + 2
            if z.max() > 2:
                self.last = self.last + z
            z = self.last
        else:
            self.last = z - 1
        return x + z


case(inputs=((UP,), (DOWN,), (UP / 9,), (UP,)))(attributes_under_a_python_test_in_a_side)


@case()
def a_side_that_raises_by_a_python_test(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        if x.dim() == 1:
            raise ValueError("one dimension")
        y = x + 1
    return y


@case(inductor=True)
def a_conditional_expression(x: torch.Tensor) -> torch.Tensor:
    y = (x + 2 if x.sum() > 0 else x - 1) + 1
    return y


@case()
def a_conditional_expression_that_is_returned(x: torch.Tensor) -> torch.Tensor:
    return x + 2 if x.sum() > 0 else x - 1


@case()
def a_conditional_expression_in_a_call(x: torch.Tensor) -> torch.Tensor:
    return torch.add(x, x if x.sum() > 0 else x - 1)


@case(inputs=((UP,), (DOWN,), (t(9.0, -9.0, 9.0),)))
def and_or_not(x: torch.Tensor) -> torch.Tensor:
    if (x.sum() > 0 and not (x.min() < 0)) or (x.max() > 8 and x.sum() > 8):
        return x + 2
    return x - 1


@case()
def a_chained_comparison(x: torch.Tensor) -> torch.Tensor:
    total = x.sum()
    if -1 < total < 10:
        x = x + 2
    return x


@case()
def a_chained_comparison_of_what_is_calculated(x: torch.Tensor) -> torch.Tensor:
    if -1 < x.sum() < 10:
        x = x + 2
    return x


@case(declined="GM102-R01")
def a_chained_comparison_of_what_is_read(x: torch.Tensor) -> torch.Tensor:
    if -1 < x.sum().item() < 10:
        x = x + 2
    return x


@case()
def an_augmented_assignment_of_a_number(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 2
        n = 1
        n += 1
        y = y + n
    else:
        y = x - 1
    return y


@case()
def an_augmented_assignment_of_a_tensor(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if x.sum() > 0:
        y += 2
    return y


@case()
def a_tuple_assignment(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        a, b = x + 1, x + 2
    else:
        a, b = x - 1, x - 2
    a, b = b, a
    return a, b


@case()
def swapped_in_one_side(x: torch.Tensor) -> Any:
    a, b = x + 1, x + 2
    if x.sum() > 0:
        a, b = b, a
    return a, b


@case()
def an_annotated_assignment(x: torch.Tensor) -> torch.Tensor:
    y: torch.Tensor = x
    if x.sum() > 0:
        y: torch.Tensor = x + 1
    return y + 1


@case(inputs=((t(1.0),), (t(0.0),), (t([3.0]),), (t([[-0.0]]),), (t(float("nan")),)))
def a_predicate_with_one_element(x: torch.Tensor) -> torch.Tensor:
    if x:
        y = x + 2
    else:
        y = x - 1
    return y


@case(inputs=((t(3, dtype=torch.int64),), (t(0, dtype=torch.int64),)))
def an_integer_predicate(x: torch.Tensor) -> torch.Tensor:
    if x.sum():
        y = x + 2
    else:
        y = x - 1
    return y


@case(inputs=((UP,), (DOWN,), (t(1.0, -1.0, 1.0),)))
def any_and_all(x: torch.Tensor) -> torch.Tensor:
    if (x > 0).all():
        y = x + 2
    elif torch.any(x > 0):
        y = x + 3
    else:
        y = x - 1
    return y


@case()
def a_predicate_in_a_local(x: torch.Tensor) -> torch.Tensor:
    positive = x.sum() > 0
    negative = not positive if x.dim() == 2 else positive
    if negative:
        x = x + 2
    return x


def is_positive(x: torch.Tensor) -> torch.Tensor:
    return x.sum() > 0


@case()
def a_predicate_from_a_helper(x: torch.Tensor) -> torch.Tensor:
    if is_positive(x):
        x = x + 2
    return x


@case()
def a_predicate_by_bool(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        x = x + 2
    return x


@case(inputs=((t(0.1, 0.0),), (t(0.25, 0.0),)))
def a_predicate_by_item_is_compared_as_python_does(x: torch.Tensor) -> torch.Tensor:
    if x.sum().item() > 0.1:  # float32's 0.1 is more than Python's
        x = x + 2
    return x


@case(inputs=((t(2**53, 1, dtype=torch.int64),), (t(1, 1, dtype=torch.int64),)))
def a_predicate_by_item_of_whole_numbers(x: torch.Tensor) -> torch.Tensor:
    if x.sum().item() == 2**53 + 1:
        x = x + 2
    return x


@case(breaks=False, inputs=((t(5, dtype=torch.int64),), (t(-5, dtype=torch.int64),)))
def a_number_too_big_for_any_tensor(x: torch.Tensor) -> torch.Tensor:
    if x.item() < 2**70:
        x = x + 2
    return x


@case(inputs=((UP, UP.clone()), (UP, DOWN), (UP, t(1.0, 2.0, float("nan")))))
def torch_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if torch.equal(x, y):
        z = x + y
    else:
        z = x - y
    return z


@case()
def in_a_loop(x: torch.Tensor) -> torch.Tensor:  # H15
    previous = x
    for _ in range(3):
        y = previous + previous
        if y.sum() > 4:
            previous = y
    return previous


@case()
def read_in_the_next_round_only(x: torch.Tensor) -> torch.Tensor:  # H15
    state, total = x, x * 0
    for _ in range(3):
        total = total + state
        if total.sum() > 0:
            state = state + 1
    total = total + 7
    return total


@case()
def break_in_a_loop(x: torch.Tensor) -> torch.Tensor:  # H15
    for _ in range(3):
        x = x + 1
        if x.sum() > 8:
            break
    else:
        x = x + 100
    return x


@case()
def continue_in_a_loop(x: torch.Tensor) -> torch.Tensor:  # H15
    for _ in range(3):
        x = x + 1
        if x.sum() > 8:
            continue
        x = x + 100
    return x
