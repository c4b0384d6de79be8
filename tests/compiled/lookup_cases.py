"""Branches with a side that looks elements up, or writes them, at an index that a tensor holds."""

from __future__ import annotations

import torch

TABLE = torch.arange(18.0).reshape(6, 3)


def gathers_the_best(x):
    best = x.argmax(-1, keepdim=True)
    if x.sum() > 0:
        return x.gather(-1, best)
    return x[:, :1] * 1


def returns_early_for_a_choice(x):
    choice = torch.multinomial(x.softmax(-1).detach(), 1)
    if (choice == 0).all():
        return x * 0 + 1
    return (x * 2).gather(1, choice) + x * 0


def scatters_the_largest(x):
    values, places = x.topk(2)
    y = x * 1
    if x.mean() > 0:
        y = torch.zeros_like(x).scatter(-1, places, values)
    return y


def looks_rows_up(x):
    places = x.abs().max(-1)[1]
    y = TABLE[:4] * 1
    if x.mean() > 0:
        y = TABLE[places]
    return y


def takes_in_order(x):
    order = x.argsort(-1, descending=True)
    y = x
    if x.mean() > 0:
        y = torch.take_along_dim(x, order, -1)
    return y


def embeds_remainders(x):
    places = (x.abs() * 10).long() % 6
    y = x[..., None].repeat(1, 1, 3)
    if x.mean() > 0:
        y = torch.nn.functional.embedding(places, TABLE)
    return y


def gathers_what_is_clamped(x):
    places = (x * 10).long().clamp(0, 2)
    y = x
    if x.mean() > 0:
        y = x.gather(1, places)
    return y


def mixes_rows(x):
    rows = torch.randperm(4)
    y = x
    if x.mean() > 0:
        y = x[rows]
    else:
        y = x.index_select(0, rows) * 2
    return y


def adds_to_what_it_has_made(x):
    places = x.sort(-1, descending=True).indices[:, :1]
    y = x * 1
    if x.mean() > 0:
        counts = torch.zeros(4, 3)
        counts.scatter_add_(1, places, torch.ones(4, 1))
        y = x * counts
    return y


# Places that may not be there.


def gathers_what_is_calculated(x):
    places = torch.cat([(x > 0).long() * 2, x.argmax(1, keepdim=True)], 1)
    places = torch.where(places > 1, places - 0, torch.ones_like(places))
    y = torch.cat([x, x[:, :1]], 1)
    if x.mean() > 0:
        y = y.gather(1, places)
    return y


def embeds_tokens_one_after_another(x):
    token = torch.full((x.shape[0],), 5)
    y = x
    for _ in range(3):
        y = torch.tanh(y + torch.nn.functional.embedding(token, TABLE))
        token = torch.minimum(y.argmax(-1) + y.argmin(-1), torch.tensor(5))
        if y.sum() > 4:
            break
    return y + TABLE[token]


def copies_to_short_places(x):
    places = torch.zeros(2, dtype=torch.int32)
    y = x
    if x.mean() > 900:
        y = x.index_copy(0, places, x[:2])
    return y


def gathers_what_nothing_is_known_of(x):
    places = (x.abs() * 1e-9).long()
    y = x
    if x.mean() > 0:
        y = x.gather(1, places)
    return y


def gathers_one_too_many(x):
    places = (x * 10).long().clamp(0, 3)
    y = x
    if places.max() < 3:
        y = x.gather(1, places)
    return y


def gathers_what_was_written_to(x):
    places = x.argmax(-1, keepdim=True)
    places += (x.sum() > 0).long() * 9
    y = x[:, :1] * 1
    if x.sum() <= 0:
        y = x.gather(-1, places)
    return y


def looks_up_in_a_smaller_table(x):
    places = x.argmax(-1)
    y = x[:, 0] * 1
    if places.max() < 2:
        y = TABLE[:2, 0][places]
    return y


def counts_from_the_end(x):
    places = x.argmax(-1, keepdim=True) - 2
    y = x[:, :1] * 1
    if places.max() >= 0 and places.min() >= 0:
        y = x.gather(-1, places)
    return y


def finds_places(x):
    """What has places in it that are known, for the test that measures them."""
    return (
        *(x.argmax(), x.argmax(1), x.argmin(0, keepdim=True), x.argsort(), x.argsort(dim=0), x[0, 0].argmax()),
        *(x.topk(2).indices, x.topk(2, 0)[1], x.sort()[1], x.sort(dim=0).indices, x.max(1)[1], x.min(dim=0)[1]),
        *(x.median(1)[1], x.mode()[1], x.kthvalue(2)[1], x.cummax(1)[1], x.cummin(0)[1]),
        *(
            torch.randperm(5),
            torch.multinomial(x.abs().nan_to_num(1, 1) + 1, 2),
            (x.nan_to_num(0, 1, 1) * 9).long() % 4,
        ),
        *((x.nan_to_num(0, 1, 1) * 9).int().clamp(-1, 2), (x.nan_to_num(0, 1, 1) * 9).long().clip(max=1, min=3)),
    )
