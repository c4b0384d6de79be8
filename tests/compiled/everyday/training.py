"""Training-script code: losses, schedules, metrics, augmentation, first-batch set-up."""

import contextlib
import logging
import math
import random
from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger("everyday.training")


def xs(n=12, d=8, scale=3.0):
    return lambda: [(torch.randn(4, d) * (1 + scale * (i % 2)),) for i in range(n)]


def labelled(n=12, d=8, classes=5):
    return lambda: [(torch.randn(6, d) * (1 + i % 3), torch.randint(0, classes, (6,))) for i in range(n)]


class HardTriplets(nn.Module):
    """Triplet loss that keeps only the triplets that violate the margin."""

    def __init__(self, margin=0.3):
        super().__init__()
        self.embed = nn.Linear(8, 4)
        self.margin = margin
        self.active_fraction = 0.0

    def forward(self, anchor, positive, negative):
        a, p, n = (F.normalize(self.embed(t), dim=-1) for t in (anchor, positive, negative))
        loss = F.relu((a - p).pow(2).sum(-1) - (a - n).pow(2).sum(-1) + self.margin)
        hard = loss > 0
        self.active_fraction = hard.float().mean().item()
        if not hard.any():
            return loss.sum() * 0.0
        return loss[hard].mean()


class DynamicLossScale(nn.Module):
    def __init__(self, growth_interval=3):
        super().__init__()
        self.head = nn.Linear(8, 1)
        self.loss_scale = 8.0
        self.good_steps = 0
        self.skipped = 0
        self.growth_interval = growth_interval

    def forward(self, x):
        loss = self.head(x).pow(2).mean()
        if not torch.isfinite(loss):
            self.loss_scale = max(self.loss_scale / 2, 1.0)
            self.good_steps = 0
            self.skipped += 1
            logger.info("overflow, loss scale is now %.1f", self.loss_scale)
            return torch.zeros_like(loss)
        self.good_steps += 1
        if self.good_steps % self.growth_interval == 0:
            self.loss_scale *= 2
        return loss * self.loss_scale


