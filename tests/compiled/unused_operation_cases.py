"""Operations whose results nothing uses: what they draw, and where they fail, stays as in eager."""

from __future__ import annotations

import logging

import torch
import torch.utils.checkpoint
from programs import checkpointed, of, of_each, steps, trained

logger = logging.getLogger("unused_operation_cases")
silent = logging.getLogger("unused_operation_cases.silent")
silent.setLevel(logging.ERROR)
PLACES = (torch.tensor([1]), torch.tensor([9]))
ALONE, TRAINED = ((of(1),),), ((trained(3),),)
PLACED = tuple((of(1), place) for place in PLACES)
PLACED_AND_TRAINED = tuple((trained(3), place) for place in PLACES)
COUNTS = ((of(1), 2), (of(1), 3))
MATRICES = ((of(1), torch.eye(2)), (of(1), torch.eye(2) * float("nan")))


def case_draws_that_nothing_uses(C):
    """What a decided test has drawn stays drawn: AOTAutograd takes out what nothing uses."""

    def decided(x):
        if torch.rand(2).sum() > 3 or len(x) > 0:
            x = x + 1
        return x + torch.rand(3)

    def named(x):
        drawn = torch.rand(2).sum() > 3
        if drawn and len(x) == 0:
            x = x + 1
        return x + torch.rand(3)

    def in_an_expression(x):
        y = x if (torch.rand(2) > 2).any() and len(x) == 0 else x * 2
        return y + torch.rand(3)

    def told_to_nobody(x):
        silent.debug("%s", torch.rand(2))
        return x + torch.rand(3)

    return of_each(C, [decided, named, in_an_expression, told_to_nobody])


