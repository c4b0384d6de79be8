"""What is done to the rows that a mask selects, if it selects any: operations that do not fail where it selects none."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def sorted_errors(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        errors, places = torch.sort(x[m][:, 1].abs(), 0, descending=True)
        y = y + (errors * x[m][:, 0][places]).sum()
    return y


def log_of_more(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        y = y + x[m].abs().log1p().sum() + x[m].expm1().sum()
    return y


def log_sum(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.sum() > 0:
        y = y + x[m].logsumexp(1).sum()
    return y


def similarity(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        y = y + (1 - F.cosine_similarity(x[m], x[m] + 1, dim=-1)).sum()
    return y


def binary(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        y = y + F.binary_cross_entropy_with_logits(x[m], torch.ones_like(x[m]), reduction="sum")
    return y


def distances(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        y = y + torch.cdist(x[m], x[:2].detach() + 1).sum()
    return y


def activations(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        y = y + (F.elu(x[m]) + F.mish(x[m]) + F.hardswish(x[m])).sum()
    return y


def either(x):
    y, m = x.sum(), x[:, 0] > 0
    if m.any():
        y = y + ((x[m] > 1) | (x[m] < -1)).long().sum()
    return y


def labels_by_places(x):
    labels, y = torch.arange(4), x.sum()
    places = torch.where(x[:, 0] > 0, 1, -1)
    found = places >= 0
    count = found.sum().item()
    if count > 0:
        y = y + F.cross_entropy(x[found], labels[places[found]], reduction="sum")
    return y


def marked(x):
    marks, m = torch.zeros(len(x), 4), x[:, 0] > 0
    places = torch.where(m, 2, -1)
    if m.sum().item() > 0:
        marks[m, places[m]] = 1.0
    return (x * marks).sum() + x.sum()


def put_back(x):
    scale, rows = torch.ones(len(x)), torch.where(x[:, 0] > 0)[0]
    if rows.numel() > 0:
        scale = scale.index_put((rows,), scale[rows] * 0.5)
    return (x * scale[:, None]).sum()


def weights_beside_a_number(x):
    gates, y = x.softmax(1), x.sum()
    for column in range(2):
        rows = torch.where(x[:, column] > 0)[0]
        if rows.numel() == 0:
            continue
        y = y + (x[rows] * gates[rows, column].unsqueeze(-1)).sum()
    return y


ONE_GRAPH = (
    *(sorted_errors, log_of_more, similarity, binary, activations, either),
    *(labels_by_places, marked, put_back, weights_beside_a_number),
)


# as in eager, and without a graph that fails


def looked_up_in_an_inner_side(x):
    table, y = torch.arange(18.0).reshape(6, 3), x.sum()
    rows = (x[:, 0] * 100).long()[x[:, 0] > 0]  # most of which are not there
    z = y * 2
    if (x[:, 0] > 0).any():
        z = y * 3
        if x[:, 2].sum() > 1000:
            z = table[rows].sin().sum() + y
    return z


def written_in_an_inner_side(x):
    marks, y = torch.zeros(6), x.sum()
    rows = (x[:, 0] * 100).long()[x[:, 0] > 0]
    if (x[:, 0] > 0).any():
        y = y * 3
        if x[:, 2].sum() > 1000:
            marks[rows] = 1.0
    return y + marks.sum()


def remainder_of_a_number(x):
    y, rows = (x * x).sum(), x[x[:, 0] > 0]
    if x[:, 2].sum() > 1000:
        y = y + (2.0 % rows).sum()
    return y


def all_or_none(x):
    z, mask = torch.zeros(5), (x.sum() > 0).expand(5)
    count = x[mask].sum()
    if mask.any():
        z[mask] = x[:, 1].detach()
    return z.sum() + x.sum() + count


def put_by_name(x):
    z, rows = torch.zeros(5), torch.where(x[:, 0] > 0)[0]
    if (x[:, 0] > 0).any():
        z = z.index_put(indices=(rows,), values=z[rows] + 1)
    return z.sum() + x.sum()


OTHERS = (log_sum, distances)  # PyTorch asks for the number of rows
NOT_TAKEN = (*(looked_up_in_an_inner_side, written_in_an_inner_side, remainder_of_a_number, all_or_none, put_by_name),)
