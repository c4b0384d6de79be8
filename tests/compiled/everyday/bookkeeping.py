"""Small-library code: queues, sampling, clustering, observers, padding, bookkeeping."""

import logging
import random
import time
import warnings
from collections import OrderedDict, defaultdict, namedtuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

log = logging.getLogger("everyday.bookkeeping")


def xs(n=12, d=8, scale=3.0):
    return lambda: [(torch.randn(4, d) * (1 + scale * (i % 2)),) for i in range(n)]


class PackedEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 5, batch_first=True)

    def forward(self, x, lengths):
        order = lengths.argsort(descending=True)
        packed = pack_padded_sequence(x[order], lengths[order].tolist(), batch_first=True)
        out, _ = self.gru(packed)
        out, sizes = pad_packed_sequence(out, batch_first=True)
        pooled = torch.stack([o[:n].mean(0) for o, n in zip(out, sizes.tolist())])
        return pooled[order.argsort()]


class AnomalyDetector(nn.Module):
    """Calibrates a threshold on some batches, then flags rows above it."""

    def __init__(self, calibrate=3):
        super().__init__()
        self.autoencoder = nn.Sequential(nn.Linear(8, 3), nn.Tanh(), nn.Linear(3, 8))
        self.calibrate = calibrate
        self.scores = []
        self.threshold = None

    def forward(self, x):
        score = (self.autoencoder(x) - x).pow(2).mean(-1)
        if self.threshold is None:
            self.scores.extend(score.detach().tolist())
            if len(self.scores) >= self.calibrate * x.size(0):
                self.threshold = torch.tensor(self.scores).quantile(0.9).item()
                log.info("threshold set to %.4f from %d samples", self.threshold, len(self.scores))
            return score, None
        flagged = score > self.threshold
        if flagged.any():
            log.warning("%d anomalies", flagged.sum().item())
        return score, flagged


Transition = namedtuple("Transition", "state reward")


class ReplaysOldBatches(nn.Module):
    def __init__(self, capacity=5):
        super().__init__()
        self.value = nn.Linear(8, 1)
        self.capacity = capacity
        self.position = 0
        self.storage = []

    def push(self, item):
        if len(self.storage) < self.capacity:
            self.storage.append(None)
        self.storage[self.position] = item
        self.position = (self.position + 1) % self.capacity

    def forward(self, state, reward):
        self.push(Transition(state.detach(), reward))
        if len(self.storage) < 3:
            return F.mse_loss(self.value(state).squeeze(-1), reward)
        batch = Transition(*zip(*random.sample(self.storage, 2)))
        states, rewards = torch.cat(batch.state), torch.cat(batch.reward)
        return F.mse_loss(self.value(states).squeeze(-1), rewards)


def sample_top_p(logits, top_p=0.8, temperature=1.0):
    if temperature == 0:
        return logits.argmax(-1)
    probs = torch.softmax(logits / temperature, dim=-1)
    picked = []
    for row in probs:
        values, indices = row.sort(descending=True)
        cut = int((values.cumsum(0) < top_p).sum()) + 1
        values = values[:cut] / values[:cut].sum()
        picked.append(indices[torch.multinomial(values, 1)])
    return torch.cat(picked)


def suppress(boxes, scores, threshold=0.3):
    """Plain non-maximum suppression."""
    x1, y1, x2, y2 = boxes.unbind(1)
    areas = (x2 - x1) * (y2 - y1)
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0].item()
        keep.append(i)
        if order.numel() == 1:
            break
        rest = order[1:]
        w = (torch.minimum(x2[rest], x2[i]) - torch.maximum(x1[rest], x1[i])).clamp(min=0)
        h = (torch.minimum(y2[rest], y2[i]) - torch.maximum(y1[rest], y1[i])).clamp(min=0)
        iou = w * h / (areas[rest] + areas[i] - w * h)
        order = rest[iou <= threshold]
    return torch.tensor(keep)