def case_failures_that_nothing_uses(C):
    """An index out of bounds, no elements, a division by zero: eager raises, whether or not the test decides."""

    def out_of_bounds(x):
        if x[torch.tensor([7])].sum() > 3 or len(x) > 0:
            x = x + 1
        return x

    def asserts(x):
        assert x.index_select(0, torch.tensor([7])).sum() > 3 or len(x) > 0
        return x

    def has_no_elements(x):
        if x[:0].min() <= 1 or len(x) > 0:
            x = x + 1
        return x

    def divides(x):
        if (x.long() // torch.tensor(0)).sum() > 3 or len(x) > 0:
            x = x + 1
        return x

    def told_to_nobody(x):
        silent.debug("%s", x[torch.tensor([7])])
        return x * 2

    return [
        type(each).__name__ if isinstance(each, torch.Tensor) else each[0]
        for each in of_each(C, [out_of_bounds, asserts, has_no_elements, divides, told_to_nobody])
    ]


@steps(PLACED)
def unused_setitem(x, i):
    z = torch.zeros(3)
    z[i] = 1
    if z.sum() > 1 or len(x) > 0:
        x = x * 2
    return x


@steps(PLACED)
def unused_scattered(x, i):
    z = torch.zeros(3)
    z.scatter_(0, i, 1.0)
    if z.sum() > 1:
        pass
    return x + 1


@steps(PLACED)
def unused_out(x, i):
    z = torch.zeros(1)
    torch.gather(x, 0, i, out=z)
    if z.sum() > 1 or True:
        x = x * 2
    return x


@steps(COUNTS)
def unused_count(x, i):
    z = torch.zeros(3)
    z[torch.arange(3) < i] = torch.ones(2)
    if z.sum() > 5 or len(x) > 0:
        x = x + 1
    return x


@steps(PLACED)
def unused_silent_list(x, i):
    silent.debug("%s", [x[i]])
    return x * 2


@steps(PLACED)
def unused_silent_dict(x, i):
    silent.debug("%(a)s", {"a": x[i]})
    return x * 2


@steps(PLACED)
def unused_silent_written(x, i):
    y = x.clone()
    y[i] = 0
    silent.debug("%s", y)
    return x * 2


@steps(ALONE)
def unused_tuple_draw(x):
    y, _ = torch.nn.functional.fractional_max_pool2d(torch.ones(1, 1, 6, 6), 2, output_size=(2, 2), return_indices=True)
    if y.sum() > 300 or len(x) > 0:
        x = x + 1
    return x + torch.rand(3)


@steps(MATRICES)
def unused_tuple_fails(x, m):
    _, s, _ = torch.linalg.svd(m)
    if s.max() > 300:
        pass
    return x + 1


class DrawsInTheForwardPass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if torch.rand(2).sum() > 3 or len(x) > 0:
            x = x * 2
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 6


@steps(TRAINED)
def unused_function_draws(x):
    return DrawsInTheForwardPass.apply(x) + torch.rand(3)


class DrawsB(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        if torch.rand(2).sum() > 3 or len(g) > 0:
            g = g * 2
        return g * torch.rand(3)


@steps(TRAINED)
def unused_backward_draws(x):
    return DrawsB.apply(x)


class DrawsForNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        g = g * torch.rand(3)
        torch.rand(2)
        return g


@steps(TRAINED)
def unused_backward_draws_for_nothing(x):
    x = DrawsForNothing.apply(x)
    if x.sum() > 0:
        x = x + 1
    return x


class Index(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, i):
        if x[i].sum() > 3 or len(x) > 0:
            x = x * 2
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 6, None


@steps(PLACED_AND_TRAINED)
def unused_function_index(x, i):
    return Index.apply(x, i)


@steps(TRAINED)
def unused_checkpoint_draws(x):
    def g(x):
        silent.debug("%s", torch.rand(2))
        return x * 2

    return torch.utils.checkpoint.checkpoint(g, x, use_reentrant=False) + torch.rand(3)


@steps(PLACED_AND_TRAINED)
def unused_checkpoint_index(x, i):
    def g(x, i):
        if x[i].sum() > 3 or len(x) > 0:
            x = x + 1
        return x * 2

    return torch.utils.checkpoint.checkpoint(g, x, i, use_reentrant=False)


@steps(ALONE)
def unused_func_grad_draws(x):
    def g(x):
        if torch.rand(2).sum() > 3 or len(x) > 0:
            x = x * 2
        return (x * 3).sum()

    return torch.func.grad(g)(x) + torch.rand(3)


@steps(PLACED)
def unused_func_grad_index(x, i):
    def g(x):
        if x[i].sum() > 3 or len(x) > 0:
            x = x * 2
        return (x * 3).sum()

    return torch.func.grad(g)(x)


@steps(PLACED)
def unused_float8(x, i):
    silent.debug("%s", x.to(torch.float8_e4m3fn)[i])
    return x + 1


@steps(PLACED)
def unused_item_of_what_fails(x, i):
    silent.debug("%s", x.gather(0, i)[0])
    return x * 2


@steps(PLACED)
def unused_item_of_an_item(x, i):
    silent.debug("%s", x[i][0])
    return x * 2


@steps(PLACED)
def unused_item_in_a_test(x, i):
    if x.gather(0, i)[0] or len(x) > 0:
        x = x + 1
    return x


@steps(PLACED)
def unused_item_in_a_test2(x, i):
    if x[i][0] or len(x) > 0:
        x = x + 1
    return x


@steps(PLACED)
def unused_item_in_a_test3(x, i):
    if x[i] or len(x) > 0:
        x = x + 1
    return x


@steps(PLACED)
def unused_but_for_its_type(x, i):
    drawn = torch.rand(3)
    logger.warning("a")
    return x.type_as(drawn) + torch.rand(3)


@steps(PLACED)
def unused_but_for_its_shape(x, i):
    drawn = torch.rand(3)
    if x.sum() > 100:
        raise ValueError(f"{x}")
    return x.expand_as(drawn) + torch.rand(3)


@steps(PLACED)
def unused_but_for_where_it_is(x, i):
    z = x[i]
    if z.sum() > 100 or len(x) == 3:
        x = x + 1
    return x.to(z)


@steps(PLACED)
def unused_as_it_is_overwritten(x, i):
    x.add_(torch.rand(3))
    logger.warning("a")
    torch.ones(3, out=x)
    return torch.rand(3)


@steps(PLACED)
def unused_of_a_branch(x, i):
    drawn = torch.cond(x.sum() > 1, lambda x: x * torch.rand(3), lambda x: x * 2, (x,))
    silent.info("a %s", drawn.sum() > 1)
    return x + torch.rand(3)


@torch.compiler.allow_in_graph
def draws(x):
    return x * torch.rand(3)


@steps(PLACED)
def unused_of_an_unknown_function(x, i):
    silent.info("a %s", draws(x).sum())
    return x + torch.rand(3)


@steps(PLACED)
def unused_of_a_checkpoint(x, i):
    silent.info("a %s", checkpointed(lambda x, i: x[i], x, i).sum())
    return x + 1


@steps(PLACED)
def unused_by_a_transform(x, i):
    silent.info("a %s", torch.vmap(lambda x, i: x[i], in_dims=(0, None))(x[None], i))
    return x + torch.rand(3)


@steps(PLACED)
def unused_without_a_kernel(x, i):
    if (torch.zeros(4, dtype=torch.uint16)[0] > 9) or len(x) > 0:
        x = x + 1
    return x
