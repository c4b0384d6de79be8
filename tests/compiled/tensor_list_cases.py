"""What a loop makes only where the data says so: lists of tensors, and sums that begin with a number."""

from __future__ import annotations

import torch
from torch.nn import functional


def classes_of(x):
    return (x.detach().sum(1).abs() * 2).long() % 4


# one graph in each call


def mean_of_present(x):
    losses, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).mean())
    return sum(losses) / len(losses)


def stacked(x):
    losses, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.sum() == 0:
            continue
        losses.append(x[mask].mean())
    return torch.stack(losses).mean()


def stacked_vectors(x):
    means, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if not mask.any():
            continue
        means.append(x[mask].mean(0))
    return torch.stack(means, dim=0).max(0).values


def joined_rows(x):
    parts, labels = [x[:1]], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            parts.append((x * mask[:, None]).sum(0, keepdim=True))
    return torch.cat(parts).pow(2).sum(0)


def begins_with_zero(x):
    total, count, labels = 0, 0, classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            total += (x * mask[:, None]).sum()
            count += 1
    return total / count


def begins_with_a_float(x):
    total, labels = 0.0, classes_of(x)
    for label in range(4):
        mask = labels == label
        if not mask.any():
            continue
        total = total + x[mask].mean() * 2
    return total + x.sum()


def returns_early_if_there_is_none(x):
    losses, labels = [], classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).sum())
    if len(losses) == 0:
        return x.sum() * 0
    return sum(losses) / len(losses)


def asks_whether_there_is_one(x):
    losses, labels = [], classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).sum())
    if not losses:
        return x.mean()
    return torch.stack(losses).sum()


def gives_the_list(x):
    kept, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            kept.append((x.detach() * mask[:, None]).sum())
    return x.sum(), kept


def gives_what_may_be_a_number(x):
    total, labels = 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x.detach() * mask[:, None]).sum()
    return x.sum(), total


def nested(x):
    losses, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            value = (x * mask[:, None]).sum()
            if value > 0.9:  # none is near it: Inductor adds up in another order
                losses.append(value)
    if len(losses) == 0:
        return x.mean()
    return sum(losses)


def adds_to_what_is_nan(x):
    """What is not taken is not a number, and its gradient neither."""
    losses, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).sum() / mask.sum())
    return torch.stack(losses).sum()


def hardest_pairs(x):
    """The greatest of what the data selects, where there is some."""
    losses, labels = [], classes_of(x)
    for label in range(4):
        own, others = x[:, 0][labels == label], x[:, 1][labels != label]
        if own.numel() > 0 and others.numel() > 0:
            losses.append(functional.relu(own.max() - others.min() + 0.2))
    if len(losses) == 0:
        return x.sum() * 0
    return torch.stack(losses).mean()


def classifies_what_counts(x):
    """Of no rows no class is looked at."""
    labels = classes_of(x)
    active = labels > 1
    if active.any():
        return functional.cross_entropy(x[active], labels[active] - 2)
    return x.sum() * 0


def looks_up_again(x):
    """As updates of a policy do that end early."""
    labels, total, steps = classes_of(x) % 2, 0.0, []
    for step in range(3):
        picked = (x * (step + 1)).log_softmax(1).gather(1, labels[:, None]).squeeze(1)
        steps.append(picked.detach().mean().item())
        total = total - picked.mean()
        if picked.mean() < -0.75:
            break
    return total, len(steps)


def leaves_early(x):
    for place, (scale, shift) in enumerate(zip((1.5, 2.0, 0.5), (0.1, 0.2, 0.3)), 1):
        x = x * scale + shift
        y = x.sum(1)
        if y.max() > 2.5:
            return y * place
    return y


def splits_by_counts(x):
    """Pieces as long as counts say, some of no rows."""
    labels = classes_of(x)
    pieces, start, rows = [], 0, x[labels.argsort()]
    for label, count in enumerate(torch.bincount(labels, minlength=4).tolist()):
        if count == 0:
            continue
        pieces.append(rows[start : start + count] * (label + 1))
        start += count
    return torch.cat(pieces, dim=0).sum(0)


