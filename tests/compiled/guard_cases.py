"""Functions and modules with guards, as a user would write them.  Imported twice: as they are, and mended.

``EXPECT`` gives, for each, the inputs, which the guards let pass and fail, and the code of the refusal where a guard is
not mended.  "H17" is hazard 17 of the list of hazards.
"""

from __future__ import annotations

import builtins
import contextlib
import logging
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.checkpoint

logger = logging.getLogger("guard_cases")


def t(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values[0] if len(values) == 1 else list(values), dtype=dtype)


def ids(*values: int) -> torch.Tensor:
    return torch.tensor(values)


UP, DOWN, BIG = t(1.0, 2.0, 3.0), t(-1.0, -2.0, -3.0), t(90.0, 2.0, 3.0)
SIGNS = ((UP,), (DOWN,), (UP,))
SIZES = ((UP,), (BIG,), (DOWN,), (UP,))
PAIRS = ((UP, UP.clone()), (UP, DOWN), (UP, t(1.0, 2.0, float("nan"))), (UP, UP.clone()))
INDICES = ((UP, ids(0, 2)), (UP, ids(0, 7)), (UP, ids(1, 1)))


@dataclass(frozen=True)
class Expectation:
    """inputs: called with each in turn.  declined: the code of the refusal, "" for one graph; train: when training.

    inductor: worth the time of Inductor.  raises: some of the inputs are refused.
    graphs: how many, for that many shapes or dtypes among the inputs.  declined="-" breaks without a code.
    fullgraph: not so where a traced condition is a false value of Python: Dynamo refuses to trace a `raise` there.
    """

    inputs: tuple[tuple[Any, ...], ...] = SIGNS
    declined: str = ""
    train: str = ""
    inductor: bool = False
    raises: bool = True
    graphs: int = 1
    fullgraph: bool = True


EXPECT: dict[str, Expectation] = {}


def case(
    inputs: tuple[tuple[Any, ...], ...] = SIGNS,
    declined: str = "",
    train: str | None = None,
    inductor: bool = False,
    raises: bool = True,
    graphs: int = 1,
    fullgraph: bool = True,
) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        trained = declined if train is None else train
        EXPECT[function.__name__] = Expectation(inputs, declined, trained, inductor, raises, graphs, fullgraph)
        return function

    return register


# --- forms -----------------------------------------------------------------------------------------------------------


