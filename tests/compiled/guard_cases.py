"""Functions and modules with guards, in each form, and where they stand.  Imported twice: as they are, and mended.

``EXPECT`` gives what is expected of each; "H7" is hazard 7 of the list of hazards.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.utils.checkpoint
from expectations import BIG, COMPARED, DOWN, GUARDED, SIZES, UP, Expectation, ids, register, t

EXPECT: dict[str, Expectation] = {}
case = register(EXPECT, inputs=GUARDED, raises=True, graphs=1)


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


@case(inputs=COMPARED)
def not_torch_equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not torch.equal(x, y):
        raise ValueError("they differ")
    return x + y


@case(inputs=((UP, UP), (UP, t(1.0, 2.0)), (UP, UP.double()), (UP, UP)), graphs=9, fullgraph=False)
def torch_equal_of_other_shapes_and_dtypes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not torch.equal(x, y):
        raise ValueError("they differ", y.shape, y.dtype)
    return x + y


@case(inputs=COMPARED, inductor=True)
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


@case(inputs=((ids(2**53, 0),), (ids(2**53, 1),)), raises=True)
def item_of_a_whole_number_against_a_float(n: torch.Tensor) -> torch.Tensor:
    if n.sum().item() != float(2**53):
        raise ValueError("another number")
    return n + 1


@case(inputs=((ids(1, 7, 3),), (ids(1, 2, 3),), (ids(7, 7, 7),)), raises=True)
def a_count_in_a_local(n: torch.Tensor) -> torch.Tensor:
    count = (n == 7).sum().item()
    if count != 1:
        raise ValueError("one of them")
    return n + 1


@case(inputs=((t(0.3, 0.0),), (t(0.2, 0.0),)), raises=True)
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


def complain(x: torch.Tensor) -> torch.Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
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
