"""Statements that the rules leave alone, one for each sentence that `tests/compiled` does not bring about."""

import logging
import warnings

import numpy as np
import torch

log = logging.getLogger(__name__)
LIMIT = 1


class Base(torch.nn.Module):
    def reads_its_stack(self, x):
        log.warning("a", stack_info=True)
        warnings.warn("a", *[UserWarning])
        print("a", file=log)
        return x

    def draws(self, x):
        number = np.random.uniform()
        return x * number

    def raises(self, x):
        if x.sum() > 0:
            raise ValueError(seen := 1)
        if x.sum() > 1:
            raise ValueError(super().name)
        if x.sum() > 2:
            raise ValueError(LIMIT)
        if x.sum() > 3:
            raise ValueError(self.describe())
        if x.sum() > 4:
            raise  # noqa: PLE0704
        return seen

    def both_raise(self, x):
        if x.sum() > 0:
            raise ValueError("a")
        else:
            raise TypeError("b")

    def stores(self, x, items, other):
        if x.sum() > 0:
            items[0] = x
            x = items[1]
        if x.sum() > 1:
            items[0] = x
            x = len(items)
        if x.sum() > 2:
            items.last = x
            items = x
        if x.sum() > 3:
            x, *items = other
        if x.sum() > 4:
            x @= x
        if x.sum() > 5:
            del x
        return x

    def calls(self, x, others):
        if x.sum() > 0:
            x = torch.add(x, x, alpha=2)
        if x.sum() > 1:
            x = x + [y for y in others][0]
        if x.sum() > 2:
            x = x @ x
        if x.sum() > 3:
            x = x if 0 < x.sum() < 1 else -x
        if x.sum() > 4:
            x = f"{x}"
        if 0 < x.sum() < 1 < 2 < 3:
            x = x + 1
        return (x if x.sum() > 0 else -x) + (x if x.sum() > 1 else -x)


def set_global(x):
    global LIMIT
    LIMIT = LIMIT + 1
    return x


def adds(x, masks, out):
    for mask in masks:
        (rows,) = torch.where(mask)
        if rows.numel() > 0:
            with torch.no_grad():
                state = x[rows]
            out.index_add_(0, rows, state)
    hits = masks[0].nonzero(as_tuple=True)[0].tolist()
    for hit in hits:
        (rows,) = torch.where(masks[hit])
        out.index_add_(0, rows, x[rows])
    return out, hits
