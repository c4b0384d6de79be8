"""Numbers, tests and checks of what may be a tensor though nothing says so, as libraries have it: see the docstrings."""

# ruff: noqa: RUF007  pairs as the libraries make them

from __future__ import annotations

import torch


def interpolates(t, a, b, ya, yb):
    """torchdiffeq."""
    if t == a:
        return ya * 1
    if t == b:
        return yb * 1
    return ya + (yb - ya) * ((t - a) / (b - a))


def steps(x):
    """torchdiffeq: the times are a part of the model."""
    times, found = torch.linspace(0, 1, 4), []
    assert times[0] <= times[-1]
    for begin, end in zip(times[:-1], times[1:]):
        found.append(interpolates(end, begin, end, x, x + 1))
    return torch.stack(found)


def increases(values):
    """torchsde."""
    return all(a < b for a, b in zip(values[:-1], values[1:]))


def checks_that_it_increases(x):
    times = torch.linspace(0, 1, 4)
    if not increases(times):
        raise ValueError("times must increase")
    return x * times


def asserts(x, low, high):
    assert low <= high, f"{low} is above {high}"
    return x * 2


def raises(x, low, high):
    if low > high:
        raise ValueError(f"{low} is above {high}")
    return x * 2


class Fills(torch.nn.Module):
    """ultralytics."""

    def __init__(self):
        super().__init__()
        self.stride = torch.tensor([8.0, 16.0, 32.0])

    def forward(self, x):
        return fills_with_items(x, self.stride)


def fills_with_items(x, strides):
    filled = [x.new_full((2, 4), strides[i]) for i in range(3)]
    return torch.cat([x, *filled, torch.full_like(x, strides[0])])


def reads_an_item(x, params):
    """kornia."""
    w = int(params["shape"][-1])
    return x[:, :w] * 2


def rounds(x):
    """torchvision."""
    return x * 2 ** float(torch.tensor(x.shape[0] / 32).log2().round())


def negated_in_a_call(x):
    known = torch.tensor([1, 2])
    return torch.nn.functional.dropout(x, 0.5, training=not (known > 0).all())


def is_within(inputs, left, right):
    """nflows."""
    if torch.min(inputs) < left or torch.max(inputs) > right:
        raise ValueError("outside of the domain")
    return inputs * 2


def some_within(x, left, right):
    x = x.clone()
    inside = x > 0
    x[inside] = is_within(x[inside], left, right)
    return x


def on_the_default_device(x):
    """kornia."""
    return x + torch.ones(4, device=torch.get_default_device())


def on_the_device_of_a_context(x):
    with torch.device("meta"):
        kind = torch.get_default_device().type
    return x + len(kind)


def merges(edges, x):
    """torch_geometric: which edges are left is decided one by one."""
    free, kept = [True] * 8, []
    order = torch.argsort(x[:, 0].cumsum(0) + x[:, 1])
    x = x * 2
    for edge in order.tolist():
        source = int(edges[0, edge])
        if free[source]:
            free[source] = False
            kept.append(edge)
    return x[torch.tensor(kept)] + x.sum()


def crops(x):
    """torchvision."""
    top = int(torch.randint(0, 5, size=()))
    if top < 0 or top + 4 > x.shape[0]:
        raise ValueError("outside of the image")
    return x[top : top + 4] * 2


class Heads:
    """Sizes of what has no name, in the head of a statement with blocks."""

    def __init__(self):
        self.scales = [1.0, 2.0, 3.0, 4.0]

    def __call__(self, x, n):
        if list(self.scales[:n]) == [1.0]:
            return x
        for scale in self.scales[:n]:
            x = x * scale
        while (x[:, :1] + 1).size() != (x.shape[0], n):
            return x + n
        if x.topk(1)[0].sum(1).size() != (8, n):
            x = x - n
        return x