class MeanTeacher(nn.Module):
    def __init__(self, decay=0.95):
        super().__init__()
        self.student = nn.Linear(8, 4)
        self.teacher = nn.Linear(8, 4)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.decay = decay
        self.register_buffer("updates", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update_teacher(self):
        self.updates += 1
        decay = min(self.decay, 1 - 1 / (self.updates.item() + 1))
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(decay).add_(s, alpha=1 - decay)

    def forward(self, x):
        if self.training:
            self.update_teacher()
        with torch.no_grad():
            target = self.teacher(x).softmax(-1)
        return F.mse_loss(self.student(x).softmax(-1), target)


class ReducesOnPlateau(nn.Module):
    def __init__(self, patience=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.patience = patience
        self.best = float("inf")
        self.num_bad = 0
        self.lr = 0.1

    def forward(self, x):
        loss = self.net(x).abs().mean()
        if (current := float(loss.detach())) < self.best - 1e-4:
            self.best = current
            self.num_bad = 0
        else:
            self.num_bad += 1
        if self.num_bad > self.patience:
            self.lr = max(self.lr * 0.5, 1e-3)
            self.num_bad = 0
            print(f"reducing lr to {self.lr:g}")
        return loss * self.lr


class CountsPredictions(nn.Module):
    def __init__(self):
        super().__init__()
        self.classifier = nn.Linear(8, 5)
        self.histogram = Counter()

    def forward(self, x):
        logits = self.classifier(x)
        self.histogram.update(logits.argmax(dim=-1).tolist())
        return logits.log_softmax(-1)


class SkipsSpikes(nn.Module):
    """Ignore batches whose loss is far above the recent average."""

    def __init__(self, window=4, factor=2.5):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.recent = deque(maxlen=window)
        self.factor = factor
        self.num_skipped = 0

    def forward(self, x):
        loss = F.mse_loss(self.proj(x), x)
        value = loss.item()
        if len(self.recent) == self.recent.maxlen:
            average = sum(self.recent) / len(self.recent)
            if value > self.factor * average:
                self.num_skipped += 1
                logger.warning("loss spike: %.3f vs. average %.3f", value, average)
                return loss * 0
        self.recent.append(value)
        return loss


def sinkhorn(scores, max_iter=12, tol=1e-2):
    plan = torch.exp(scores - scores.max())
    for it in range(max_iter):
        plan = plan / plan.sum(dim=1, keepdim=True)
        plan = plan / plan.sum(dim=0, keepdim=True)
        error = (plan.sum(dim=1) - plan.shape[1] / plan.shape[0]).abs().max()
        if error < tol:
            break
    else:
        print("sinkhorn did not converge after %d iterations" % max_iter)
    return plan


class GreedyDecoder(nn.Module):
    def __init__(self, vocab=7, eos=0, max_len=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, 8)
        self.cell = nn.Linear(16, 8)
        self.out = nn.Linear(8, vocab)
        nn.init.constant_(self.out.bias[:1].data, 0.45)
        self.eos, self.max_len = eos, max_len

    @torch.no_grad()
    def forward(self, state):
        token = torch.ones(state.size(0), dtype=torch.long)
        finished = torch.zeros(state.size(0), dtype=torch.bool)
        tokens = []
        while len(tokens) < self.max_len:
            state = torch.tanh(self.cell(torch.cat([self.embed(token), state], dim=-1)))
            token = self.out(state).argmax(-1).masked_fill(finished, self.eos)
            tokens.append(token)
            finished = finished | (token == self.eos)
            if finished.all():
                break
        return torch.stack(tokens, dim=1)


class AnnealedGumbel(nn.Module):
    min_temperature = 0.3
    anneal_rate = 0.2

    def __init__(self):
        super().__init__()
        self.to_logits = nn.Linear(8, 6)
        self.codebook = nn.Parameter(torch.randn(6, 8))
        self.num_steps = 0

    @property
    def temperature(self):
        return max(self.min_temperature, math.exp(-self.anneal_rate * self.num_steps))

    def forward(self, x):
        weights = F.gumbel_softmax(self.to_logits(x), tau=self.temperature, hard=not self.training)
        if self.training:
            self.num_steps += 1
            if self.num_steps % 5 == 0:
                logger.info("step %d: temperature %.3f", self.num_steps, self.temperature)
        return weights @ self.codebook


class Mixup(nn.Module):
    def __init__(self, alpha=0.4, prob=0.5):
        super().__init__()
        self.fc = nn.Linear(8, 5)
        self.alpha, self.prob = alpha, prob

    def forward(self, x, y):
        if self.training and random.random() < self.prob:
            lam = float(np.random.beta(self.alpha, self.alpha))
            perm = torch.randperm(x.size(0))
            logits = self.fc(lam * x + (1 - lam) * x[perm])
            return lam * F.cross_entropy(logits, y) + (1 - lam) * F.cross_entropy(logits, y[perm])
        return F.cross_entropy(self.fc(x), y)


def random_erase(images, p=0.6, size=2):
    """images: (B, C, H, W); blank one square in some of the images."""
    out = images.clone()
    _, _, height, width = images.shape
    for i in range(images.size(0)):
        if torch.rand(1).item() > p:
            continue
        top = random.randint(0, height - size)
        left = random.randint(0, width - size)
        out[i, :, top : top + size, left : left + size] = 0
    return out


class ActNorm(nn.Module):
    """Glow's activation normalisation, initialised from the first batch."""

    def __init__(self, features=8):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, features))
        self.log_scale = nn.Parameter(torch.zeros(1, features))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def initialize(self, x):
        with torch.no_grad():
            self.loc.data.copy_(-x.mean(dim=0, keepdim=True))
            self.log_scale.data.copy_(-torch.log(x.std(dim=0, keepdim=True) + 1e-6))

    def forward(self, x):
        if self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        return (x + self.loc) * self.log_scale.exp(), self.log_scale.sum()


