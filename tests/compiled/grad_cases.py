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


class Unused(Told):
    """Dynamo drops the view."""

    def forward(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.conv(x[:, None])


class MadeInACall(Told):
    def forward(self, x):
        h = torch.zeros_like(x).requires_grad_()
        return self.conv((x + h)[:, None])


class MadeInACallAndGiven(Told):
    def forward(self, x):
        h = torch.zeros_like(x).requires_grad_()
        return self.conv(x[:, None]), h


class MadeInACallAndWritten(Told):
    """Eager lets nobody write to what it has told."""

    def forward(self, x):
        h = torch.zeros_like(x).requires_grad_()
        self.into(h)
        return self.conv(h[:, None])

    def into(self, t):
        t += 1


class Returned(Told):
    """As the attention of Mra is without its kernels."""

    def attention(self, query):
        return torch.zeros_like(query).requires_grad_(True)

    def forward(self, x):
        h = self.attention(x)[:, :5]
        return self.conv(h.reshape(2, 1, 5))


class ReturnedToTheCaller(Told):
    def forward(self, x):
        return torch.zeros_like(x[:, :3]).requires_grad_()


class ReturnedAndAsked(Returned):
    def forward(self, x):
        h = self.attention(x)
        return self.conv(h[:, None]) * (2 if getattr(h, "requires_grad") else 3)  # noqa: B009


class ReturnedAndAskedForItsFunction(Returned):
    def forward(self, x):
        h = self.attention(x)[:, None]
        return self.conv(h) * (2 if h.grad_fn is None else 3)


class ReturnedAndAskedForALeaf(Returned):
    def forward(self, x):
        h = self.attention(x)[:, None]
        return self.conv(h) * (2 if h.is_leaf else 3)


class ReturnedAndHooked(Returned):
    def forward(self, x):
        h = self.attention(x)
        h.register_hook(lambda grad: grad * 2)
        return self.conv(h[:, None])


class ReturnedAndRetained(Returned):
    def forward(self, x):
        h = self.attention(x)
        h.retain_grad()
        return self.conv(h[:, None])


class OffForAPart(Told):
    """As Xcodec calls the model that hears for it."""

    def encoded(self, x):
        h = x[:, None]
        h.requires_grad = True
        return self.conv(h).relu()

    def forward(self, x):
        with torch.no_grad():
            h = self.encoded(x)
        return self.conv(h.reshape(4, 1, -1))


class ToldWhileOff(Told):
    """Declined: it is used with gradients afterwards."""

    def forward(self, x):
        with torch.no_grad():
            h = x[:, None]
            h.requires_grad = True
        return h.sum()


class ViewedWhileOff(Told):
    """Declined: a view that is made without gradients, of a tensor that has one, cannot be written to."""

    def forward(self, x):
        with torch.no_grad():
            h = x * 2
            h.requires_grad = True
            part = h[:1]
        part.mul_(2)
        return self.conv(part[:, None])


class OnWhileOff(Told):
    """Declined: gradients are on for a part of what is off."""

    def forward(self, x):
        with torch.no_grad():
            h = x * 2
            h.requires_grad = True
            with torch.enable_grad():
                part = h * 3
        return part


class InferenceForAPart(Told):
    """Declined: what is computed behind inference mode has a gradient in eager."""

    def forward(self, x):
        with torch.inference_mode():
            h = x * 2
            h.requires_grad = True
        return h * 3


class InferenceIsOff(Told):
    @torch.no_grad()
    def forward(self, x):
        h = x * 2
        h.requires_grad = True
        with torch.inference_mode(False):
            part = h * 3
        return part


class OffAgain(Told):
    """Declined: it is used with gradients between two parts without."""

    def forward(self, x):
        with torch.no_grad():
            h = x * 2
            h.requires_grad = True
        part = h.exp()
        with torch.no_grad():
            rest = h * 3
        return part + rest


class MadeByAFunctionOfItsOwn(Told):
    def forward(self, x):
        h = zeros(x, requires_grad=self.training)
        return self.conv(h[:, None])


def zeros(x, requires_grad):
    return x * 0 + requires_grad


class Kept(Told):
    """As VectorQuantize has the loss that it adds others to: from the first call on, its buffer has a gradient."""

    def __init__(self):
        super().__init__()
        self.register_buffer("zero", torch.tensor(0.0))

    def forward(self, x):
        asks = x.requires_grad
        h = self.conv(x[:, None])
        loss = self.zero
        if self.training:
            loss.requires_grad_()
            loss = loss + h.square().mean()
        return loss * (2 if asks else 3)


class KeptAndAskedBefore(Kept):
    def forward(self, x):
        loss = self.zero
        factor = 2 if loss.requires_grad else 3
        if not loss.requires_grad:
            loss.requires_grad_()
        return self.conv(x[:, None]) * factor + loss


class KeptAndAskedLater(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        other = self.zero * 2
        return x.sum() * other * (2 if other.requires_grad else 3)


class KeptOfTwoModules(Kept):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Kept(), Kept()])

    def forward(self, x):
        return self.layers[0](x) + self.layers[1](x * 2)


