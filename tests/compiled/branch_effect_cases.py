"""Sides of a branch that have effects, that may fail, and that cost too much.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

import logging
from typing import Any

import torch
from expectations import DOWN, FAILS, PAIRS, UP, Expectation, register, t

logger = logging.getLogger("branch_effect_cases")
EXPECT: dict[str, Expectation] = {}
case = register(EXPECT)


class WithLast(torch.nn.Module):
    """Has an attribute for a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(3)


def observe(least: torch.Tensor) -> None:
    """Writes to the tensor by an operation of torch that no name gives away."""
    on, one, zero = torch.ones(1, dtype=torch.int64), torch.ones(1), torch.zeros(1, dtype=torch.int32)
    torch.fused_moving_avg_obs_fake_quant(torch.arange(6.0) + 7, on, on, least, one + 8, one, zero, 0.5, 0, 255, 0)


# --- H7: effects in a side -------------------------------------------------------------------------------------------


@case(train="GM102-T10", inputs=PAIRS)
def h7_a_write_in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y.add_(1)
    return x + y


@case(train="GM102-T10", inputs=PAIRS)
def h7_a_write_of_an_element(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y[0] = 7
    return x + y


@case()
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


@case()
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


case()(h7_an_attribute_read_back_by_getattr)


class h7_an_attribute_through_another_name(WithLast):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        other, z = self, x.detach()
        y = z
        if z.sum() > 0:
            self.last = z + 1
            y = z + other.last
        return x + y


case()(h7_an_attribute_through_another_name)


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


case()(h7_two_names_of_one_object)


# --- H8, H9, H12: what may not be run ahead of time ------------------------------------------------------------------


def inverted(h: torch.Tensor) -> torch.Tensor:
    if h.sum() > 0:
        h = torch.linalg.eigvalsh(torch.diag(h))
    return h * 2


@case(declined="GM102-T04", inputs=((UP,), (DOWN,)))
def what_may_fail_in_each_of_many_layers(x: torch.Tensor) -> torch.Tensor:
    for _ in range(8):
        x = inverted(x) + 1
    return x


@case()
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


case()(h8_dropout)


@case(declined="GM102-T11")
class h8_random_numbers_with_gradients(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            if x.sum() > 0:
                x = torch.nn.functional.gumbel_softmax(x * self.scale)
            return x + 1


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


case(declined="GM102-T10")(h7_a_property_updates_statistics)


@case(inputs=((t(1.0, 1.0), t(0, 1, dtype=torch.int64)), (t(-1.0, 1.0), t(0, 9, dtype=torch.int64))))
def h9_an_index_out_of_bounds(x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    if ids.max() < 2:
        y = torch.gather(x, 0, ids)
    else:
        y = x + 1
    return y


@case(inputs=((t(1.0, 1.0), t(0, 1, dtype=torch.int64)), (t(-1.0, 1.0), t(0, 9, dtype=torch.int64))))
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


@case(declined=FAILS, inputs=PAIRS)
def h9_shapes_that_do_not_fit(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.sum() > 1000:
        z = x + y.repeat(2)
    else:
        z = x + y
    return z


@case(declined="GM102-T02", inputs=((torch.eye(2),), (-torch.eye(2),)))
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


case()(h12_a_layer_in_a_side)


@case(inputs=((torch.ones(3, 3),), (-torch.ones(3, 3),)))
def h12_a_matrix_product_in_a_side(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        x = x.matmul(x)
    return x + 1


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


@case()
def a_log_of_a_number(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        print("value", x.sum().item())
        y = x + 1
    return y


@case()
def a_log_of_a_list(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        print("values", x.tolist())
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


@case(inputs=((MASK, ROWS), (MASK + 5, ROWS), (MASK * 0 + 1, ROWS)), inductor=True, train="GM102-T11")
def masked_writes_in_a_loop(ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """As the visual indicators of Ovis2."""
    y = torch.zeros(2, 3, 4)
    alias = y
    for i in range(2):
        mask = ids == i
        if mask.any():
            y[mask] = rows[i].to(y.dtype)
    return y + alias


@case(declined="GM102-T04", inputs=((MASK, ROWS), (MASK + 5, ROWS)))
def a_masked_write_of_as_many_rows_as_are_selected(ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(2, 3, 4)
    mask = ids == 0
    if mask.any():
        y[mask] = rows
    return y
