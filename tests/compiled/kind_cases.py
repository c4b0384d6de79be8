"""A program for each kind of graph break of PyTorch's registry that a rule mends (`bench.kinds`, docs/breaks.md).

The statement before the `return` is what a function is about.
"""

from __future__ import annotations

import logging
import math
import sys
import warnings

import torch

logger = logging.getLogger(__name__)
WEIGHT = torch.nn.Parameter(torch.ones(2, 4))


def warns(x):
    warnings.warn("careful")
    return x * 2


def is_equal(x):
    if torch.equal(x, x.abs()):
        x = x * 2
    return x + 1


def is_near(x):
    if torch.allclose(x, x.round(), atol=0.1):
        x = x * 2
    return x + 1


def makes_a_range(x):
    places = torch.arange((x > 0).any(1).sum().clamp(1, 3))
    return places.sum() + x


def takes_a_row(x):
    row = x[x[0, 0].long().clamp(0, 1)]
    return row * 2 + x


def selects(x):
    chosen = x[x > 0]
    return chosen.sum() + x


def counts_places(x):
    count = (x > 0).nonzero().shape[0]
    return x * count


def repeats(x):
    rows = x.repeat_interleave((x.sum(1) > 0).long() + 1, dim=0)
    return rows.sum() + x


def finds_distinct(x):
    kinds = (x > 0).unique().numel()
    return x * kinds


def prints(x):
    print("sum", x.sum(), sep=": ")
    return x * 2


def prints_to_stderr(x):
    print("seen", x.shape, file=sys.stderr)
    return x * 2


def lists(x):
    scales = torch.tensor([1.5, 2.5]).tolist()
    return x * scales[0]


def reads_a_number(x):
    count = int((x > 0).any())
    return x[:, : count + 1] * 2


def slices(x):
    part = x[: (x > 0).any(1).sum().clamp(0, 2)]
    return part.sum() + x


def checks(x):
    torch._check(bool((x > -1e9).all()), lambda: "low")
    return x * 2


def asks_for_a_gradient(x):
    hidden = x[:, None]
    hidden.requires_grad_()
    return torch.nn.functional.linear(hidden, WEIGHT)


def branches(x):
    if x.sum() > 0:
        x = x * 2
    return x + 1


def raises(x):
    if x.sum() < -1e9:
        raise ValueError(f"below: {x.sum()}")
    return x + 1


def asserts(x):
    assert not torch.isnan(x).any(), "nan"
    return x + 1


def chooses(x):
    y = x * 2 if x.sum() > 0 else x - 1
    return y + 1


def chains(x):
    if 0 < x.sum() < 50:
        x = x * 2
    return x + 1


def asks_any(x):
    if any(x[0] > 3):
        x = x * 2
    return x + 1


def warns_if_large(x):
    if x.sum() > 1e9:
        warnings.warn("large")
    return x * 2


def sets_requires_grad(x):
    hidden = x[:, None]
    hidden.requires_grad = True
    return torch.nn.functional.linear(hidden, WEIGHT)


def scaled_by(x, **options):
    for name, value in sorted(options.items()):
        x = x * value + len(name)
    return x


def sorted_options(x):
    x = scaled_by(x, b=x, a=x + 1)
    return x


def is_on_the_default_device(x):
    added = torch.ones(4, device=torch.get_default_device())
    return x + added


def rounds_down(x):
    scale = math.floor(torch.tensor(x.shape[0] / 3).log2())
    return x * scale


def one_hot(x):
    chosen = torch.nn.functional.one_hot(x.argmax(1))
    return chosen.sum() + x


def logs(x):
    logger.info("seen %s", x.shape)
    return x * 2


def logs_a_value(x):
    logger.warning(f"the sum is {x.sum():.3f}")
    return x * 2


def logs_by_a_lookup(x):
    logging.getLogger("kinds").info("seen %s", x.shape)
    return x * 2


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, x):
        ctx.save_for_backward(a, b)
        return x * a + b

    @staticmethod
    def backward(ctx, grad):
        a, _ = ctx.saved_tensors
        return None, None, grad * a


def applies_twice(x):
    mask, query = (x > 0).float(), x * WEIGHT[0]
    product = Product.apply(mask, mask, query)
    return product


def calls_experts(x):
    chosen, out = x.argmax(1), torch.zeros_like(x)
    for number in range(4):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        out.index_add_(0, rows, x[rows] * number)
    return out