class KeptUnderTwoNames(Kept):
    def forward(self, x):
        loss, again = self.zero, self.zero
        loss.requires_grad_()
        again.requires_grad_()
        return self.conv(x[:, None]).sum() + loss + again * 2


class KeptAndUsedBefore(Kept):
    """Declined: what was computed of it before has no gradient."""

    def forward(self, x):
        before = self.zero * 2
        loss = self.zero
        loss.requires_grad_()
        return self.conv(x[:, None]).sum() + before + loss * 3


class KeptAndReturned(Kept):
    """Declined: the graph does not use it."""

    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        return self.conv(x[:, None]), loss


class KeptAndWritten(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        self.into(loss)
        return self.conv(x[:, None]) + loss

    def into(self, t):
        t += 1


class KeptAndWrittenWhileOff(KeptAndWritten):
    def into(self, t):
        with torch.no_grad():
            t += 1


class KeptOfWholeNumbers(Kept):
    def forward(self, x):
        loss = self.conv.bias.long()
        self.of(loss)
        return self.conv(x[:, None])

    def of(self, loss):
        loss.requires_grad_()


class KeptBeforeABreak(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        loss = loss + x.mean()
        torch._dynamo.graph_break()
        return loss * self.conv(x[:, None]).sum()


class KeptBehindABreak(Kept):
    def forward(self, x):
        h = self.conv(x[:, None])
        torch._dynamo.graph_break()
        loss = self.zero
        loss.requires_grad_()
        return loss + h.sum()


class KeptWhileOff(Kept):
    @torch.no_grad()
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        return loss + self.conv(x[:, None]).sum()


class KeptBehindAGuard(Kept):
    """Declined: where the guard raises, eager has not told it."""

    def forward(self, x):
        if x.sum() > 40:
            raise ValueError("too much")
        loss = self.zero
        loss.requires_grad_()
        return loss + self.conv(x[:, None]).sum()


class KeptBeforeAGuard(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        if x.sum() > 40:
            raise ValueError("too much")
        return loss + self.conv(x[:, None]).sum()


class KeptBeforeAFailure(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        loss = loss + self.conv(x[:, None]).sum()
        return loss + x.flatten()[x.sum().long() - 30]


class KeptBehindAFailure(Kept):
    def forward(self, x):
        h = x.flatten()[x.sum().long() - 30]
        loss = self.zero
        loss.requires_grad_()
        return loss + self.conv(x[:, None]).sum() + h


class KeptAndViewed(Kept):
    def __init__(self):
        super().__init__()
        self.part = self.zero.view(1)

    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        return self.conv(x[:, None]) + loss + self.part * 2


class KeptAView(KeptAndViewed):
    def forward(self, x):
        loss = self.part
        loss.requires_grad_()
        return self.conv(x[:, None]) + loss + self.zero * 2


class KeptAndHooked(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        loss.register_hook(lambda grad: grad * 2)
        return self.conv(x[:, None]) + loss


class KeptAndDetached(Kept):
    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        return self.conv(x[:, None]) + loss.detach() + self.zero.data


class KeptInACheckpoint(Kept):
    def block(self, x):
        loss = self.zero
        loss.requires_grad_()
        return self.conv(x[:, None]) + loss

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


class KeptInALoop(Kept):
    def forward(self, x):
        total = self.conv(x[:, None]).sum()
        for _ in range(3):
            loss = self.zero
            loss.requires_grad_()
            total = total + loss
        return total


class KeptAndCounted(Kept):
    """The buffer is another tensor from each call on."""

    def forward(self, x):
        loss = self.zero
        loss.requires_grad_()
        total = self.conv(x[:, None]) + loss
        self.zero = loss.detach() + 1
        return total


class FrozenWeight(Told):
    def __init__(self):
        super().__init__()
        self.conv.requires_grad_(False)

    def forward(self, x):
        weight = self.conv.weight
        weight.requires_grad_()
        return self.conv(x[:, None])