@case(inductor=True)
def if_raise(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative", 1, None)
    return x + 1


@case()
def if_not_raise(x: torch.Tensor) -> torch.Tensor:
    if not x.sum() > 0:
        raise RuntimeError("not positive")
    return x + 1


@case(inputs=SIZES)
def elif_raise(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    elif x.max() > 50:
        raise KeyError("large")
    return x + 1


@case(inputs=SIZES)
def else_raise(x: torch.Tensor) -> torch.Tensor:
    if x.max() > 50:
        raise KeyError("large")
    elif x.sum() > 0:
        pass
    else:
        raise ValueError("negative")
    return x + 1


@case(inputs=SIZES)
def several_conditions(x: torch.Tensor) -> torch.Tensor:
    if (x.dim() == 1 and x.sum() < 0) or not x.max() < 50:
        raise ValueError("bad")
    return x + 1


@case(inputs=SIZES)
def a_nested_guard(x: torch.Tensor) -> torch.Tensor:
    if x.dim() == 1:
        if x.sum() < 0:
            raise ValueError("negative")
        if x.max() > 50:
            raise ValueError("large")
    return x + 1


@case(inputs=SIZES)
def two_guards_the_first_wins(x: torch.Tensor) -> torch.Tensor:
    if x.max() < 0 or x.max() > 50:
        raise ValueError("first")
    if x.max() > 40 or x.sum() < 0:
        raise KeyError("second")
    return x + 1


@case()
def h20_assert_with_a_constant(x: torch.Tensor) -> torch.Tensor:
    assert x.sum() > 0, "not positive"
    return x + 1


@case()
def h20_assert_without_a_message(x: torch.Tensor) -> torch.Tensor:
    assert x.sum() > 0
    return x + 1


@case()
def h20_assert_with_a_text_made_of_the_shape(x: torch.Tensor) -> torch.Tensor:
    assert (x > 0).all(), f"not positive: {x.shape} {x.dtype}"
    return x + 1


@case()
def h20_assert_of_several(x: torch.Tensor) -> torch.Tensor:
    assert x.dim() == 1 and x.sum() > 0 and not (x < 0).any(), ("a", "tuple")
    return x + 1


@case()
def torch_check(x: torch.Tensor) -> torch.Tensor:
    torch._check((x > 0).all().item(), lambda: f"not positive: {x.shape}")
    return x + 1


@case()
def torch_check_without_a_message(x: torch.Tensor) -> torch.Tensor:
    torch._check(bool((x > 0).all()))
    return x + 1


@case()
def torch_check_with(x: torch.Tensor) -> torch.Tensor:
    torch._check_with(ValueError, bool((x > 0).all()), lambda: "not positive")
    return x + 1


@case()
def torch_check_index(x: torch.Tensor) -> torch.Tensor:
    torch._check_index(bool((x > 0).all()), lambda: "an index")
    return x + 1


@case(inductor=True)
def torch_check_tensor_all(x: torch.Tensor) -> torch.Tensor:
    torch._check_tensor_all(x > 0, lambda: "not all positive")
    return x + 1


@case()
def torch_assert(x: torch.Tensor) -> torch.Tensor:
    torch._assert((x > 0).all(), "not positive")
    return x + 1


@case(inputs=PAIRS)
def not_torch_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not torch.equal(x, y):
        raise ValueError("they differ")
    return x + y


@case(inputs=((UP, UP), (UP, t(1.0, 2.0)), (UP, UP.double()), (UP, UP)), graphs=9, fullgraph=False)
def torch_equal_of_other_shapes_and_dtypes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not torch.equal(x, y):
        raise ValueError("they differ", y.shape, y.dtype)
    return x + y


@case(inputs=PAIRS, inductor=True)
def five_torch_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """As the guards of MoLFormer."""
    for scale in (1, 2, 3, 4, 5):
        if not torch.equal(x * scale, y * scale):
            raise RuntimeError("the masks differ")
        x = x + 1
        y = y + 1
    return x + y


@case(inputs=((UP, UP + 1e-7), (UP, UP + 1), (UP, UP)))
def torch_allclose(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not torch.allclose(x, y, atol=1e-3):
        raise ValueError("not close")
    return x + y


@case()
def bool_of_a_tensor(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() < 0):
        raise ValueError("negative")
    return x + 1


@case(inputs=((t(0.25, 0.0),), (t(0.1, 0.0),), (t(-1.0, 0.0),)))
def item_is_compared_as_python_does(x: torch.Tensor) -> torch.Tensor:
    if x.sum().item() <= 0.1 + 1e-9:  # float32's 0.1 is more than that
        raise ValueError("small")
    return x + 1


@case(inputs=((ids(2**53, 0),), (ids(2**53, 1),)))
def item_of_a_whole_number(n: torch.Tensor) -> torch.Tensor:
    if n.sum().item() != 2**53:
        raise ValueError("another number")
    return n + 1


@case(inputs=((ids(2**53, 0),), (ids(2**53, 1),)), declined="-")
def item_of_a_whole_number_against_a_float(n: torch.Tensor) -> torch.Tensor:
    if n.sum().item() != float(2**53):
        raise ValueError("another number")
    return n + 1


@case(inputs=((ids(1, 7, 3),), (ids(1, 2, 3),), (ids(7, 7, 7),)), declined="-")
def a_count_in_a_local(n: torch.Tensor) -> torch.Tensor:
    count = (n == 7).sum().item()
    if count != 1:
        raise ValueError("one of them")
    return n + 1


@case(inputs=((t(0.3, 0.0),), (t(0.2, 0.0),)), declined="GM104-T02", train="GM104-T01")
def a_number_is_calculated_with_as_python_does(x: torch.Tensor) -> torch.Tensor:
    number = x.max().item()
    if number / 3 > 0.1:  # float32 has no number between 0.3 / 3 and 0.1
        raise ValueError("large")
    return x + 1


@case(inputs=((t(1.0, 2.0, 3.0), t(1.0, 2.0)), (DOWN, t(1.0, 2.0)), (t(1.0, 2.0, 3.0), t(1.0, 2.0))))
def a_count_of_what_a_mask_selects(x: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    mask = x > 1
    if x[mask].numel() != features.numel():
        raise ValueError("counts differ")
    return x + 1


# --- H16: the exception ----------------------------------------------------------------------------------------------


class Odd(ValueError):
    def __init__(self, what: str, *, where: int = 3) -> None:
        super().__init__(what)
        self.where = where

    def __str__(self) -> str:
        return f"{self.args[0]} at {self.where}"


class OddAssertion(AssertionError):
    pass


@case()
def h16_a_class_of_its_own(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise Odd("negative", where=x.shape[0])
    return x + 1


@case()
def h16_a_class_without_a_call(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise OddAssertion
    return x + 1


CAUSE = KeyError("the cause")


@case()
def h16_raise_from(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative") from CAUSE
    return x + 1


@case()
def h16_raise_from_a_new_one_and_none(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative") from KeyError("new")
    if x.max() < 0:
        raise ValueError("negative") from None
    return x + 1


def make_error(text: str) -> Exception:
    return Odd("made of " + text)


@case()
def h16_an_exception_made_by_a_helper(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise make_error("this")
    return x + 1


@case(declined="GM103-R16")
def h16_a_handler_around_the_guard(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    except ValueError:
        x = x + 100
    return x + 1


def complain(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x + 1


@case(declined="GM101-T10")
def h16_a_handler_in_the_caller(x: torch.Tensor) -> torch.Tensor:
    try:
        y = complain(x)
    except ValueError:
        y = x + 100
    return y + 1


@case()
def h16_a_finally_around_the_guard(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    finally:
        x = x + 100
    return x + 1


# --- H17: what the guard protects ------------------------------------------------------------------------------------


@case(inputs=INDICES, inductor=True)
def h17_an_index(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if index.max() >= x.shape[0]:
        raise IndexError(f"an index is not below {x.shape[0]}")
    return x[index] + 1


@case(inputs=INDICES)
def h17_an_embedding(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    assert index.max() < x.shape[0], f"index out of {x.shape[0]}"
    return torch.nn.functional.embedding(index, x.unsqueeze(1)) + 1


@case(
    inputs=((ids(6, 6), ids(2, 3)), (ids(6, 6), ids(2, 0))),
    # A kernel of Inductor's in torch 2.12 ends the process where it divides by zero.
    declined="GM101-T11" if torch.__version__ < "2.13" else "",
    inductor=True,
)
def h17_a_division(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if (y == 0).any():
        raise ZeroDivisionError("by zero")
    return x // y


@case(inputs=((UP, t(1.0, 2.0)), (UP, t(1.0)), (UP, t(1.0, 2.0))), inductor=True, graphs=2)
def h17_a_masked_scatter(x: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
    mask = x > 1
    if x[mask].numel() != features.numel():
        raise ValueError(f"{features.shape} features do not match")
    return x.masked_scatter(mask, features) + 1


@case(inputs=((UP, ids(0, 2)), (UP, ids(0, -9)), (UP, ids(0, 7))))
def h17_the_guard_passes_but_the_index_fails(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    if index.max() >= x.shape[0]:
        raise ValueError("out of bounds")
    return x[index] + 1


# --- H19: messages ---------------------------------------------------------------------------------------------------


@case(inputs=SIGNS)
def h19_a_message_computed_from_tensors(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(f"least {x.min().item():.3f} of {x.shape}, {x}" + " {} %s".format(x.max()) % x.dtype)
    return x + 1


@case()
def h19_a_value_as_of_the_guard(x: torch.Tensor) -> torch.Tensor:
    y = x.detach() + 0
    if y.sum() < 0:
        raise ValueError(f"now {y.tolist()}")
    y.add_(100)
    return x + y


class Text:
    """Counts how often it is asked for."""

    asked = 0

    def __str__(self) -> str:
        Text.asked += 1
        return "text"


TEXT = Text()


@case()
def h19_a_message_is_made_when_it_is_needed(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(f"bad {TEXT}")
    return x + 1


def cannot_be_called() -> str:
    raise AssertionError("the message is made although the guard holds")


@case(inputs=((UP,),), raises=False)
def h19_a_message_that_cannot_be_made(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(cannot_be_called())
    return x + 1


# --- H18: logs around a guard ----------------------------------------------------------------------------------------


@case(inputs=SIZES, inductor=True)
def h18_logs_before_the_guard_and_after_it(x: torch.Tensor) -> torch.Tensor:
    logger.warning("before")
    if x.sum() < 0:
        raise ValueError("negative")
    print("between")
    if x.max() > 50:
        raise ValueError("large")
    logger.warning("after")
    return x + 1


# --- H18, H60: the state when a guard fails --------------------------------------------------------------------------


class Counted(torch.nn.Module):
    """Has attributes of all kinds; those that count are not asked for, so that no call is compiled anew."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = [1]
        self.named = {"last": None}
        self.text = ""
        self.register_buffer("total", torch.zeros(3))

    def count(self, x: torch.Tensor, name: str) -> None:
        self.seen[0] = name
        self.named["last"] = name
        self.text = name
        self.kept = x


class h18_stores_before_and_behind(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count(x, "before")
        if x.sum() < 0:
            raise ValueError("negative", self.text)
        self.count(x + 1, "between")
        assert x.max() < 50, self.text
        self.count(x + 2, "behind")
        return x + 1


# The first of two graphs is that of a module that has no text yet.
case(inputs=SIZES, inductor=True, graphs=2)(h18_stores_before_and_behind)


class h18_writes_before_and_behind(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total += x.detach()
        if x.sum() < 0:
            raise ValueError("negative")
        self.count(x, "between")
        self.total.mul_(2)
        if x.max() > 50:
            raise KeyError("large")
        self.total = self.total + 1
        return x + self.total


case(inputs=SIZES, inductor=True, graphs=2)(h18_writes_before_and_behind)


class h18_statistics(Counted):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.isnan().any():
            raise ValueError("not a number")
        self.text = "behind"
        return self.norm(torch.stack([x, x + 1]))


case(inputs=((UP,), (t(1.0, float("nan"), 2.0),), (DOWN,)), inductor=True)(h18_statistics)


@case(inputs=SIZES)
def h18_draws(x: torch.Tensor) -> torch.Tensor:
    x = x + torch.rand(3)
    if x.sum() < 0:
        raise ValueError("negative", torch.rand(2).shape)
    x = torch.nn.functional.dropout(x * torch.randn(3))
    if x.max() > 50:
        raise ValueError("large")
    return x + torch.randint(9, (3,))


@case(inputs=SIZES)
def h18_draws_of_python(x: torch.Tensor) -> torch.Tensor:
    scale = random.uniform(1, 2)
    if x.sum() < 0:
        raise ValueError("negative")
    return x * scale + random.randint(1, 9)


class h18_in_submodules(Counted):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = h18_stores_before_and_behind(), h18_stores_before_and_behind()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.text = "outside"
        x = self.first(x)
        logger.warning("between")
        return self.second(x - 4) + torch.rand(3)


case(inputs=(*SIZES, (ids(4, 1, 1).float(),)), graphs=2)(h18_in_submodules)


class h18_under_modes(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if x.sum() < 0:
                raise ValueError("negative")
            self.total.add_(1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.total @ self.total
            if x.max() > 50:
                raise ValueError("large")
            self.text = "behind"
        return x + y


case(inputs=SIZES)(h18_under_modes)


class h18_in_a_finally(Counted):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        try:
            if x.sum() < 0:
                raise ValueError("negative")
            self.text = "behind"
        finally:
            self.seen[0] = "finally"
        return x + 1


case()(h18_in_a_finally)


# --- sides that do more than raise -----------------------------------------------------------------------------------


@case()
def s_statements_before_it_raises(x: torch.Tensor) -> torch.Tensor:
    negative = x < 0
    if negative.all():
        rows = torch.nonzero(negative).flatten().tolist()
        for row in rows[1:]:
            rows[0] += row
        raise ValueError(f"negative rows {rows}")
    return x + 1


@case(inputs=SIZES)
def s_one_of_two_exceptions(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0 or x.max() > 50:
        if x.max().item() > 50:
            x = x * 2
            raise KeyError("large", x.max().item())
        raise ValueError("negative")
    return x + 1


class s_all_but_one_side_raises(Counted):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.text = "before"
        if x.sum() > 0:
            x = self.layer(x)
            self.text = "behind"
        else:
            self.count(x, "failed")
            raise ValueError("negative", self.seen)
        return x + torch.rand(3)


case()(s_all_but_one_side_raises)


def describe(x: torch.Tensor) -> str:
    return f"{x.shape[0]} numbers, the least {x.min().item()}"


@case()
def s_a_message_made_by_a_helper(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError(describe(x))
    assert x.max() < 50, describe(x)
    return x + 1


@case()
def s_a_text_of_tensors_under_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        if x.sum() < 0:
            raise ValueError(f"the least is {x.min()}")
    return x + 1


# --- H22: where the guard stands -------------------------------------------------------------------------------------


@case()
def h22_inlined_helpers(x: torch.Tensor) -> torch.Tensor:
    return complain(x) + complain(x + 1)


class Guarded(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)
        self.limit = 50

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.detach().max() > self.limit:
            raise ValueError(f"above {self.limit}", self.layer.in_features)
        return self.layer(x)


class h22_in_submodules(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(Guarded(), Guarded())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


case(inputs=((UP,), (BIG,), (UP,)), inductor=True)(h22_in_submodules)


@case(inputs=((UP,), (DOWN,)))
def h22_in_a_checkpoint(x: torch.Tensor) -> torch.Tensor:
    return torch.utils.checkpoint.checkpoint(complain, x, use_reentrant=False)


@case(declined="GM102-T07")
def h22_under_grad(x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda y: complain(y).sum())(x)


@case(declined="GM102-T07", inputs=((torch.ones(2, 3),),))
def h22_under_vmap(x: torch.Tensor) -> torch.Tensor:
    return torch.func.vmap(complain)(x)


def h22_in_a_branch_of_cond(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > -100, complain, torch.neg, (x,))


def produce(x: torch.Tensor) -> Iterator[torch.Tensor]:
    for index in range(2):
        if x.sum() < 0:
            raise ValueError("negative", index)
        yield x + index


@case(declined="GM103-R10")
def h22_in_a_generator(x: torch.Tensor) -> torch.Tensor:
    total = x
    for item in produce(x):
        total = total + item
    return total


@case(inputs=((UP,), (DOWN,), (BIG,)))
def h22_in_a_loop(x: torch.Tensor) -> torch.Tensor:
    for index in range(3):
        if x.sum() < 0 or x.max() > 91:
            raise ValueError("round", index)
        x = x + 1
    return x


@case()
def h22_in_a_closure(x: torch.Tensor) -> torch.Tensor:
    name = "closed over"

    def inner(y: torch.Tensor) -> torch.Tensor:
        if y.sum() < 0:
            raise ValueError(name, y.shape)
        return y + 1

    return inner(x)


@case(declined="GM103-R16")
def h22_in_a_with_that_suppresses(x: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            if x.sum() < 0:
                raise ValueError("negative")
    except ValueError:
        return x
    return x + 1


# --- what is decided is decided where it stands ------------------------------------------------------------------------

LARGE = ((t(10.0, 20.0, 30.0),), (t(-1.0, 20.0, 30.0),), (t(1.0, 2.0, 3.0),))


@case(inputs=LARGE, inductor=True)
def h18_a_condition_that_is_written_later(x: torch.Tensor) -> torch.Tensor:
    found = (x < 0).any()
    if found:
        raise ValueError("negative")
    found |= (x > 10).any()
    if found:
        raise KeyError("large")
    return x + 1


@case(inputs=((t(1.0, 2.0, 3.0),), (torch.ones(3),)), raises=False, declined="-")
def h18_a_number_that_is_written_later(x: torch.Tensor) -> torch.Tensor:
    count = (x > 0).sum()
    number = count.item()
    count += 10
    if number > 5:
        raise ValueError("many", number)
    return x + count


@case(inputs=((UP, ids(0, 2)), (UP, ids(0, 2))), raises=False)
def h18_a_flag_that_is_set_after_it_was_looked_at(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    started = (index < 0).any()
    if started.reshape(()):
        raise ValueError("again")
    started.fill_(True)
    return x + started


HALVES = ((t(1.0, 2.0, 3.0, dtype=torch.float16),), (t(-200.0, -200.0, -200.0, dtype=torch.float16),))


@case(inputs=HALVES, inductor=True)
def half_precision_written_before_it_is_decided_on(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.add_(100)
    if (y > 50).any():
        raise ValueError("large")
    return y


@case(inputs=HALVES)
def half_precision_copied_and_written_before_it_is_decided_on(x: torch.Tensor) -> torch.Tensor:
    y = x.float() * 1
    y.add_(100)
    if y.max() > 50:
        raise ValueError("large")
    return y


@case(inputs=HALVES, raises=False)
def half_precision_cut_off_before_it_is_decided_on(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.clamp_(max=1)
    if (y > 3).any():
        raise ValueError("large")
    return y


class Normed(torch.nn.Module):
    """Between half precision and the decision stands a module that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x.half().float()[None].expand(4, 3))
        if torch.isnan(y).any():
            raise ValueError("nan")
        return y


# --- texts with tensors in them, under a mode of torch that ends before the graph does --------------------------------


@case()
@torch.no_grad()
def a_text_under_a_decorator(x: torch.Tensor) -> torch.Tensor:
    n = x.sum()
    if n < 0:
        raise ValueError(f"{n}, {n.item()} of {x.shape}")
    return x * 2


@case()
def a_text_in_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        n = x.sum()
        assert n > 0, f"{n.item():.2f} of {tuple(x.size())}"
    return x * 2


@case()
@torch.inference_mode()
def arguments_in_inference_mode(x: torch.Tensor) -> torch.Tensor:
    n = x.sum()
    if n < 0:
        raise ValueError("negative", n, [n * 2])
    return x * 2


@case(inductor=True)
def a_text_that_computes_in_autocast(x: torch.Tensor) -> torch.Tensor:
    rows = x.detach().reshape(1, 3)
    with torch.autocast("cpu", torch.bfloat16):
        if (x < 0).any():
            raise ValueError(f"{torch.matmul(rows, rows.reshape(3, 1)).mul(1.01)}")
    return x * 2


@case()
def a_text_that_computes_with_autocast_off(x: torch.Tensor) -> torch.Tensor:
    rows = x.detach().reshape(1, 3)
    with torch.autocast("cpu", torch.bfloat16), torch.autocast("cpu", enabled=False):
        torch._check_value(not (x < 0).any(), lambda: f"{torch.matmul(rows, rows.reshape(3, 1)).mul(1.01)}")
    return x * 2


@torch.no_grad()
def _checked(x: torch.Tensor) -> torch.Tensor:
    n = x.sum()
    with torch.enable_grad(), contextlib.nullcontext():
        if n < 0:
            raise ValueError(f"{n} {[n]}")
    return n


@case()
def a_text_in_a_decorated_function(x: torch.Tensor) -> torch.Tensor:
    return x * _checked(x.detach())


# --- handlers that are easily overlooked ---------------------------------------------------------------------------------


def _negative(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x


def _suppressed(x: torch.Tensor) -> torch.Tensor:
    with contextlib.suppress(ValueError):
        _negative(x)
    return x + 1


@case(declined="GM101-T05")
def h16_suppressed_in_a_function(x: torch.Tensor) -> torch.Tensor:
    return _suppressed(x) * 2


@case(declined="GM101-T05")
def h16_suppressed_inside_a_try(x: torch.Tensor) -> torch.Tensor:
    try:
        with contextlib.suppress(ValueError):
            _negative(x)
    finally:
        x = x + 1
    return x


@case(declined="GM101-T10")
def h16_a_return_in_a_finally(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    finally:
        return x + 1  # noqa: B012


@case(declined="GM101-T10")
def h16_caught_as_one_of_many(x: torch.Tensor) -> torch.Tensor:
    try:
        y = _negative(x)
    except (torch.cuda.OutOfMemoryError, torch.fx.proxy.TraceError, torch.jit.Error, builtins.ValueError):
        y = x + 100
    return y * 2


@case(declined="GM101-T10")
def h16_a_guard_in_the_finally_of_another(x: torch.Tensor) -> torch.Tensor:
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    finally:
        if x.max() < 0:
            raise KeyError("all")
    return x


@case(declined="GM101-T11")
def h16_a_caught_assert_of_not(x: torch.Tensor) -> torch.Tensor:
    try:
        assert not (x < 0).any()
    except AssertionError:
        return x * 0
    return x + 1


@case(declined="GM101-T11", inputs=PAIRS)
def h16_a_caught_assert_of_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    try:
        assert torch.equal(x, y), "unequal"
    except AssertionError as error:
        return x * len(str(error))
    return x + 1


@case(declined="GM101-T11")
def h16_a_caught_assert_of_an_item(x: torch.Tensor) -> torch.Tensor:
    with contextlib.suppress(AssertionError):
        assert x.min().item() > 0
        x = x + 1
    return x


def _asserts(x: torch.Tensor) -> torch.Tensor:
    assert len(x) > 5 or not (x < 0).any()
    return x + 1


@case(declined="GM101-T11")
def h16_an_assert_that_the_caller_catches(x: torch.Tensor) -> torch.Tensor:
    try:
        return _asserts(x)
    except AssertionError:
        return x * 0


@case(declined="GM101-T11", inputs=((DOWN, t(1.0, 2.0)),))
def an_assert_before_what_cannot_be_traced(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    assert not (x < 0).any(), "negative"
    return x * y


class _Catching:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> bool:
        return True


@case(declined="GM101-T11")
def h16_an_assert_in_a_context_manager_that_catches(x: torch.Tensor) -> torch.Tensor:
    with _Catching():
        assert not (x < 0).any()
        x = x + 1
    return x


class Large(Counted):
    """H60: writes to so much memory that no copy is made of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("large", torch.zeros(1 << 19))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            raise ValueError("negative")
        self.count(x, "behind")
        self.large.add_(1)
        return x + 1


class Filled:
    """H57: a guard fails in the first calls."""

    def __init__(self) -> None:
        self.filled, self.few = torch.tensor(0), {"at least": 2}

    def simply(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if self.filled < self.few["at least"]:
            raise RuntimeError("few")
        return y[: self.few["at least"]]

    def in_a_helper(self, x: torch.Tensor) -> torch.Tensor:
        self._check()
        return x * 2

    def _check(self) -> None:
        if not self.filled >= 2:
            count = int(self.filled)
            raise RuntimeError(f"few: {count}")

    def of_a_number(self, x: torch.Tensor) -> torch.Tensor:
        if self.filled.item() > 1:
            return x * 2
        raise RuntimeError("few")

    def by_no_name(self, x: torch.Tensor) -> torch.Tensor:
        """Nothing in the text says that it is a tensor, but what is known of it while it is traced."""
        y = x * 2
        limit = self.few["at least"]
        if vars(self)["filled"] < limit:
            raise RuntimeError("few")
        return y


class Caught:
    """Asserts that handlers of the program's catch."""

    @staticmethod
    def here(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        try:
            assert (x > 0).all(), "negative"
        except AssertionError as error:
            y = y + len(str(error))
        return y + 1

    @staticmethod
    def by_the_caller(x: torch.Tensor) -> torch.Tensor:
        try:
            return Caught._asserts(x * 2)
        except AssertionError:
            return x - 1

    @staticmethod
    def _asserts(x: torch.Tensor) -> torch.Tensor:
        assert x.min() > 0
        return x + 1

    @staticmethod
    def by_a_context(x: torch.Tensor) -> torch.Tensor:
        with contextlib.suppress(AssertionError):
            assert (x > 0).all()
            x = x + 10
        return x * 2


class Stateful(torch.nn.Module):
    """H18: state is written before the guard and after it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.before, self.after = 0, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.before += 1
        x.add_(1)
        if x.sum() < 1:
            raise ValueError("negative")
        self.after += 1
        x.add_(1)
        return x + 1
