"""Functions and modules with branches on tensor data.  Imported twice: as they are, and mended.

``EXPECT`` gives, for each, the inputs (which take both sides), and the code of the refusal where it is not mended.
"H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import logging
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

logger = logging.getLogger("branch_cases")


def t(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values[0] if len(values) == 1 else list(values), dtype=dtype)


UP, DOWN = t(1.0, 2.0, 3.0), t(-1.0, -2.0, -3.0)
SIGNS = ((UP,), (DOWN,))
PAIRS = ((UP, t(4.0, 5.0, 6.0)), (DOWN, t(4.0, 5.0, 6.0)))
HALF = (
    (t(1.0, 2.0, 3.0, dtype=torch.float16), t(2.0, 2.0, 2.0, dtype=torch.float16)),
    (t(60000.0, 2.0, -60000.0, dtype=torch.float16), t(2.0, 2.0, 2.0, dtype=torch.float16)),
)


@dataclass(frozen=True)
class Expectation:
    """inputs: called with each in turn.  declined: the code of the refusal, "" for one graph; train: when training.

    declined="-": it breaks as before, without a code.  exact: bit-equal on Inductor too.  inductor: worth the time of Inductor.  breaks: as it does without the hook.
    """

    inputs: tuple[tuple[Any, ...], ...] = SIGNS
    declined: str = ""
    train: str = ""
    exact: bool = False
    inductor: bool = False
    breaks: bool = True


EXPECT: dict[str, Expectation] = {}


def case(
    inputs: tuple[tuple[Any, ...], ...] = SIGNS,
    declined: str = "",
    train: str | None = None,
    exact: bool = False,
    inductor: bool = False,
    breaks: bool = True,
) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        trained = declined if train is None else train
        EXPECT[function.__name__] = Expectation(inputs, declined, trained, exact, inductor, breaks)
        return function

    return register


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


@case(inputs=((UP,), (DOWN,), (t(9.0, 9.0, 9.0),)), train="GM102-T06")
def nested(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    if x.sum() > 0:
        z = x + 2
        if z.max() > 6:
            y = z + 3
        else:
            y = z - 3
    return y + 1


@case(train="GM102-T06")
def nested_under_a_python_test(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if x.dim() == 1:
        if x.sum() > 0:
            y = x + 2
        if x.dtype == torch.float64:
            y = x + 100
    return y


@case(train="GM102-T06")
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


@case(declined="GM102-R08")
def an_augmented_assignment_of_a_number(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 2
        n = 1
        n += 1
        y = y + n
    else:
        y = x - 1
    return y


@case(declined="GM102-R08")
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


@case(train="GM102-T06")  # each side's value depends on one of two tensors
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


@case(train="GM102-T06")
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


@case(declined="GM102-R08")
def break_in_a_loop(x: torch.Tensor) -> torch.Tensor:  # H15
    for _ in range(3):
        x = x + 1
        if x.sum() > 8:
            break
    else:
        x = x + 100
    return x


@case(declined="GM102-R08")
def continue_in_a_loop(x: torch.Tensor) -> torch.Tensor:  # H15
    for _ in range(3):
        x = x + 1
        if x.sum() > 8:
            continue
        x = x + 100
    return x


class attributes_on_self(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)
        self.register_buffer("seen", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            z = x.detach() + 0
            if z.sum() > 0:
                self.last = z + 2
                self.seen = self.seen + self.last
            else:
                self.last = z - 1
        return x + 1


case(inductor=True)(attributes_on_self)


class register_buffer_on_both_sides(torch.nn.Module):
    """As the longrope of Phi3."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.ones(3), persistent=False)
        self.original = self.table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = x.detach()
            if y.sum() > 0:
                if not hasattr(self, "long"):
                    self.long = self.original + 5
                self.register_buffer("table", self.long, persistent=False)
            else:
                self.register_buffer("table", self.original, persistent=False)
        return x + self.table