class LipschitzLinear(nn.Module):
    """Divide by the largest singular value, but only if it is above one."""

    def __init__(self, max_iters=6):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) * 0.4)
        self.register_buffer("u", F.normalize(torch.randn(8), dim=0))
        self.max_iters = max_iters

    def forward(self, x):
        with torch.no_grad():
            for _ in range(self.max_iters):
                v = F.normalize(self.weight.t() @ self.u, dim=0)
                new_u = F.normalize(self.weight @ v, dim=0)
                delta = (new_u - self.u).norm()
                self.u.copy_(new_u)
                if delta < 1e-2:
                    break
        sigma = torch.dot(self.u, self.weight @ v)
        weight = self.weight / sigma if sigma > 1 else self.weight
        return F.linear(x, weight)


class RevivesDeadUnits(nn.Module):
    def __init__(self, limit=3):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        nn.init.uniform_(self.fc.bias, -6.0, 0.0)
        self.limit = limit
        self.register_buffer("silent_for", torch.zeros(8))

    def forward(self, x):
        h = F.relu(self.fc(x))
        if self.training:
            fired = (h > 0).any(dim=0)
            self.silent_for += 1
            self.silent_for[fired] = 0
            dead = self.silent_for >= self.limit
            if dead.any():
                logger.info(f"reviving {int(dead.sum())} units")
                with torch.no_grad():
                    self.fc.bias[dead] = 0.5
                self.silent_for[dead] = 0
        return h


class ConfusionMeter(nn.Module):
    def __init__(self, num_classes=5):
        super().__init__()
        self.fc = nn.Linear(8, num_classes)
        self.num_classes = num_classes
        self.matrix = np.zeros((num_classes, num_classes), dtype=np.int64)
        self.accuracy = 0.0

    def forward(self, x, y):
        logits = self.fc(x)
        index = (y * self.num_classes + logits.argmax(1)).cpu()
        counts = torch.bincount(index, minlength=self.num_classes**2)
        self.matrix += counts.reshape(self.num_classes, self.num_classes).numpy()
        self.accuracy = float(np.trace(self.matrix) / self.matrix.sum())
        return F.cross_entropy(logits, y)


class PicksBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleDict(
            {
                "small": nn.Linear(8, 4),
                "large": nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)),
            }
        )
        self.used = dict.fromkeys(self.branches, 0)

    def choose(self, x):
        return "large" if x.std().item() > 2.0 else "small"

    def forward(self, x):
        name = self.choose(x)
        self.used[name] += 1
        return self.branches[name](x)


class SlidingMemory(nn.Module):
    """Attention over the frames seen lately, at most `size` of them."""

    def __init__(self, size=10):
        super().__init__()
        self.key = nn.Linear(8, 8)
        self.size = size
        self.memory = None

    def forward(self, frames, reset=False):
        if reset:
            self.memory = None
        if self.memory is None:
            self.memory = frames.detach()
        else:
            self.memory = torch.cat([self.memory, frames.detach()], dim=0)
        if self.memory.size(0) > self.size:
            self.memory = self.memory[-self.size :]
        weights = (frames @ self.key(self.memory).t() / math.sqrt(8)).softmax(-1)
        return weights @ self.memory


class RobustRegression(nn.Module):
    def __init__(self, switch_at=6.0):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.switch_at = switch_at

    def forward(self, x, target):
        prediction = self.fc(x).squeeze(-1)
        loss = F.mse_loss(prediction, target)
        kind = "mse"
        if loss.item() > self.switch_at:
            loss = F.smooth_l1_loss(prediction, target)
            kind = "huber"
        return {"loss": loss, "kind": kind, "outliers": int(((prediction - target).abs() > 3).sum())}


