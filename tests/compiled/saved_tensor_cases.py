"""Programs that read buffers, and write to them later in the same graph; a log between the two is a break without us."""

from __future__ import annotations

import logging

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

logger = logging.getLogger("saved")
logger.propagate = False


class Buffers(nn.Module):
    """Buffers, a weight, and batch norms, each with its own numbers."""

    def __init__(s, count=2):
        super().__init__()
        for place in range(count):
            s.register_buffer(f"b{place}", torch.arange(1.0, 17.0).reshape(4, 4) / (7 + place))
        s.register_buffer("place", torch.zeros(1, dtype=torch.long))
        s.weight = nn.Parameter(torch.arange(16.0).reshape(4, 4).cos())
        s.norm = nn.BatchNorm1d(4)


READS = {
    "clone": lambda b: b.clone(),
    "detach, clone": lambda b: b.detach().clone(),
    "to": lambda b: b.to(torch.float32, copy=True),
    "data": lambda b: b.data.clone(),
    "cat": lambda b: torch.cat([b]),
    "pad": lambda b: F.pad(b, (0, 0)),
    "stack": lambda b: torch.stack([b])[0],
    "double": lambda b: b.double().float(),
    "repeat": lambda b: b.repeat(1, 1),
    "pow": lambda b: b**1,
    "times one": lambda b: b * 1,
    "plus zeros": lambda b: b + torch.zeros(4, 4),
    "new": lambda b: torch.empty_like(b).copy_(b),
    "item of a new": lambda b: torch.zeros(1, 4, 4).index_put((torch.tensor([0]),), b)[0],
    "view of a clone": lambda b: b.clone().view(2, 8).t().t().reshape(4, 4),
    "clone of a view": lambda b: b.view(16)[:].clone().view(4, 4),
    "chunk of a clone": lambda b: torch.cat(b.clone().chunk(2)),
    "transposed": lambda b: b.t().contiguous(),
    "expanded": lambda b: b[:1].expand(4, 4).clone(),
    "rows": lambda b: b[torch.arange(4)],
    "computed": lambda b: (b.clone() + 1).exp(),
    "sum": lambda b: b.sum(0),
    "largest": lambda b: b.max(0)[0],
    "mask": lambda b: b > 1,
    "changed": lambda b: b.clone().mul_(2),
    "no dropout": lambda b: F.dropout(b, 0.5, training=False).clone(),
}
WRITES = [
    lambda b, q: b[:2].fill_(100),
    lambda b, q: b.zero_(),
    lambda b, q: b.copy_(q + 7),
    lambda b, q: b.view(-1)[3:].mul_(3),
    lambda b, q: b.add_(1).mul_(2),
    lambda b, q: b.__setitem__((slice(None), 1), q[0]),
]


class Read(Buffers):
    """Reads each of its buffers in another way."""

    def __init__(s):
        super().__init__(len(READS))

    def forward(s, q):
        buffers = [getattr(s, f"b{place}") for place in range(len(READS))]
        read = [form(buffer) for form, buffer in zip(READS.values(), buffers, strict=True)]
        logger.warning("a")
        loss = sum((row * keys).sum() for row, keys in zip(q, read, strict=True))
        with torch.no_grad():
            for place, buffer in enumerate(buffers):
                WRITES[place % len(WRITES)](buffer, q[place])
        return loss


class Momentum(Buffers):
    """A queue of keys, and an encoder that follows the weight."""

    def forward(s, q):
        q = F.normalize(q[0], dim=1)
        with torch.no_grad():
            s.b1.mul_(0.9).add_(s.weight, alpha=0.1)
            k = F.normalize(F.linear(q, s.b1), dim=1)
        logger.warning("a %s", k.shape)
        near = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        far = torch.einsum("nc,ck->nk", q, s.b0.clone().detach())
        loss = F.cross_entropy(torch.cat([near, far], 1) / 0.07, torch.zeros(4, dtype=torch.long))
        with torch.no_grad():
            s.b0[:, 1:3] = k.T[:, :2]
        return loss