ONE_GRAPH = (
    hardest_pairs,
    classifies_what_counts,
    looks_up_again,
    leaves_early,
    splits_by_counts,
    mean_of_present,
    stacked,
    stacked_vectors,
    joined_rows,
    begins_with_zero,
    begins_with_a_float,
    returns_early_if_there_is_none,
    asks_whether_there_is_one,
    gives_the_list,
    gives_what_may_be_a_number,
    nested,
    adds_to_what_is_nan,
)


# as in eager


def goes_through_them(x):
    losses, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).sum())
    total = x.sum()
    for loss in losses:
        total = total * 0.5 + loss
    return total


def takes_the_last(x):
    losses, labels = [x.sum()], classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).sum())
    return losses[-1]


def has_two_names(x):
    losses, labels = [], classes_of(x)
    same = losses
    for label in range(4):
        mask = labels == label
        if mask.any():
            losses.append((x * mask[:, None]).sum())
    return sum(same)


def writes_to_one_later(x):
    losses, labels = [], classes_of(x)
    first = x.detach().sum(0)
    for label in range(4):
        mask = labels == label
        if mask.any():
            losses.append(first)
    first.add_(1)
    return torch.stack(losses).sum() + x.sum()


def appends_what_came_in(x):
    rows, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            rows.append(x)
    return torch.stack(rows).sum()


def shows_them(x):
    losses, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            losses.append((x.detach() * mask[:, None]).sum())
    print(len(losses), [round(loss.item(), 3) for loss in losses])
    return x.sum()


def stacks_along_another_dimension(x):
    means, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            means.append((x * mask[:, None]).mean(0))
    return torch.stack(means, 1).sum(0).max() + torch.stack(means, dim=-1).shape[1]


def of_two_forms(x):
    parts, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            parts.append(x[mask].sum(0) if label % 2 else x[mask].sum(0, keepdim=True)[0])
    return torch.stack(parts).sum()


def asks_what_it_is(x):
    total, labels = 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x * mask[:, None]).sum()
    return x.sum() * 2 if isinstance(total, int) else total


def is_true_of_what_it_is(x):
    total, labels = 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x * mask[:, None]).sum()
    if total > 1:
        return x.sum()
    return x.mean()


def compares_with_a_number(x):
    total, labels = 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x * mask[:, None]).sum()
    return torch.where(x > total, x, 0.0).sum() + max(float(total), 1.0)


def changes_in_place(x):
    total, labels = 0.0, classes_of(x)
    kept = x.sum() * 0
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = kept
            total += (x * mask[:, None]).sum()
    return kept + total


def of_whole_numbers(x):
    total, labels = 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + mask.sum()
    return x.sum() * total


def of_a_number_that_is_rounded(x):
    total, labels = 0.1, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x * mask[:, None]).sum()
    return x.sum() * total


def divides_what_may_be_a_number(x):
    total, count, labels = 0, 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x * mask[:, None]).sum()
            count += 1
    return x.sum() + total / max(count, 1)


def finds_what_is_not_there(x):
    """Of no rows there is no greatest: eager fails."""
    losses, labels = [], classes_of(x)
    for label in range(4):
        own, others = x[:, 0][labels == label], x[:, 1][labels != label]
        if own.numel() > 0:
            losses.append(own.max() - others.min())
    return torch.stack(losses).mean()


def starts_elsewhere(x):
    labels = classes_of(x)
    pieces, start, rows = [x[:1]], 0, x[labels.argsort()]
    for count in torch.bincount(labels, minlength=4).tolist():
        if count == 0:
            start = 1
            continue
        pieces.append(rows[start : start + count])
        start += count
    return torch.cat(pieces).sum(0)


def looks_for_ones(x):
    labels = classes_of(x)
    pieces, start, rows = [x[:1]], 0, x[labels.argsort()]
    for count in torch.bincount(labels, minlength=4).tolist():
        if count != 1:
            continue
        pieces.append(rows[start : start + count])
        start += count
    return torch.cat(pieces).sum(0)


def counts_below_zero(x):
    room, spare = (x[:, 0] > 0.2).sum().item() - 4, 0
    if room > 0:
        spare += room
    return x * spare + x.sum()


