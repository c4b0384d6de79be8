"""What a branch can select of, its test, the names that it binds, and where control goes.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

from typing import Any

import torch
from expectations import DOWN, UP, Expectation, register, t

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT)


# --- H3, H4: what is merged ------------------------------------------------------------------------------------------


@case()
def h3_different_python_numbers(x: torch.Tensor) -> torch.Tensor:
    scale = 1.5
    if x.sum() > 0:
        scale = 2.5
    return x * scale


@case(declined="GM102-T02", train="GM102-T02")
def h3_different_dtypes(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.sum() > 0 else x


@case()
def h3_an_int_and_a_float(x: torch.Tensor) -> Any:
    return x, (1 if x.sum() > 0 else 1.0)


@case()
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


# --- H10: names ------------------------------------------------------------------------------------------------------


@case(declined="-")
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


@case(declined="-", inputs=((UP,), (DOWN,)))
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


@case(declined="GM102-T11")
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


@case()
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


# --- H14: where control goes -----------------------------------------------------------------------------------------


@case()
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


@case()
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