class ContrastiveQueue(nn.Module):
    def __init__(self, size=12, dim=4):
        super().__init__()
        self.encoder = nn.Linear(8, dim)
        self.size = size
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=1))
        self.register_buffer("ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def enqueue(self, keys):
        ptr = int(self.ptr)
        self.queue[ptr : ptr + keys.shape[0]] = keys
        self.ptr[0] = (ptr + keys.shape[0]) % self.size

    def forward(self, x):
        q = F.normalize(self.encoder(x), dim=1)
        k = F.normalize(self.encoder(x + 0.1 * torch.randn_like(x)), dim=1).detach()
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().t()], dim=1) / 0.2
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(x.size(0), dtype=torch.long))


class Tracked(nn.Module):
    """Base class that numbers the calls of all blocks."""

    total_calls = 0

    def forward(self, x):
        Tracked.total_calls += 1
        return self.run(x)


class TrackedBlock(Tracked):
    def __init__(self, dim=8):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.last_call = -1

    def run(self, x):
        self.last_call = Tracked.total_calls
        if Tracked.total_calls % 4 == 0:
            print("{} blocks run".format(Tracked.total_calls))
        return x + F.silu(self.fc(x))


def every(n):
    """A function that prints what it is given every n-th time."""
    count = 0

    def report(name, value):
        nonlocal count
        count += 1
        if count % n == 0:
            print(f"[{count:03d}] {name}: {value:.4f}")

    return report


class ReportsEveryFew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.report = every(4)

    def forward(self, x):
        h = self.fc(x)
        reconstruction = F.mse_loss(h, x)
        sparsity = h.abs().mean()
        loss = reconstruction + 0.1 * sparsity
        self.report("loss", loss.item())
        return loss


class StopWatch:
    def __init__(self):
        self._spent = defaultdict(float)
        self.counts = defaultdict(int)

    def __call__(self, name):
        self.current = name
        return self

    def __enter__(self):
        self._start = time.time()

    def __exit__(self, *exc):
        self._spent[self.current] += time.time() - self._start
        self.counts[self.current] += 1


class TimesItsStages(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(8, 4), nn.Linear(4, 8)
        self._watch = StopWatch()

    def forward(self, x):
        with self._watch("down"):
            h = F.relu(self.down(x))
        with self._watch("up"):
            y = self.up(h)
        if self._watch.counts["up"] % 6 == 0:
            log.info("stages timed: %s", sorted(self._watch.counts.items()))
        return y


class FreeBits(nn.Module):
    """A VAE head: KL warm-up, and no pressure while the KL is below the free bits."""

    def __init__(self, free_bits=0.5, warmup=6):
        super().__init__()
        self.mu, self.logvar = nn.Linear(8, 3), nn.Linear(8, 3)
        self.decode = nn.Linear(3, 8)
        self.free_bits, self.warmup = free_bits, warmup
        self.global_step = 0
        self.metrics = {}

    def forward(self, x):
        mu, logvar = self.mu(x), self.logvar(x).clamp(-4, 4)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        rec = F.mse_loss(self.decode(z), x)
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(-1).mean()
        if kl < self.free_bits:
            kl = kl.detach()
        beta = min(1.0, self.global_step / self.warmup)
        self.global_step += 1
        self.metrics.update(rec=rec.item(), kl=kl.item(), beta=beta)
        return rec + beta * kl


class StochasticDepth(nn.Module):
    def __init__(self, depth=3, final_survival=0.5):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8)) for _ in range(depth))
        self.survival = [1 - (i + 1) / depth * (1 - final_survival) for i in range(depth)]
        self.kept = 0

    def forward(self, x):
        for block, p in zip(self.blocks, self.survival):
            if not self.training:
                x = x + p * block(x)
            elif torch.rand(1).item() < p:
                x = x + block(x)
                self.kept += 1
        return x


class Curriculum(nn.Module):
    """Trains on the easiest part of the batch, and on more of it over time."""

    def __init__(self, start=0.25, grow=0.1):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.fraction, self.grow = start, grow

    def forward(self, x, y):
        losses = F.cross_entropy(self.fc(x), y, reduction="none")
        k = max(1, int(self.fraction * len(losses)))
        easiest, _ = torch.topk(losses, k, largest=False)
        loss = easiest.mean()
        if loss.item() < 1.2:
            self.fraction = min(1.0, self.fraction + self.grow)
        return loss