case(inputs=((UP,), (DOWN,), (UP,)))(register_buffer_on_both_sides)


class a_setter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.writes = torch.zeros(3), 0

    @property
    def last(self) -> torch.Tensor:
        return self.hidden

    @last.setter
    def last(self, value: torch.Tensor) -> None:
        self.writes += 1
        self.hidden = value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.detach()
        if y.sum() > 0:
            self.last = y + 1
        else:
            self.last = y + 2
        return x + self.writes


case(declined="GM102-T09")(a_setter)


class a_private_attribute(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.__last = torch.zeros(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.detach()
        if y.sum() > 0:
            self.__last = y + 1
        else:
            self.__last = y + 2
        return x + self.__last


case()(a_private_attribute)


class a_private_attribute_of_a_class_that_makes_up_others(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.__scale = 3.0

    def __getattr__(self, name: str) -> Any:
        return 100.0 if name.startswith("__") else super().__getattr__(name)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x + self.__scale
        return x


case()(a_private_attribute_of_a_class_that_makes_up_others)


class Meter(torch.nn.Module):
    """Has properties that do more than to read; what they do shows in what the cases return."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.marks, self.table = 0, ["made"], {"reads": 0}

    @property
    def counted(self) -> float:
        self.reads += 1
        return 2.0

    @property
    def listed(self) -> float:
        self.marks.append("read")
        return 2.0

    @property
    def entered(self) -> float:
        self.table["reads"] += 1
        return 2.0

    @property
    def drawn(self) -> float:
        return random.random()

    @property
    def logged(self) -> float:
        logger.warning("read")
        return 2.0


class a_property_counts_what_was_counted_before(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 0:
            x = x + self.counted
        return x, self.reads


class a_property_appends_to_what_was_appended_to_before(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.marks = []
        self.marks.append("begun")
        if x.sum() > 0:
            x = x + self.listed
        return x, len(self.marks)


class a_property_stores_into_a_dict_that_was_stored_into_before(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.table["reads"] = 0
        if x.sum() > 0:
            x = x + self.entered
        return x, self.table["reads"]


class a_property_draws(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        if x.sum() > 0:
            x = x + self.drawn
        return x


class a_property_logs_after_a_log(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        logger.warning("begun")
        if x.sum() > 0:
            x = x + self.logged
        return x


class a_property_counts_in_a_side_that_is_refused(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 0:
            x = x + self.counted
        else:
            x = x.reshape(1, 3)
        return x, self.reads


class a_property_counts_in_a_right_operand(Meter):
    def forward(self, x: torch.Tensor) -> Any:
        self.reads = 0
        if x.sum() > 0 and x.max() > self.counted:
            x = x + 1
        return x, self.reads


for _case in (
    a_property_counts_what_was_counted_before,
    a_property_appends_to_what_was_appended_to_before,
    a_property_stores_into_a_dict_that_was_stored_into_before,
    a_property_logs_after_a_log,
    a_property_counts_in_a_side_that_is_refused,
    a_property_counts_in_a_right_operand,
):
    case(declined="GM102-T11")(_case)
case(declined="-")(a_property_draws)


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


case(train="GM102-T06", inductor=True)(h2_a_parameter_of_one_side)


class h2_a_parameter_of_one_side_by_getattr(h2_a_parameter_of_one_side):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            y = x + getattr(self, "w")  # noqa: B009
        else:
            y = x + getattr(self, "v")  # noqa: B009
        return y


case(train="GM102-T06")(h2_a_parameter_of_one_side_by_getattr)

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


case(train="GM102-T06")(h2_a_global_parameter_of_one_side)


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


@case(train="GM102-T02")
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


# --- H3, H4: what is merged ------------------------------------------------------------------------------------------


@case(declined="GM102-T03")
def h3_different_python_numbers(x: torch.Tensor) -> torch.Tensor:
    scale = 1.5
    if x.sum() > 0:
        scale = 2.5
    return x * scale


@case(declined="GM102-T02", train="GM102-T02")
def h3_different_dtypes(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.sum() > 0 else x


@case(declined="GM102-T03")
def h3_an_int_and_a_float(x: torch.Tensor) -> Any:
    return x, (1 if x.sum() > 0 else 1.0)


@case(declined="GM102-T03")
def h3_zeros_of_both_signs(x: torch.Tensor) -> Any:
    return x, (0.0 if x.sum() > 0 else -0.0)


@case()
def h3_the_same_python_values(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        y, n, s, z, d = x + 1, 1, "s", None, torch.float16
    else:
        y, n, s, z, d = x + 2, 1, "s", None, torch.float16
    return y.to(d), n, s, z


@case(declined="GM102-T03")
def h3_a_tensor_or_none(x: torch.Tensor) -> Any:
    y = None
    if x.sum() > 0:
        y = x + 1
    return x if y is None else y


@case(declined="GM102-T02")
def h4_different_shapes(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x[:1] + 1
    else:
        y = x + 1
    return y


@case(declined="GM102-T02", inputs=((torch.ones(2, 2),), (-torch.ones(2, 2),)))
def h4_different_strides(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        y = x.t()
    else:
        y = x + 1
    return y, y.stride()


# --- H5: the predicate -----------------------------------------------------------------------------------------------


@case(declined="GM102-T01")
def h5_more_than_one_element_still_raises(x: torch.Tensor) -> torch.Tensor:
    if x > 0:
        x = x + 1
    return x


@case(declined="GM102-T01", inputs=((torch.ones(0),),))
def h5_no_element_is_as_in_python(x: torch.Tensor) -> torch.Tensor:
    if x > 0:
        x = x + 1
    else:
        x = x - 1
    return torch.cat([x, torch.ones(1)])


# --- H6: identity ----------------------------------------------------------------------------------------------------


@case(declined="GM102-R17")
def h6_written_in_place_later(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    y.add_(1)
    return x + y


@case(declined="GM102-R17")
def h6_a_conditional_expression_written_in_place_later(x: torch.Tensor) -> torch.Tensor:
    y = x if x.sum() > 0 else x + 1
    y.add_(1)
    return x + y


@case(declined="GM102-R17")
def h6_compared_by_identity_later(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    return x + 1 if y is x else x + 2


@case(declined="GM102-R17")
def h6_a_conditional_expression_compared_by_identity(x: torch.Tensor) -> torch.Tensor:
    y = x if x.sum() > 0 else x + 1
    return x + 1 if y is x else x + 2


@case(declined="GM102-R17")
def h6_a_view_of_the_result_is_written_later(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    y.view(-1).add_(1)
    return x + y


@case(declined="GM102-R17")
def h6_a_view_made_before_is_written_later(x: torch.Tensor) -> torch.Tensor:
    y = x + 0
    view = y.view(-1)
    if x.sum() > 0:
        y = y + 5
    view.add_(1)
    return y


@case(declined="GM102-R17")
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


@case(declined="GM102-R17")
def h6_written_by_a_function_of_torch(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    torch.relu_(y)
    return x + y


@case(declined="GM102-R17")
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


@case(declined="GM102-R17")
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


@case(declined="GM102-R17", inputs=PAIRS)
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


@case(declined="GM102-T11", train="GM102-T06", inputs=PAIRS)
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


case(declined="GM102-T02", inputs=((DOWN,), (UP,), (DOWN,)))(h6_a_parameter_stays_one)


# --- H7: effects in a side -------------------------------------------------------------------------------------------


@case(declined="GM102-R02", inputs=PAIRS)
def h7_a_write_in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y.add_(1)
    return x + y


@case(declined="GM102-R08", inputs=PAIRS)
def h7_a_write_of_an_element(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y[0] = 7
    return x + y


@case(declined="GM102-R02")
def h7_a_write_to_a_list(x: torch.Tensor) -> Any:
    seen: list[int] = []
    if x.sum() > 0:
        seen.append(1)
    return x + len(seen)


COUNT = torch.zeros(3)


@case()
def h7_a_global(x: torch.Tensor) -> torch.Tensor:
    global COUNT
    COUNT = torch.zeros(3)
    if x.sum() > 0:
        COUNT = x.detach() + 1
    return x + read_the_global()


def read_the_global() -> torch.Tensor:
    return COUNT


@case(declined="GM102-R03")
def h7_a_nonlocal(x: torch.Tensor) -> torch.Tensor:
    total = x + 0

    def inner() -> None:
        nonlocal total
        if x.sum() > 0:
            total = total + 1

    inner()
    return total


@case()
def h7_a_closure_reads_what_the_side_binds(x: torch.Tensor) -> torch.Tensor:
    y = x

    def inner() -> torch.Tensor:
        return y + 1

    if x.sum() > 0:
        y = x + 5
    return inner()


class h7_an_attribute_read_back_by_getattr(WithLast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = x.detach()
        y = z
        if z.sum() > 0:
            self.last = z + 1
            y = z + getattr(self, "last")  # noqa: B009
        return x + y


case(declined="GM102-R04")(h7_an_attribute_read_back_by_getattr)


class h7_an_attribute_through_another_name(WithLast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        other, z = self, x.detach()
        y = z
        if z.sum() > 0:
            self.last = z + 1
            y = z + other.last
        return x + y


case(declined="GM102-R04")(h7_an_attribute_through_another_name)


class h7_two_names_of_one_object(WithLast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        other, z = self, x.detach()
        if z.sum() > 0:
            self.last = z + 1
            other.last = z + 2
        else:
            other.last = z + 3
            self.last = z + 4
        return x + self.last


case(declined="GM102-R04")(h7_two_names_of_one_object)


# --- H8, H9, H12: what may not be run ahead of time ------------------------------------------------------------------


@case(declined="GM102-R02")
def h8_random_numbers(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + torch.rand_like(x)
    else:
        y = x + 1
    return y


class h8_dropout(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = self.dropout(x)
        return x + 1


case(declined="GM102-R02")(h8_dropout)


class h7_a_property_updates_statistics(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("least", torch.zeros(1))

    @property
    def scale(self) -> float:
        observe(self.least)
        return 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x + self.scale
        return x * 1


case(declined="GM102-T11")(h7_a_property_updates_statistics)


@case(
    declined="GM102-R02", inputs=((t(1.0, 1.0), t(0, 1, dtype=torch.int64)), (t(-1.0, 1.0), t(0, 9, dtype=torch.int64)))
)
def h9_an_index_out_of_bounds(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    if ids.max() < 2:
        y = torch.gather(x, 0, ids)
    else:
        y = x + 1
    return y


@case(
    declined="GM102-T04", inputs=((t(1.0, 1.0), t(0, 1, dtype=torch.int64)), (t(-1.0, 1.0), t(0, 9, dtype=torch.int64)))
)
def h9_a_subscript_out_of_bounds(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return x[ids] if ids.max() < 2 else x + 1


@case(
    declined="GM102-T04",
    inputs=(
        (t(6, 6, dtype=torch.int64), t(2, 3, dtype=torch.int64)),
        (t(6, 6, dtype=torch.int64), t(2, 0, dtype=torch.int64)),
    ),
)
def h9_a_whole_division_by_zero(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x // y if (y != 0).all() else x + y


@case(declined="GM102-T05", inputs=PAIRS)
def h9_an_attribute_of_none(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    extra = y if y.dim() == 2 else None
    if x.sum() > 1000:
        z = x + extra.shape[0]
    else:
        z = x + y
    return z


@case(declined="GM102-T04", inputs=PAIRS)
def h9_shapes_that_do_not_fit(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.sum() > 1000:
        z = x + y.repeat(2)
    else:
        z = x + y
    return z


@case(declined="GM102-R02", inputs=((torch.eye(2),), (-torch.eye(2),)))
def h9_cholesky(x: torch.Tensor) -> torch.Tensor:
    if (x.diagonal() > 0).all():
        y = torch.linalg.cholesky(x)
    else:
        y = x
    return y


@case(declined="GM102-T05")
def h9_python_divides_by_zero(x: torch.Tensor) -> torch.Tensor:
    n = x.dim() - 1
    if x.sum() > 1000:
        y = x + 1 // n
    else:
        y = x + 1
    return y


@case(declined="-")
def h9_a_name_that_does_not_exist(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 1000:
        y = x + does_not_exist  # type: ignore[name-defined] # noqa: F821
    else:
        y = x + 1
    return y


class h12_a_layer_in_a_side(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = self.layer(x)
        return x + 1


case(declined="GM102-R02")(h12_a_layer_in_a_side)


@case(declined="GM102-R02", inputs=((torch.ones(3, 3),), (-torch.ones(3, 3),)))
def h12_a_matrix_product_in_a_side(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        x = x.matmul(x)
    return x + 1


# --- H10: names ------------------------------------------------------------------------------------------------------


@case(declined="GM102-R05")
def h10_bound_on_one_side_only(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 1
    return y + 1


@case()
def h10_bound_on_one_side_and_not_read_later(x: torch.Tensor) -> torch.Tensor:
    z = x
    if x.sum() > 0:
        y = x + 1
        z = y + 1
    return z + 1


@case(declined="GM102-R03")
def h10_may_be_unbound_where_it_is_read(x: torch.Tensor) -> torch.Tensor:
    for i in range(x.dim() - 1):
        extra = x + i
    z = x
    if x.sum() > 1000:
        z = x + extra
    return z


@case(declined="GM102-R05", inputs=((UP,), (DOWN,)))
def h10_deleted_before_it_is_read(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    del y
    if x.sum() > 0:
        y = x + 1
    return y + 1


# --- H11: the operands of a test -------------------------------------------------------------------------------------


@case()
def h11_the_right_operand_is_only_valid_if_the_left_is_true(x: torch.Tensor) -> torch.Tensor:
    extra = None if x.dim() == 1 else x
    if extra is not None and extra.sum() > 0:
        x = x + 1
    if extra is None or extra.sum() > 0:
        x = x + 2
    if x.sum() > 0:
        x = x + 3
    return x


@case(declined="GM102-T04", inputs=((UP, t(0, dtype=torch.int64)), (UP, t(9, dtype=torch.int64))))
def h11_a_tensor_guards_the_right_operand(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    if i < 3 and x[i] > 0:
        x = x + 1
    return x


@case(declined="GM102-R02")
def h11_the_right_operand_has_an_effect(x: torch.Tensor) -> torch.Tensor:
    seen = [1, 2, 3]
    if x.sum() > 0 and seen.pop() > 0:
        x = x + 1
    return x + len(seen)


@case(declined="GM102-R02")
def h11_the_right_operand_binds_a_name(x: torch.Tensor) -> torch.Tensor:
    n = x
    if x.sum() > 0 and (n := x + 1).sum() > 7:
        x = x + 1
    return x + n


@case(declined="GM102-R02")
def h11_the_right_operand_is_not_a_bool(x: torch.Tensor) -> Any:
    values = [1] if x.dim() == 1 else []
    if x.sum() > 0 and sorted(values):
        x = x + 1
    return x


@case()
def h11_the_value_of_a_test_in_a_local(x: torch.Tensor) -> Any:
    if x.dim() == 1 and (x.sum() > 0 or x.max() > 100) and x.dim() != 2:
        x = x + 1
    return x


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


# --- H14: where control goes -----------------------------------------------------------------------------------------


@case(declined="GM102-R06")
def h14_a_return_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = x + 1
        if x.sum() > 8:
            return x
    return x - 100


@case(declined="GM102-R06")
def h14_a_return_in_a_with(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        if x.sum() > 0:
            return x + 1
    return x - 100


@case(declined="GM102-R06")
def h14_a_return_in_a_try(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() > 0:
            return x + 1
    finally:
        x = x + 2
    return x - 100


def halves(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        x = x + 1
    yield x


@case(declined="GM102-R10")
def h14_a_generator(x: torch.Tensor) -> torch.Tensor:
    return next(iter(list(halves(x))))


@case(declined="GM102-R11")
def h14_locals(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    locals()
    return y + 1


@case(declined="GM102-R08")
def h14_del_in_a_side(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    if x.sum() > 0:
        del y
    return x


@case(declined="GM102-R02")
def h14_a_comprehension_in_a_side(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x + sum([i for i in range(3)])
    return y


@case()
def h14_a_lambda_reads_a_name_of_the_side(x: torch.Tensor) -> torch.Tensor:
    y = x
    read = lambda: y  # noqa: E731
    if x.sum() > 0:
        y = x + 5
    return read() + 1


# --- effects and guards in a side ------------------------------------------------------------------------------------


@case(inductor=True)
def a_log_in_a_side_is_delivered_if_taken(x: torch.Tensor) -> torch.Tensor:
    logger.warning("before")
    if x.sum() > 0:
        logger.warning("positive %s", x.shape)
        y = x + 1
    else:
        print("negative")
        y = x - 1
    logger.warning("after")
    return y


@case()
def a_log_without_else(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        logger.warning("positive")
    return x + 1


@case(inputs=((UP,), (DOWN,), (t(9.0, 9.0, 9.0),)))
def logs_in_nested_sides(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        logger.warning("positive")
        if x.sum() > 20:
            logger.warning("large")
            y = x + 1
        else:
            logger.warning("small")
    return y


@case()
def a_log_shows_a_value_of_its_side(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        z = x + 1
        print("z", z.detach())
        y = z + 1
    return y


@case(inputs=((UP,), (DOWN,), (t(99.0, 9.0, 9.0),), (t(-99.0, 9.0, 9.0),)), inductor=True)
def a_guard_in_a_side_fires_if_taken(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        if x.max() > 50:
            raise ValueError("too large", x.shape[0])
        y = x + 1
    return y


@case(inputs=((UP,), (DOWN,)))
def a_side_that_raises(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x + 1
    else:
        raise ValueError(f"not positive: {x.shape}")
    return y


@case(inputs=((UP,), (DOWN,)))
def a_return_or_a_raise(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    raise ValueError("not positive")


@case(declined="GM102-R02")
def a_log_that_cannot_wait(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        print("value", x.sum().item())
        y = x + 1
    return y


TOKEN = 7


@case(
    inputs=(
        (t(1, 2, 3, dtype=torch.int64), None),
        (t(1, 7, 3, dtype=torch.int64), None),
    )
)
def a_body_that_would_fail(ids: torch.Tensor, past: Any) -> torch.Tensor:
    """As a model that splits at a token which is hardly ever there: the body must not run without it."""
    x = ids.float()
    if past is None and torch.any(ids == TOKEN):
        x = torch.where(ids == TOKEN, x + 1, x)
    return x


MASK = torch.tensor([[0, 1, 1], [2, 0, 3]])
ROWS = torch.arange(8.0).reshape(2, 4)


@case(inputs=((MASK, ROWS), (MASK + 5, ROWS), (MASK * 0 + 1, ROWS)), inductor=True, train="GM102-T10")
def masked_writes_in_a_loop(ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """As the visual indicators of Ovis2."""
    y = torch.zeros(2, 3, 4)
    alias = y
    for i in range(2):
        mask = ids == i
        if mask.any():
            y[mask] = rows[i].to(y.dtype)
    return y + alias


@case(declined="GM102-T10", inputs=((MASK, ROWS), (MASK + 5, ROWS)))
def a_masked_write_of_as_many_rows_as_are_selected(ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(2, 3, 4)
    mask = ids == 0
    if mask.any():
        y[mask] = rows
    return y
