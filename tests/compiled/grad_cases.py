"""Tensors that are told to require a gradient: each case takes a batch of signals."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Told(nn.Module):
    """As the feature encoder of wav2vec2 has it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3)

    def forward(self, x):
        h = x[:, None]
        if self.training:
            h.requires_grad = True
        return self.conv(h)


class ToldByAMethod(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad_()
        return self.conv(h) * h.size(1)


class Leaf(Told):
    def forward(self, x):
        weight = self.conv.weight
        weight.requires_grad = True
        return x.sum() * weight


class Frozen(Told):
    def __init__(self):
        super().__init__()
        self.conv.requires_grad_(False)


class Given(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad_()
        return self.conv(h), h


class UsedElsewhere(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad_(True)
        return self.conv(h) + h.sum()


class Asked(Told):
    def doubled(self, t):
        return t * 2 if t.requires_grad else t

    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.doubled(h.detach()) + self.conv(h).sum()


class AskedHere(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.conv(h) * (2 if h.requires_grad else 3)


class Input(Told):
    def forward(self, x):
        x.requires_grad = True
        return self.conv(x[:, None])


class NoLeaf(Told):
    def forward(self, x):
        h = self.conv(x[:, None])
        h.requires_grad = True
        return h * 2


class Whole(Told):
    def forward(self, x):
        h = x.long()[:, None]
        h.requires_grad = True
        return self.conv(h.float())


class Viewed(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.conv(h[:, :, 1:])


class Written(Told):
    def forward(self, x):
        h = x[:, None] * 1
        h.requires_grad = True
        h.mul_(self.conv.weight.sum())
        return self.conv(h)


class OfInference(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.conv(h)


class WithoutGradients(Told):
    @torch.no_grad()
    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.conv(h) + h.sum()


class BeforeABreak(Told):
    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        torch._dynamo.graph_break()
        return self.conv(h)


class ToldInACheckpoint(Told):
    """As T5 has its position bias: made in the first block, changed, and handed on to the next."""

    reentrant = False

    def block(self, h, bias):
        scores = self.conv(h)
        if bias is None:
            bias = torch.zeros(scores.shape)
            if self.training:
                bias.requires_grad = True
            bias = bias + h.size(1)
        scores += bias
        return scores[:, :1], bias

    def forward(self, x):
        h, bias = x[:, None] * self.conv.bias.mean(), None
        for _ in range(2):
            h, bias = checkpoint(
                self.block, nn.functional.pad(h, (0, 6 - h.shape[-1])), bias, use_reentrant=self.reentrant
            )
        return h


class ToldInAReentrantCheckpoint(ToldInACheckpoint):
    reentrant = True


class GivenByACheckpoint(ToldInACheckpoint):
    """Declined: what would require a gradient leaves the graph, behind the checkpoint."""

    def forward(self, x):
        return checkpoint(self.block, x[:, None], None, use_reentrant=False)


class LooksBehindACheckpoint(ToldInACheckpoint):
    """Declined: without gradients of its own, another operation gives what requires none."""

    def forward(self, x):
        h, bias = checkpoint(self.block, x[:, None], None, use_reentrant=False)
        return h, bias.exp()


class Made(Told):
    """As the decoder of MaskFormer has its embeddings."""

    def forward(self, x):
        h = torch.zeros_like(x, requires_grad=self.training)
        if self.training:
            h.requires_grad_(True)
        h = x + h
        return self.conv(h[:, None])


class MadeWithout(Made):
    def __init__(self):
        super().__init__()
        self.eval()

    def train(self, mode=True):
        return super().train(False)


class MadeAndGiven(Told):
    def forward(self, x):
        h = torch.ones(2, 6, requires_grad=True)
        return self.conv(x[:, None]), h * 2


class MadeByAFunctionOfItsOwn(Told):
    def forward(self, x):
        h = zeros(x, requires_grad=self.training)
        return self.conv(h[:, None])


def zeros(x, requires_grad):
    return x * 0 + requires_grad