class AcceptsAnything(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.kinds = {}

    def forward(self, batch):
        if isinstance(batch, dict):
            x, mask = batch["x"], batch.get("mask")
        elif isinstance(batch, (list, tuple)):
            x, mask = batch[0], batch[1] if len(batch) > 1 else None
        else:
            x, mask = batch, None
        kind = type(batch).__name__
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        h = self.fc(x)
        if mask is not None:
            if not mask.any():
                warnings.warn("the mask is empty")
                return h.sum() * 0
            h = h * mask.unsqueeze(-1)
        return h.mean()


class StopTraining(Exception):
    pass


class EarlyStopping(nn.Module):
    def __init__(self, patience=4):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.patience, self.counter = patience, 0
        self.best_loss = None

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        value = loss.detach().item()
        if self.best_loss is None or value < self.best_loss:
            self.best_loss, self.counter = value, 0
            return loss
        self.counter += 1
        log.info("EarlyStopping counter: %d out of %d", self.counter, self.patience)
        if self.counter >= self.patience:
            raise StopTraining(f"no improvement in {self.patience} steps, best {self.best_loss:.3f}")
        return loss


class LagrangeController(nn.Module):
    """Keeps the entropy near a target with a multiplier that is a plain number."""

    def __init__(self, target=1.2, rate=0.5):
        super().__init__()
        self.policy = nn.Linear(8, 4)
        self.target, self.rate = target, rate
        self.multiplier = 1.0

    def forward(self, obs, advantage):
        logp = self.policy(obs).log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        loss = -(logp.max(-1).values * advantage).mean() - self.multiplier * entropy
        gap = self.target - float(entropy.detach())
        if abs(gap) > 0.05:
            self.multiplier = min(max(self.multiplier + self.rate * gap, 0.0), 10.0)
        return loss


class FakeQuantize(nn.Module):
    def __init__(self, bits=8, observe_for=6):
        super().__init__()
        self.levels = 2**bits - 1
        self.observe_for = observe_for
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))
        self.register_buffer("num_batches", torch.tensor(0))

    def forward(self, x):
        if self.training and self.num_batches < self.observe_for:
            self.min_val.copy_(torch.minimum(self.min_val, x.min()))
            self.max_val.copy_(torch.maximum(self.max_val, x.max()))
            self.num_batches += 1
        scale = (self.max_val - self.min_val).item() / self.levels
        if scale == 0:
            return x
        zero_point = round(-self.min_val.item() / scale)
        q = torch.clamp(torch.round(x / scale) + zero_point, 0, self.levels)
        return (q - zero_point) * scale


def kmeans(x, k=3, iters=8, tol=1e-3):
    centers = x[torch.randint(x.shape[0], (k,))].clone()
    for step in range(iters):
        assignment = torch.cdist(x, centers).argmin(dim=1)
        old = centers.clone()
        for j in range(k):
            members = x[assignment == j]
            if len(members) == 0:
                centers[j] = x[random.randrange(x.shape[0])]
            else:
                centers[j] = members.mean(dim=0)
        if torch.allclose(centers, old, atol=tol):
            break
    return centers, assignment


class MaskedLanguageLoss(nn.Module):
    def __init__(self, vocab=6, ignore_index=-100):
        super().__init__()
        self.head = nn.Linear(8, vocab)
        self.ignore_index = ignore_index
        self.correct = self.total = 0

    def forward(self, hidden, labels):
        logits = self.head(hidden)
        valid = labels != self.ignore_index
        if valid.sum() == 0:
            return logits.sum() * 0.0
        with torch.no_grad():
            hits = (logits.argmax(-1) == labels)[valid]
            self.correct += hits.sum().item()
            self.total += hits.numel()
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=self.ignore_index)


