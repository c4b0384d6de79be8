"""Loops over experts, of which data decides who is hit; the tests import this file as it is, and mended."""

from __future__ import annotations

import logging

import torch
from torch import nn

log = logging.getLogger(__name__)


class Experts(nn.Module):
    """Four linear experts; `x` has rows of 3, `chosen` names the expert of each row."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.SiLU()) for _ in range(4)])
        self.calls = 0

    def mask_of(self, chosen):
        return nn.functional.one_hot(chosen, num_classes=4).permute(1, 0)

    def hits(self, chosen, number):
        return self.mask_of(chosen)[number] > 0


class Skipped(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        for number in range(4):
            expert = self.experts[number]
            _, rows = torch.where(mask[number][None])
            if rows.shape[0] == 0:
                continue
            state = x[None, rows].reshape(-1, 3)
            state = expert(state) * 2
            out.index_add_(0, rows, state.to(x.dtype))
        return out


class Around(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            if rows.numel() > 0:
                state = self.experts[number](x[rows])
                out.index_add_(0, rows, state)
        return out


class AroundNothing(Experts):
    """`Around` without its test: the graph that [Sweep] makes of it."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            state = self.experts[number](x[rows])
            out.index_add_(0, rows, state)
        return out


class AssignsRows(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = self.hits(chosen, number).nonzero().flatten()
            if rows.numel() > 0:
                out[rows] = expert(x[rows])
        return out


class AddsAtRows(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = torch.where(self.hits(chosen, number))[0]
            if len(rows) == 0:
                continue
            state = expert(x[rows])
            out[rows] += state * 2
        return out


class AssignsByMask(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for number in range(4):
            mask = self.hits(chosen, number)
            if not mask.any():
                continue
            out[mask] = self.experts[number](x[mask])
        return out


class AddsByMask(Experts):
    """The mask is a mask again after the step."""

    def forward(self, x, chosen):
        out, scale = torch.zeros_like(x), x.sigmoid()
        for number in range(4):
            mask = self.hits(chosen, number)
            if mask.sum().item() > 0:
                state = self.experts[number](x[mask])
                out[mask] += state * scale[mask, 1][:, None]
        return out + mask[:, None]


class CountsMask(Experts):
    def forward(self, x, chosen):
        out = x.clone()
        for number in range(4):
            mask = self.hits(chosen, number)
            if mask.sum() == 0:
                continue
            state = x[mask]
            out[mask] = self.experts[number](state) - state.mean(0)
        return out


class AnotherMask(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for number in range(4):
            mask = self.hits(chosen, number)
            other = self.hits(chosen, 3 - number)
            if mask.any():
                out[other] = self.experts[number](x[other])
        return out


class HighestOfNone(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for number in range(4):
            mask = self.hits(chosen, number)
            if mask.any():
                state = x[mask]
                out[mask] = self.experts[number](state) - state.max()
        return out


class AssignsToItsBuffer(Experts):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(5, 3))

    def forward(self, x, chosen):
        kept = self.kept
        for number in range(4):
            mask = self.hits(chosen, number)
            if mask.any():
                kept[mask] = self.experts[number](x[mask])
        return kept * 2


class MaskOfAnotherSize(Experts):
    """Eager fails where the mask has a hit, which the rows would not."""

    def forward(self, x, chosen):
        out, longer = torch.zeros_like(x), torch.cat((x, x))
        for number in range(4):
            mask = self.hits(chosen, number) & (x[:, 0] > 100)
            if mask.any():
                out[mask] = self.experts[number](longer[mask])
        return out


class CountsBeside(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        for number in range(4):
            mask = self.hits(chosen, number)
            if mask.any():
                self.calls += 1
                out[mask] = self.experts[number](x[mask])
        return out


class Listed(Experts):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        hits = (mask.sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist()
        for number in hits:
            expert = self.experts[number]
            (rows,) = torch.where(mask[number])
            state = expert(x[rows])
            out.index_add_(0, rows, state)
        return out


class ListedAsTemplatesSpellTheirs(Experts):
    def forward(self, TARGET, VALUES):
        UNUSED = torch.zeros_like(TARGET)
        MASK = self.mask_of(VALUES)
        HIT = (MASK.sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist()
        for TEST in HIT:
            (THEN,) = torch.where(MASK[TEST])
            ELSE = self.experts[TEST](TARGET[THEN])
            UNUSED.index_add_(0, THEN, ELSE)
        return UNUSED


class ListedByAnotherMask(Experts):
    """What is listed is not what the step looks up: experts 0 and 2 are not hit, though they have rows."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        hits = torch.nonzero(torch.tensor([0, 1, 0, 1]) * mask.sum(dim=-1), as_tuple=True)[0].tolist()
        for number in hits:
            (rows,) = torch.where(mask[number])
            state = self.experts[number](x[rows])
            out.index_add_(0, rows, state)
        return out


class Rows(Experts):
    """As transformers 5 has it: over rows of hits, with weights in one tensor, the last place being none."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3))

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        with torch.no_grad():
            mask = nn.functional.one_hot(chosen, num_classes=5).permute(1, 0)
            hits = torch.greater(mask.sum(dim=-1), 0).nonzero()
        for number in hits:
            number = number[0]  # noqa: PLW2901
            if number == 4:
                continue
            (rows,) = torch.where(mask[number])
            state = nn.functional.linear(x[rows], self.weight[number])
            out.index_add_(0, rows, state)
        return out


class RowsWithQuestions(Rows):
    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        hits = torch.greater(mask.sum(dim=-1), 0).nonzero(as_tuple=False)
        for place in hits:
            number = int(place.item())
            (rows,) = torch.where(mask[number].squeeze(0))
            if rows.numel() == 0:
                continue
            if number >= 3:
                state = x[rows]
            else:
                state = nn.functional.linear(x[rows], self.weight[number])
            out.index_add_(0, rows, state)
        return out


class TwoLists(Rows):
    """The second list is made before the first is looked at."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        first = (mask.sum(dim=-1) > 1).nonzero()
        second = (mask.sum(dim=-1) == 1).nonzero()
        for number in first:
            (rows,) = torch.where(mask[number[0]])
            state = x[rows] * 2
            out.index_add_(0, rows, state)
        for other in second:
            (rows,) = torch.where(mask[other[0]])
            state = x[rows] * 3
            out.index_add_(0, rows, state)
        return out


class HitsWrittenLater(Rows):
    """The list is as it was made."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        hit = mask.sum(dim=-1) > 0
        hits = hit.nonzero()
        hit.zero_()
        for number in hits:
            (rows,) = torch.where(mask[number[0]])
            state = x[rows] * 2
            out.index_add_(0, rows, state)
        return out


class BreaksBeforeTheLoop(Experts):
    """The loop is traced in a frame of its own, which is handed the list."""

    def step(self, x):
        self.calls += 1
        return x * x.amax(0)

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        hits = (mask.sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist()
        torch._dynamo.graph_break()
        for number in hits:
            (rows,) = torch.where(mask[number])
            state = self.step(x[rows])
            out.index_add_(0, rows, state)
        return out


class RowsAreKnown(BreaksBeforeTheLoop):
    """The rows of a step are known while tracing: no symbol, and nothing to be checked."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = torch.tensor([[1, 0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0]])
        hits = (self.mask_of(chosen).sum(dim=-1) > 0).nonzero(as_tuple=True)[0].tolist()
        for number in hits:
            (rows,) = torch.where(mask[number])
            state = self.count(x[rows])
            out.index_add_(0, rows, state)
        return out

    def count(self, x):
        self.calls += 1
        return x


class MovesItsPlace(Rows):
    """What is looked up is not the place of the hit."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        hits = (mask.sum(dim=-1) > 0).nonzero()
        for number in hits:
            number = (number[0] + 1) % 4  # noqa: PLW2901
            (rows,) = torch.where(mask[number])
            state = x[rows] * 2
            out.index_add_(0, rows, state)
        return out


class Stepping(Experts):
    """What one step does is told by a method."""

    def step(self, x):
        return x * 2

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            if rows.numel() > 0:
                state = self.step(x[rows])
                out.index_add_(0, rows, state)
        return out + self.calls


class Counting(Stepping):
    """A step that counts its calls."""

    def step(self, x):
        self.calls += 1
        return x * 2


class Logging(Stepping):
    def step(self, x):
        log.warning("a step")
        return x * 2


class Printing(Stepping):
    """What cannot wait, so that the graph ends inside the step."""

    seen = 0

    def step(self, x):
        torch._dynamo.graph_break()
        self.seen += len(x) + 1
        return x * 2


class Once(Printing):
    """Likewise, where there is no loop for which Dynamo would give the frame up."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        (rows,) = torch.where(self.mask_of(chosen)[2])
        if rows.numel() > 0:
            state = self.step(x[rows])
            out.index_add_(0, rows, state)
        return out


class Failing(Stepping):
    """The largest of no rows is an error."""

    def step(self, x):
        return x * x.amax(0)


class AddsElsewhere(Experts):
    """The index that is added at is never empty."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        first = torch.zeros(1, dtype=torch.long)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            if rows.numel() > 0:
                state = x[:1] + 1
                out.index_add_(0, first, state)
        return out


class Writing(Experts):
    def step(self, x, all_of):
        all_of.mul_(2)
        return x

    def forward(self, x, chosen):
        x = x + 0
        out = torch.zeros_like(x)
        mask = self.mask_of(chosen)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            if rows.numel() > 0:
                state = self.step(x[rows], x)
                out.index_add_(0, rows, state)
        return out


class ReadLater(Experts):
    """What the last step assigned is read after the loop."""

    def forward(self, x, chosen):
        out = torch.zeros_like(x)
        last = x.sum()
        mask = self.mask_of(chosen)
        for number in range(4):
            (rows,) = torch.where(mask[number])
            if rows.numel() > 0:
                last = self.experts[number](x[rows])
                out.index_add_(0, rows, last)
        return out + last.sum()


class Dropping(Stepping):
    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def step(self, x):
        return self.dropout(x)
