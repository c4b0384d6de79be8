"""Functions of autograd that are given a tensor twice: one graph where nobody can tell the two apart."""

import torch
from programs import of, steps, trained

ONES, COMPLEX = ((of(1), trained(3)),), ((of(1).to(torch.complex64), trained(3)),)
# A mask, and a query that requires a gradient.
MASKS = [torch.arange(6.0).reshape(2, 3) + call for call in range(2)]
QUERIES = [(mask, (mask * 2 - 1).requires_grad_()) for mask in MASKS]


class Product(torch.autograd.Function):
    """As Yoso has it: the mask of the queries is that of the keys."""

    @staticmethod
    def forward(ctx, a, b, q):
        ctx.save_for_backward(a, b, q)
        return q * a + b

    @staticmethod
    def backward(ctx, g):
        a, b, _ = ctx.saved_tensors
        return None, None, g * a * b


class Asks(Product):
    @staticmethod
    def forward(ctx, a, b, q):
        ctx.save_for_backward(a, b, q)
        return q * a + (b if a is b else b * 5)


class Counts(Product):
    @staticmethod
    def forward(ctx, a, b, q):
        ctx.save_for_backward(a, b, q)
        return q * len({a: 1, b: 2})


class Labels(Product):
    @staticmethod
    def forward(ctx, a, b, q):
        a.label = 3
        ctx.save_for_backward(a, b, q)
        return q * getattr(b, "label", 1)


class Writes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, q):
        a.mul_(3)
        ctx.mark_dirty(a)
        ctx.save_for_backward(a, b, q)
        return q * a + b, a

    @staticmethod
    def backward(ctx, g, _):
        a, b, _ = ctx.saved_tensors
        return None, None, g * a * b


class Gives(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, q):
        ctx.save_for_backward(a, b, q)
        return q * a, b

    @staticmethod
    def backward(ctx, g, _):
        a, b, _ = ctx.saved_tensors
        return None, None, g * a * b


class Other:
    def apply(self, a, b):
        return a is b


@steps(QUERIES, one_graph=True)
def plain(m, q):
    return Product.apply(m, m, q) * 2


@steps(QUERIES, one_graph=True)
def in_a_loop(m, q):
    for _ in range(3):
        q = Product.apply(m, m, q)
    return q


@steps(QUERIES, one_graph=True)
def without_gradients(m, q):
    with torch.no_grad():
        return Product.apply(m, m, q)


@steps(QUERIES)
def asks(m, q):
    return Asks.apply(m, m, q) * 2


@steps(QUERIES)
def counts(m, q):
    return Counts.apply(m, m, q)


@steps(QUERIES)
def labels(m, q):
    return Labels.apply(m, m, q)


@steps(QUERIES)
def writes(m, q):
    m = m * 1
    return Writes.apply(m, m, q)


@steps(QUERIES)
def gives(m, q):
    y, n = Gives.apply(m, m, q)
    return y, n, n is m


@steps(QUERIES)
def thrice(m, q):
    return Product.apply(m, m, m)


@steps(QUERIES)
def trained(m, q):
    return Product.apply(q, q, q)


@steps(QUERIES)
def asked_later(m, q):
    k = m * 1
    y = Product.apply(m, m, q)
    return y + (1 if k is m else 2)


@steps(QUERIES)
def written_later(m, q):
    """Eager's autograd refuses it; in a function of Dynamo's it would not see it."""
    m = m * 1
    y = Product.apply(m, m, q)
    m.add_(1)
    return y


@steps(QUERIES)
def no_function_of_autograd(m, q):
    return m * Other().apply(m, m)


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        b.add_(1)
        ctx.mark_dirty(b)
        return b, a * c

    @staticmethod
    def backward(ctx, g, h):
        return None, None, h


@steps(ONES)
def marked_as_dirty(x, w):
    return Dirty.apply(x, x, w)


@steps(COMPLEX)
def of_complex_numbers(x, w):
    return Product.apply(x, x, w)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        return c * 2

    @staticmethod
    def backward(ctx, h):
        return None, h


@steps(ONES)
def with_too_few_gradients(x, w):
    return Wrong.apply(x, x, w)
