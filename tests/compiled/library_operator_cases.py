"""A library with functions that go round as often as their data says, and programs that call them."""

from __future__ import annotations

import functools

import torch


def keeps(rows, scores, threshold):
    """The places of the rows that score higher than those before them."""
    kept, most = [], threshold
    for number in range(len(scores)):
        if scores[number] > most:
            kept.append(number)
            most = float(scores[number])
    return torch.tensor(kept, dtype=torch.int64)


def wrapped(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


@wrapped
def keeps_any(rows, scores, threshold):
    kept = torch.zeros_like(scores, dtype=torch.bool)
    for value in torch.unique(scores):
        if value > threshold:
            kept[(scores == value).nonzero()[0]] = True
    return torch.where(kept)[0]


def pasted(rows, places, side):
    """Each row in a picture of its own, at a place that the data says."""
    pictures = [rows.new_zeros(side, rows.shape[1]) for _ in range(len(rows))]
    for picture, row, place in zip(pictures, rows, places):
        picture[int(place)] = row
    return (torch.stack(pictures) if pictures else rows.new_zeros(0, side, rows.shape[1])), places * 2


def by_size(rows, scores, threshold):
    """A size decides whether it loops."""
    if scores.numel() > 4:
        return keeps_any(rows, scores, threshold)
    return torch.where(scores > threshold)[0]


# --- programs ---


def kept_rows(x, scores):
    return x[keeps(x, scores, 0.0)] * 2 + 1


def kept_by_keyword(x, scores):
    return x[keeps(scores=scores, rows=x, threshold=0.0)].sum(0)


def kept_and_counted(x, scores):
    places = keeps(x, scores, 0.5)
    return places, x.index_select(0, places).sum(0), scores[places].sum()


def kept_of_kept(x, scores):
    places = keeps(x, scores, -9.0)
    rows, scores = x[places], scores[places]
    return rows[keeps_any(rows, scores, 0.3)].cos()


def kept_of_the_first(x, scores):
    return x[keeps_any(x, scores, 0.0)[:2]]


def chosen_by_size(x, scores):
    """The data decides how many there are."""
    chosen = x[:, 0] > 0
    rows, some = x[chosen], scores[chosen]
    return rows[by_size(rows, some, 0.0)] * 3


def is_pasted(x, scores):
    with torch.no_grad():
        pictures, places = pasted(x * 2, scores.abs().long() % 3, 3)
    return pictures.sum(1) + places[:, None]


def has_a_side_that_changes(x, scores):
    with torch.no_grad():
        return pasted(x * 2, scores.abs().long() % 3, x.shape[0] + 1)[0].sum(2)


def is_transposed(x, scores):
    with torch.no_grad():
        return pasted(x[:4].t(), scores[:4].abs().long() % 3, 3)[0]


def has_a_gradient(x, scores):
    pictures, _ = pasted(x * 2, scores.abs().long() % 3, 3)
    return pictures.sum((1, 2))


def is_caught(x, scores):
    try:
        return x[keeps(x, scores[:-1], 0.0)]
    except IndexError:
        return x


def under_autocast(x, scores):
    with torch.autocast("cpu", torch.bfloat16):
        return x[keeps(x, scores, 0.0)] + 1


def with_too_few(x, scores):
    return x[keeps(x, scores[:-1], 0.0)] + 1


def on_no_rows(x, scores):
    return keeps(x[:0], scores[:0], 0.0), keeps_any(x[:0], scores[:0], 0.0)


def of_a_number_that_changes(x, scores):
    return x[keeps(x, scores, x.shape[0] / 8)]


def is_out_of_bounds(x, scores):
    with torch.no_grad():
        return pasted(x, (scores * 4).long(), 3)[0]