def room_that_is_left(x):
    used, spare = (x[:, 0] > 0.2).sum(), 0
    free = int(2 - used)
    if free > 0:
        spare += free
    return x * spare


def writes_to_the_mask(x):
    mask, count = x[:, 0] > 0, 0
    rows = mask.nonzero()[:, 0]
    mask.logical_and_(x[:, 0] > 0.3)
    if mask.any():
        count = rows.numel()
    return x + count


def counts_round(x):
    mask, count = (x[:1, 0] > 0).expand(256).contiguous(), 0
    places = mask.nonzero()
    if mask.sum(dtype=torch.uint8) != 0:
        count = places.shape[0]
    return x + count


def adds_to_what_it_has(x):
    total, first = 0, x.detach().sum()
    if x[0, 0] > 0.1:
        total = first
    total += 1
    return x.sum() * first, total


def adds_in_a_side_to_what_it_has(x):
    total, first = 0.0, x.detach().sum()
    if x[0, 0] > 0.1:
        total = first
    if x[1, 0] > 0.2:
        total += 1
    return x.sum() * first, total


def divides_what_came_in(x):
    total, y = 0.0, x.detach().clone()[0, 0]
    if x[0, 0] > 0.1:
        total = y
    total /= 2
    return x.sum() * y, total


def of_two_types(x):
    found, labels = [], classes_of(x)
    if (labels == 1).any():
        found.append(x.detach()[0, 0])
    if (labels == 0).any():
        found.append((labels == 0).sum())
    return x.sum(), sum(found), torch.stack(found) if found else None


def of_two_shapes(x):
    found, labels = [], classes_of(x)
    if (labels == 1).any():
        found.append(x[0, 0])
    if (labels == 0).any():
        found.append(x[1])
    return x.sum() + sum(found)


def spreads(x):
    means, labels = [], classes_of(x)
    for label in range(4):
        mask = labels == label
        if mask.any():
            means.append((x * mask[:, None]).mean(0))
    return torch.stack(means).std(0).sum()


def shows_what_may_be_a_number(x):
    total, labels = 0, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x.detach() * mask[:, None]).sum()
    print(f"{total:.3f}", total)
    return x.sum()


def is_given_to_functions(x):
    total, labels = 1, classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            total = total + (x * mask[:, None]).sum()
    return torch.sqrt(total.abs()) + torch.stack([total, x.sum()]).max()


def chooses_among_two(x):
    labels = classes_of(x)
    one, other = 0, 1.0
    if (labels == 1).any():
        one = one + x.detach().sum()
    if (labels == 2).any():
        other = other + x.detach().mean()
    kept = other
    if x[0, 0] > 0.1:
        kept = one
    return x.sum(), kept


def joins_if_there_is_one(x):
    """The sides differ in shape, so that there is one is a guard."""
    pieces, labels = [], classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            pieces.append(x * mask[:, None])
    return torch.cat(pieces) if pieces else x.new_empty(0)


def fails_if_there_is_none(x):
    pieces, labels = [], classes_of(x)
    for label in (1, 2):
        mask = labels == label
        if mask.any():
            pieces.append((x * mask[:, None]).sum())
    if not pieces:
        raise RuntimeError("none")
    return torch.stack(pieces).sum()


OTHERS = (
    joins_if_there_is_one,
    fails_if_there_is_none,
    shows_what_may_be_a_number,
    is_given_to_functions,
    chooses_among_two,
    counts_below_zero,
    room_that_is_left,
    writes_to_the_mask,
    counts_round,
    adds_to_what_it_has,
    adds_in_a_side_to_what_it_has,
    divides_what_came_in,
    of_two_types,
    of_two_shapes,
    spreads,
    finds_what_is_not_there,
    starts_elsewhere,
    looks_for_ones,
    goes_through_them,
    takes_the_last,
    has_two_names,
    writes_to_one_later,
    appends_what_came_in,
    shows_them,
    stacks_along_another_dimension,
    of_two_forms,
    asks_what_it_is,
    is_true_of_what_it_is,
    compares_with_a_number,
    changes_in_place,
    of_whole_numbers,
    of_a_number_that_is_rounded,
    divides_what_may_be_a_number,
)
