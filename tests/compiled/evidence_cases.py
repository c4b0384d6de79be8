"""Code that looks like torch's and is not: other objects' methods, names that are bound anew, parts with effects.

Each takes a tensor, and gives all that can be seen of what it did.
"""

from __future__ import annotations

import torch
from torch import nn


class Backend:
    """Has methods that are called as a tensor's are."""

    def __init__(self):
        self.torch = torch
        self.reads = 0
        self.stored = torch.zeros(4)

    def __getitem__(self, index):
        return repr((type(index.start).__name__, type(index.stop).__name__))

    def __eq__(self, other):
        return [type(item).__name__ for item in other] == ["Tensor"]

    __hash__ = None

    @property
    def rows(self):
        self.reads += 1
        return self.stored

    @property
    def counts(self):
        self.reads += 1
        return torch.tensor([2, 1])

    def reshape(self, x, sizes):
        return x * 2

    def expand(self, x, *sizes):
        return x + 0.5, [type(size).__name__ for size in sizes]

    def split(self, sizes):
        return type(sizes).__name__

    def repeat_interleave(self, counts, dim=0):
        return counts * 2


def methods_of_others(x):
    backend, number = Backend(), torch.tensor(3)
    return x + 1, backend.reshape(number, (1,)), backend.expand(number, number + 1), backend.split(number)


def rows_repeated_by_others(x):
    counts = torch.tensor([1, 2])
    return x + 1, Backend().repeat_interleave(counts), Backend().repeat_interleave(counts, dim=1)


def a_module_as_an_attribute(x):
    """As einops has it."""
    backend = Backend()
    one = torch.tensor(5)
    return x + 1, backend.torch.reshape(one, (1,)), backend.torch.split(torch.arange(4), 2)


def items_of_others(x):
    start = torch.tensor(1)
    return x + 1, Backend()[start : start + 1], Backend() == [start], Backend() != [start]


def names_bound_anew(x, number=torch.tensor(3)):  # noqa: B008

    def int(value):
        return value * 2

    def range(value):
        return value + 0.5

    def bool(value):
        return value.sum() > 100

    torch = Backend()
    result = x + int(number) + range(number)
    if bool(x):
        result = result + 1
    return result, torch.reshape(number, (1,))


def parts_read_once(x):
    backend, size = Backend(), torch.tensor(2)
    first = backend.rows.reshape(size, 2) + x[:4].reshape(size, size)
    second = backend.rows[: size + 1]
    third = x[:2].repeat_interleave(backend.counts)
    return first, second, third, backend.reads


def owners_written_once(x):
    backend, mask = Backend(), torch.tensor([True, False, True, False])
    backend.rows[mask] = 1.5
    backend.rows[: torch.tensor(3)] += 1
    backend.rows[mask] += 2
    return x + 1, backend.stored, backend.reads


def in_a_comprehension(x):
    backend, sizes = Backend(), torch.tensor([2, 1])
    return [x[:2].reshape(size, -1) for size in sizes], [backend.rows[:size] for size in sizes], backend.reads


class Wrapped(nn.Module):
    """A tensor held by an object that hands its methods on."""

    class Proxy:
        def __init__(self, tensor):
            self.tensor = tensor

        def __getattr__(self, name):
            found = getattr(self.tensor, name)
            return lambda *args: (found(*[int(arg) for arg in args]), [type(arg).__name__ for arg in args])

    def forward(self, x):
        size = torch.tensor(2)
        return self.Proxy(x[:4]).view(size, size), x[:4].view(size, size)