@dataclass
class Stats:
    mean: float
    std: float
    saturated: bool = False


class RecordsStats(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 8)
        self.fc2 = nn.Linear(8, 8)
        self.history = []

    def record(self, h):
        stats = Stats(mean=h.mean().item(), std=h.std().item())
        if h.abs().gt(0.95).float().mean() > 0.4:
            stats.saturated = True
        self.history.append(stats)

    def forward(self, x):
        for fc in (self.fc1, self.fc2):
            x = torch.tanh(fc(x))
            self.record(x.detach())
        return x


@contextlib.contextmanager
def evaluating(module):
    was_training = module.training
    module.eval()
    try:
        yield module
    finally:
        module.train(was_training)


class MonteCarloUncertainty(nn.Module):
    """A clean pass in eval mode; extra noisy passes if the model is unsure."""

    def __init__(self, passes=3):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))
        self.passes = passes

    def forward(self, x):
        with evaluating(self.net):
            probs = self.net(x).softmax(-1)
        confidence = probs.max(-1).values.mean()
        if confidence >= 0.42:
            return probs, torch.zeros(())
        samples = torch.stack([self.net(x).softmax(-1) for _ in range(self.passes)])
        return samples.mean(0), samples.var(0).sum()


CASES = {
    "hard_triplets": {
        "build": HardTriplets,
        "calls": lambda: [
            (
                a := torch.randn(4, 8),
                a + torch.randn(4, 8) * (1.0 if i % 3 else 0.01),
                -a if i % 3 == 0 else torch.randn(4, 8),
            )
            for i in range(12)
        ],
    },
    "dynamic_loss_scale": {
        "build": DynamicLossScale,
        "calls": lambda: [(torch.randn(4, 8) * (float("inf") if i in (2, 7, 8) else 1),) for i in range(12)],
    },
    "mean_teacher": {"build": MeanTeacher, "calls": xs()},
    "reduces_on_plateau": {"build": ReducesOnPlateau, "calls": xs()},
    "counts_predictions": {"build": CountsPredictions, "calls": xs()},
    "skips_spikes": {
        "build": SkipsSpikes,
        "calls": lambda: [(torch.randn(4, 8) * (5 if i in (6, 9) else 1),) for i in range(12)],
    },
    "sinkhorn_again": {
        "build": lambda: sinkhorn,
        "calls": lambda: [(torch.randn(4, 6) * (1 + 5 * (i % 2)),) for i in range(12)],
    },
    "greedy_decoder": {"build": GreedyDecoder, "calls": xs()},
    "annealed_gumbel": {"build": AnnealedGumbel, "calls": xs()},
    "mixup": {"build": Mixup, "calls": labelled()},
    "random_erase": {"build": lambda: random_erase, "calls": lambda: [(torch.randn(3, 2, 5, 5),) for _ in range(12)]},
    "act_norm": {"build": ActNorm, "calls": xs()},
    "lipschitz_linear": {"build": LipschitzLinear, "calls": xs()},
    "revives_dead_units": {"build": RevivesDeadUnits, "calls": xs()},
    "confusion_meter": {"build": ConfusionMeter, "calls": labelled()},
    "picks_branch": {"build": PicksBranch, "calls": xs()},
    "sliding_memory": {
        "build": SlidingMemory,
        "calls": lambda: [(torch.randn(3 + i % 2, 8), i == 8) for i in range(12)],
    },
    "robust_regression": {
        "build": RobustRegression,
        "calls": lambda: [(torch.randn(4, 8), torch.randn(4) * (1 + 4 * (i % 2))) for i in range(12)],
    },
    "records_stats": {"build": RecordsStats, "calls": xs()},
    "monte_carlo_uncertainty": {"build": MonteCarloUncertainty, "calls": xs()},
}

for _case in CASES.values():
    _case["source"] = "a helper's pattern of a training script"
