"""Functions of autograd that are given a tensor twice: each case takes a mask and a query that requires a gradient."""

import torch


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


def case_plain(m, q):
    return Product.apply(m, m, q) * 2


def case_in_a_loop(m, q):
    for _ in range(3):
        q = Product.apply(m, m, q)
    return q


def case_without_gradients(m, q):
    with torch.no_grad():
        return Product.apply(m, m, q)


def case_asks(m, q):
    return Asks.apply(m, m, q) * 2


def case_counts(m, q):
    return Counts.apply(m, m, q)


def case_labels(m, q):
    return Labels.apply(m, m, q)


def case_writes(m, q):
    m = m * 1
    return Writes.apply(m, m, q)


def case_gives(m, q):
    y, n = Gives.apply(m, m, q)
    return y, n, n is m


def case_thrice(m, q):
    return Product.apply(m, m, m)


def case_trained(m, q):
    return Product.apply(q, q, q)


def case_asked_later(m, q):
    k = m * 1
    y = Product.apply(m, m, q)
    return y + (1 if k is m else 2)


def case_written_later(m, q):
    """Eager's autograd refuses it; in a function of Dynamo's it would not see it."""
    m = m * 1
    y = Product.apply(m, m, q)
    m.add_(1)
    return y


def case_no_function_of_autograd(m, q):
    return m * Other().apply(m, m)