class Crossed(Buffers):
    """Two buffers change places."""

    def forward(s, q):
        first, second = s.b0.clone(), s.b1.detach().clone()
        logger.warning("a")
        y = q[0] * first
        with torch.no_grad():
            s.b0.copy_(s.b1)
            s.b1.copy_(first)
        third = s.b0.clone()
        with torch.no_grad():
            s.b0.zero_()
        return (y * second * third).sin().sum()


class Again(Buffers):
    """Reads and writes in turn."""

    def forward(s, q):
        y = q[0]
        for step in range(3):
            keys = s.b0.clone()
            logger.warning("a %d", step)
            y = y * keys + s.b1
            with torch.no_grad():
                s.b0.mul_(0.5)
                s.b1.add_(s.b0)
        return y.sin().sum()


class Written(Buffers):
    """What is read is what has been written."""

    def forward(s, q):
        with torch.no_grad():
            s.b0.mul_(0.5)
            s.weight.mul_(0.5)
        logger.warning("a")
        return (F.linear(q[0], s.weight) * s.b0).sin().sum()


class Weight(Buffers):
    """A weight that is written to."""

    def forward(s, q):
        y = F.linear(q[0], s.weight.clone()) + F.linear(q[1], s.weight * 2)
        logger.warning("a")
        with torch.no_grad():
            s.weight.clamp_(-0.5, 0.5)
        return y.sin().sum()


class Inside(Buffers):
    """Copies are changed in place, by what has a gradient."""

    def forward(s, q):
        first, second, third = s.b0.clone(), s.b0.clone(), torch.zeros(4, 4)
        logger.warning("a")
        first.mul_(q[0])
        second[:2] = q[1, :2]
        third[:2] = s.b0[:2]
        with torch.no_grad():
            s.b0.mul_(0.5)
        return first.sin().sum() + (second * second).sum() + (third * q[2]).sum()


class Mixed(Buffers):
    """Below autocast, a checkpoint, and batch norms that keep statistics."""

    def forward(s, q):
        keys = s.b0.clone()
        mean = s.norm.running_mean.clone()
        logger.warning("a")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = q[0] @ s.b1
        y = checkpoint(lambda a, b: (a * b).sin(), s.norm(y.float()), keys, use_reentrant=False)
        with torch.no_grad():
            s.b0.mul_(0.5)
            s.b1.mul_(0.5)
        return (y * mean).sum() + F.scaled_dot_product_attention(q[:1], keys[None], keys[None]).sum()


class Itself(Buffers):
    """The gradient needs the buffer itself: then eager complains."""

    def forward(s, q):
        y = (q[0] * s.b0).sum()
        logger.warning("a")
        with torch.no_grad():
            s.b0.mul_(0.5)
        return y


class Difference(Buffers):
    """No gradient needs the buffer."""

    def forward(s, q):
        y = q[0] - s.b0
        logger.warning("a")
        with torch.no_grad():
            s.b0.mul_(0.5)
        return y.sin().sum()


class Moved(Buffers):
    """Buffers hand their numbers on, in ways that compute nothing."""

    def __init__(s):
        super().__init__(3 * len(READS))

    def forward(s, q):
        for place, form in enumerate(READS.values()):
            first, second, third = (getattr(s, f"b{3 * place + each}") for each in range(3))
            total = first.sum() + second.sum()
            held = form(first)
            logger.warning("a")
            third.copy_(second)
            first.copy_(second)
            second.copy_(held)
            q = q + total
        return q.detach().sum()


class Normed(Buffers):
    """Batch norms that keep statistics, and averages that no gradient rests on."""

    def forward(s, q):
        y = s.norm(q[0])
        logger.warning("a")
        s.b0.mul_(0.9).add_(y.detach(), alpha=0.1)
        return s.norm(y).sin().sum()


class Queue(Buffers):
    """A buffer that is written to after the call."""

    def forward(s, q):
        keys = s.b0.clone()
        logger.warning("a")
        return (q[0] * keys).sum()