class ScoresPerClass(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.per_class = {}

    def forward(self, x, y):
        scores = torch.sigmoid(self.fc(x)).squeeze(-1)
        for label, score in zip(y.tolist(), scores.tolist()):
            try:
                self.per_class[label].append(round(score, 4))
            except KeyError:
                self.per_class[label] = [round(score, 4)]
        return scores.mean()


class CachesEmbeddings(nn.Module):
    """An LRU cache of rows, by id."""

    def __init__(self, capacity=4):
        super().__init__()
        self.table = nn.Embedding(8, 6)
        self.capacity = capacity
        self.cache = OrderedDict()
        self.hits = self.misses = 0

    def lookup(self, key):
        if key in self.cache:
            self.hits += 1
            self.cache.move_to_end(key)
            return self.cache[key]
        self.misses += 1
        row = self.table.weight[key].detach()
        self.cache[key] = row
        if len(self.cache) > self.capacity:
            self.cache.popitem(last=False)
        return row

    def forward(self, ids):
        return torch.stack([self.lookup(i) for i in ids.tolist()])


def labels_with_gaps(i):
    y = torch.randint(0, 6, (2, 5))
    y[torch.rand(2, 5) < (1.1 if i % 4 == 3 else 0.5)] = -100
    return y


def boxes(n=6):
    corner = torch.rand(n, 2) * 4
    return torch.cat([corner, corner + 1 + torch.rand(n, 2) * 2], dim=1)


def any_batch(i):
    x = torch.randn(4, 8)
    return [x, {"x": x, "mask": torch.rand(4) < 0.5}, (x, torch.zeros(4, dtype=torch.bool)), [x]][i % 4]


CASES = {
    "packed_encoder": {
        "build": PackedEncoder,
        "calls": lambda: [(torch.randn(3, 7, 6), torch.randint(1, 8, (3,))) for _ in range(12)],
    },
    "anomaly_detector": {"build": AnomalyDetector, "calls": xs()},
    "replays_old_batches": {
        "build": ReplaysOldBatches,
        "calls": lambda: [(torch.randn(4, 8), torch.rand(4)) for _ in range(12)],
    },
    "sample_top_p": {
        "build": lambda: sample_top_p,
        "calls": lambda: [(torch.randn(3, 10) * 2, 0.8, 0 if i % 4 == 3 else 1.0) for i in range(12)],
    },
    "suppress": {"build": lambda: suppress, "calls": lambda: [(boxes(), torch.rand(6)) for _ in range(12)]},
    "contrastive_queue": {"build": ContrastiveQueue, "calls": xs()},
    "tracked_block": {"build": TrackedBlock, "calls": xs()},
    "reports_every_few": {"build": ReportsEveryFew, "calls": xs()},
    "times_its_stages": {"build": TimesItsStages, "calls": xs()},
    "free_bits": {"build": FreeBits, "calls": xs()},
    "stochastic_depth_again": {"build": StochasticDepth, "calls": xs()},
    "curriculum": {
        "build": Curriculum,
        "calls": lambda: [(torch.randn(8, 8), torch.randint(0, 4, (8,))) for _ in range(12)],
    },
    "accepts_anything": {"build": AcceptsAnything, "calls": lambda: [(any_batch(i),) for i in range(12)]},
    "early_stopping_again": {"build": EarlyStopping, "calls": xs()},
    "lagrange_controller": {
        "build": LagrangeController,
        "calls": lambda: [(torch.randn(4, 8) * (1 + i % 2), torch.randn(4)) for i in range(12)],
    },
    "fake_quantize": {"build": FakeQuantize, "calls": lambda: [(torch.randn(4, 8) * min(i, 3),) for i in range(12)]},
    "kmeans": {
        "build": lambda: kmeans,
        "calls": lambda: [(torch.randn(10, 2) + 3 * torch.randint(0, 3, (10, 1)),) for _ in range(12)],
    },
    "caches_embeddings": {
        "build": CachesEmbeddings,
        "calls": lambda: [(torch.randint(0, 8, (3,)),) for _ in range(12)],
    },
    "masked_language_loss": {
        "build": MaskedLanguageLoss,
        "calls": lambda: [(torch.randn(2, 5, 8), labels_with_gaps(i)) for i in range(12)],
    },
    "scores_per_class": {
        "build": ScoresPerClass,
        "calls": lambda: [(torch.randn(5, 8), torch.randint(0, 6, (5,))) for _ in range(12)],
    },
}

for _case in CASES.values():
    _case["source"] = "a helper's pattern of a small library"
