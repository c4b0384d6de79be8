"""Functions that take, or write, what is at numbers which the data decides, beside other parts of an index."""

from __future__ import annotations

import numpy as np
import torch


def a_column(x, lengths):
    y = x * 2
    return y[:, int(y.detach().argmax(-1)[0])]


def by_a_name(x, lengths):
    k = x.detach().norm(dim=0).argmax().item()
    return x[:, k] * 2


def the_last_of_each(x, lengths):
    y = x.reshape(4, 2, 4) * 2
    return torch.stack([y[b, :, int(lengths[b]) - 1] for b in range(4)])


def the_last_of_each_in_a_loop(x, lengths):
    found = []
    for b in range(4):
        n = int(lengths[b])
        found.append(x[b, n - 1] * 2)
    return torch.stack(found)


def from_the_end(x, lengths):
    k = x.detach().norm(dim=0).argmax().item()
    return x[:, k - 8] + x[..., -1 - k]


def among_all_kinds_of_parts(x, lengths):
    k = x.detach().norm(dim=-1).argmax().item()
    return x[..., k, :].sum() + x[k, 1:3].sum() * 2 + x[None, k].sum() * 3 + x[None, :, None, k].sum() + x[k, None, 2]


def two_of_them(x, lengths):
    place = x.detach().argmax().item()
    return x[place // 8, place % 8] * x


def writes(x, lengths):
    k = x.detach().norm(dim=0).argmax().item()
    y = x * 1
    y[:, k] += 1
    y[1:, k] *= 2
    y[0, k] = 3
    y[:, k, None] = y[:, :1] + y[:, k : k + 1]
    return y


def writes_to_what_it_took(x, lengths):
    k = x.detach().norm(dim=0).argmax().item()
    y = x * 1
    column = y[:, k]
    column += 1
    column.mul_(2)
    return y


def writes_to_an_input(x, lengths):
    k = lengths.max().item()
    table = torch.zeros(5, 8)
    table[lengths[0].item(), k] = 1
    return table[1:] * x


def without_what_is_there(x, lengths):
    k = x.detach().sum(0).argmin().item()
    return torch.cat([x[:, :k], x[:, k + 1 :]], dim=1)


def may_be_missing(x, lengths):
    return x[:, 9 - int(lengths[0])] * 2


def a_row_that_may_be_missing(x, lengths):
    return x[4 - int(lengths[0])] * 2


def selected_where_it_may_be_missing(x, lengths):
    return x.select(1, 9 - int(lengths[0])) * torch.select(x, index=4 - lengths[1].item(), dim=0).sum()


def viewed_where_it_may_not_fit(x, lengths):
    return (x * 1).as_strided((6 - int(lengths[0]), 8), (8, 1)) * 2


def an_array_of_places(x, lengths):
    best = x.detach().argmax(-1).cpu().numpy()
    return x[:, int(best[0])] * 2


def the_place_in_an_array(x, lengths):
    p = x.softmax(-1)[0].detach().cpu().numpy()
    k = int(np.argmax(p))
    return x[:, k] * 2


def a_mean_of_an_array(x, lengths):
    mean = float(x.detach().double().sum().numpy())
    return x - mean


def an_array_that_decides(x, lengths):
    scores = x.detach().numpy()
    if scores.max() > 2.5:
        x = x * 0.5
    return x * 2


def an_array_that_decides_with_another_test(x, lengths):
    scores = x.detach().numpy()
    if lengths[0] > 2 and not (scores < -2.5).any():
        x = x * 0.5
    return x * 2


def an_array_that_guards(x, lengths):
    if np.isnan(x.detach().numpy()).any() or (lengths.numpy() > 3).all():
        raise ValueError("not a number, or too long")
    return x * 2


def an_array_of_sizes(x, lengths):
    longest = int(lengths.cpu().numpy().max())
    return x[:, :longest].sum(-1)


def a_list_of_an_array(x, lengths):
    first, second, *_ = lengths.numpy().tolist()
    return x * first + second


PLACES = (
    *(a_column, by_a_name, the_last_of_each, the_last_of_each_in_a_loop, from_the_end, among_all_kinds_of_parts),
    *(two_of_them, writes, writes_to_what_it_took, writes_to_an_input, without_what_is_there, may_be_missing),
    *(a_row_that_may_be_missing, selected_where_it_may_be_missing),
)
ARRAYS = (
    *(an_array_of_places, the_place_in_an_array, a_mean_of_an_array, an_array_that_decides, a_list_of_an_array),
    *(an_array_that_decides_with_another_test, an_array_that_guards, an_array_of_sizes),
)
