"""Strides, layouts and kinds of memory of what a branch selects."""

from __future__ import annotations

import torch
from programs import TAKEN, of, rows


def selects(a, b, t):
    if t.sum() > 0:
        y = a
    else:
        y = b
    return y


def selects_a_stride(x, t):
    if t.sum() > 0:
        y = x[::2]
    else:
        y = x[1::2]
    return y, y.stride(), y.is_contiguous()


def case_selects_strides(C):
    long, compiled = torch.arange(6.0), C(selects)
    pairs = [(long[::2], long[1::2]), (long[:1].expand(3, 2), long[1:2].expand(3, 2))]
    found = [compiled(*pair, of(value)).stride() for pair in pairs for value in TAKEN]
    return found + [C(selects_a_stride)(long, of(value))[1:] for value in TAKEN]


def case_selects_conjugates(C):
    a, b, compiled = torch.tensor([1 + 2j]).conj(), torch.tensor([3 + 2j]).conj(), C(selects)
    return [compiled(a, b, of(value)).is_conj() for value in TAKEN]


def case_selects_inference_tensors(C):
    with torch.inference_mode():
        a, b = torch.ones(3), torch.zeros(3)
    compiled = C(selects)
    return [compiled(a, b, of(value)).is_inference() for value in TAKEN]


def case_other_layouts(C):
    def chooses_one(a, b, x):
        if x.sum() > 0:
            y = a
        else:
            y = b
        return y

    compiled, a, b = C(chooses_one), rows(2).to_mkldnn(), rows(3).to_mkldnn()
    return [compiled(a, b, of(value)).to_dense() for value in TAKEN]


def images(x, memory_format=torch.contiguous_format):
    return (torch.arange(24.0).view(2, 3, 2, 2) + x.sum()).to(memory_format=memory_format)


def case_conversions_that_copy(C):
    """`to` gives the tensor itself, another layout of it, or a copy."""

    def lays_out(x):
        y = images(x)
        if x.sum() > 0:
            y = y.to(memory_format=torch.channels_last)
        return y

    def copies(x):
        y = images(x)
        z = y
        if x.sum() > 0:
            z = y.to(torch.float32, copy=True)
        is_same = z is y
        y.add_(1)
        return z * 1, is_same

    def hands_on(x):
        y = images(x)
        z = y
        if x.sum() > 0:
            z = y.to(torch.float32)
        return z * 1, z is y

    functions = [C(function) for function in (lays_out, copies, hands_on)]
    return [function(of(value)) for function in functions for value in TAKEN]


def case_strides_of_results(C):
    """Of these, fake tensors have other strides than eager's."""

    def raises_a_number(x, image):
        return 2**image if x.sum() > 0 else image * 1

    def rolls(x, image):
        return torch.roll(image, 1, 0) if x.sum() > 0 else (image + 1).contiguous()

    def takes_the_sign(x, image):
        return torch.copysign(image, image.contiguous()) if x.sum() > 0 else (image + 1).contiguous()

    functions = [C(function) for function in (raises_a_number, rolls, takes_the_sign)]
    return [function(of(value), images(of(1), torch.channels_last)) for function in functions for value in TAKEN]


def case_strides_of_what_was_written_as_transposed(C):
    """AOTAutograd gives it those that the write had."""

    def writes_to_an_input(x, y):
        y.t().masked_fill_(y.t() > 3, 0.0)
        return y if x.sum() > 0 else torch.ones(6, 3)

    def writes_to_what_it_made(x, y):
        y = y + 1
        y.mT.index_add_(0, torch.tensor([0]), torch.ones(1, 6))
        if x.sum() > 0:
            y = torch.ones(6, 3)
        return y

    def writes_to_what_is_transposed(x, y):
        y = y.t()
        y.clamp_(max=3)
        y.masked_fill_(y > 2, 1.0)
        return y if x.sum() > 0 else (y * 2).t().contiguous().t()

    functions = [C(function) for function in (writes_to_an_input, writes_to_what_it_made, writes_to_what_is_transposed)]
    return [function(of(value), rows(2)) for function in functions for value in TAKEN]
