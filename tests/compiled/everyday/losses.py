"""Losses and updates in which the data decides what there is: classes that are absent, rows that count, steps that end.

Written from memory, after what each names as its source.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class TokensByExpert(nn.Module):
    """Tokens sorted by expert; an expert without tokens is passed over."""

    def __init__(self, n=4, k=2):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
        self.gate = nn.Linear(8, n, bias=False)
        self.k = k

    def forward(self, hidden_states):
        scores = self.gate(hidden_states).softmax(-1)
        topk_weight, topk_idx = torch.topk(scores, k=self.k, dim=-1, sorted=False)
        return self.moe_infer(hidden_states, topk_idx, topk_weight) + hidden_states

    @torch.no_grad()
    def moe_infer(self, x, topk_ids, topk_weight):
        flat = topk_ids.view(-1)
        tokens_per_expert = torch.bincount(flat, minlength=len(self.experts)).tolist()
        idxs = flat.argsort()
        sorted_tokens = x[idxs // topk_ids.shape[1]]
        outputs = []
        start_idx = 0
        for i, num_tokens in enumerate(tokens_per_expert):
            end_idx = start_idx + num_tokens
            if num_tokens == 0:
                continue
            outputs.append(self.experts[i](sorted_tokens[start_idx:end_idx]))
            start_idx = end_idx
        outs = torch.cat(outputs, dim=0) if outputs else sorted_tokens.new_empty(0)
        new_x = torch.empty_like(outs)
        new_x[idxs] = outs
        return (new_x.view(*topk_ids.shape, -1) * topk_weight.unsqueeze(-1)).sum(1)


class Ohem(nn.Module):
    """SSD's hard negative mining."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)

    def forward(self, x, gt):
        loss = F.binary_cross_entropy_with_logits(self.head(x), gt, reduction="none").flatten()
        pos = gt.flatten() > 0
        num_pos = int(pos.sum())
        num_neg = min(3 * num_pos, int((~pos).sum()))
        neg = loss[~pos]
        hard, _ = neg.topk(num_neg)
        return (loss[pos].sum() + hard.sum()) / max(num_pos, 1)


class MemoryIndex(nn.Module):
    """By index, as many do it."""

    def __init__(self, size=10):
        super().__init__()
        self.size, self.index = size, 0
        self.register_buffer("bank", torch.zeros(size, 8))

    def forward(self, x):
        out = x @ self.bank.t()
        with torch.no_grad():
            ids = torch.arange(x.shape[0]).add_(self.index).fmod_(self.size).long()
            self.bank.index_copy_(0, ids, x)
            self.index = (self.index + x.shape[0]) % self.size
        return out


class PPO(nn.Module):
    def __init__(self, clip=0.2, target_kl=0.05, epochs=3):
        super().__init__()
        self.pi = nn.Linear(8, 3)
        self.v = nn.Linear(8, 1)
        self.clip, self.target_kl, self.epochs = clip, target_kl, epochs

    def forward(self, obs, act, old_logp, adv, ret):
        clipfracs, kls = [], []
        total = 0.0
        for epoch in range(self.epochs):
            logp = torch.distributions.Categorical(logits=self.pi(obs)).log_prob(act)
            ratio = (logp - old_logp).exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - (logp - old_logp)).mean()
                clipfracs.append(((ratio - 1).abs() > self.clip).float().mean().item())
                kls.append(approx_kl.item())
            pg = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - self.clip, 1 + self.clip)).mean()
            vl = 0.5 * (self.v(obs).squeeze(-1) - ret).pow(2).mean()
            total = total + pg + 0.5 * vl
            if approx_kl > 1.5 * self.target_kl:
                break
        return total, {"clipfrac": sum(clipfracs) / len(clipfracs), "kl": sum(kls) / len(kls), "epochs": epoch + 1}


class Scaler(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.scale, self.good, self.skipped = 1024.0, 0, 0

    def forward(self, x):
        loss = self.fc(x).pow(2).mean() * self.scale
        if not torch.isfinite(loss).all():
            self.scale = max(self.scale * 0.5, 1.0)
            self.good = 0
            self.skipped += 1
            return loss.new_zeros(())
        self.good += 1
        if self.good % 4 == 0:
            self.scale *= 2
        return loss / self.scale


class SWA(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.register_buffer("n_averaged", torch.tensor(0))
        self.register_buffer("avg", torch.zeros(8, 8))

    def forward(self, x):
        with torch.no_grad():
            if self.n_averaged == 0:
                self.avg.copy_(self.fc.weight)
            else:
                self.avg.add_((self.fc.weight - self.avg) / (self.n_averaged + 1))
            self.n_averaged += 1
        return F.linear(x, self.avg) + self.fc(x)


class EarlyExit(nn.Module):
    def __init__(self, n=4, thr=0.6):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
        self.heads = nn.ModuleList(nn.Linear(8, 3) for _ in range(n))
        self.thr = thr
        self.exits = [0] * n

    def forward(self, x):
        for i, (b, h) in enumerate(zip(self.blocks, self.heads)):
            x = torch.tanh(b(x))
            logits = h(x)
            if logits.softmax(-1).max(-1).values.min() > self.thr:
                self.exits[i] += 1
                return logits
        return logits


class Confidence(nn.Module):
    """pseudo labels"""

    def __init__(self, thr=0.4):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.thr = thr
        self.used = []

    def forward(self, x, xu):
        with torch.no_grad():
            p, pl = self.fc(xu).softmax(-1).max(-1)
            mask = p.ge(self.thr)
        self.used.append(mask.float().mean().item())
        if mask.any():
            lu = F.cross_entropy(self.fc(xu)[mask], pl[mask])
        else:
            lu = torch.tensor(0.0)
        return self.fc(x).pow(2).mean() + lu


class Ignore(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, y):
        mask = y != -100
        if mask.sum() == 0:
            return self.fc(x).sum() * 0.0
        logits = self.fc(x)[mask]
        return F.cross_entropy(logits, y[mask])


class ClipParams(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        out = self.fc(x)
        norm = torch.norm(torch.stack([p.detach().norm() for p in self.parameters()]))
        coef = 1.0 / (norm + 1e-6)
        if coef < 1:
            out = out * coef
        return out, norm.item()


class PerImage(nn.Module):
    """detection loss per image, images without targets"""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, valid):
        losses = []
        for b in range(x.shape[0]):
            tgt = x[b][valid[b]]
            if tgt.shape[0] == 0:
                losses.append(x[b].sum() * 0)
                continue
            losses.append(self.fc(tgt).pow(2).mean())
        return torch.stack(losses).mean()


class Contrast(nn.Module):
    """supervised contrastive: anchors without positives are left out"""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x, y):
        z = F.normalize(self.fc(x), dim=1)
        sim = z @ z.t() / 0.1
        total, n = 0.0, 0
        for i in range(len(y)):
            pos = (y == y[i]) & (torch.arange(len(y)) != i)
            if pos.sum() == 0:
                continue
            total += -(sim[i][pos].mean() - sim[i].logsumexp(0))
            n += 1
        return total / n if n > 0 else sim.sum() * 0


class Dice(nn.Module):
    def forward(self, p, y):
        p = p.softmax(1)
        dices = []
        for c in range(p.shape[1]):
            t = (y == c).float()
            if t.sum() == 0 and p[:, c].sum() < 0.1:
                continue
            dices.append((2 * (p[:, c] * t).sum() + 1e-5) / (p[:, c].sum() + t.sum() + 1e-5))
        return 1 - torch.mean(torch.stack(dices))


class Hard(nn.Module):
    """hardest negatives where there are some"""

    def forward(self, d, y):
        losses = []
        for i in range(d.shape[0]):
            neg = d[i][y != y[i]]
            pos = d[i][y == y[i]]
            if neg.numel() > 0 and pos.numel() > 0:
                losses.append(F.relu(pos.max() - neg.min() + 0.2))
        if len(losses) == 0:
            return d.sum() * 0
        return torch.stack(losses).mean()


class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.correct = 0
        self.total = 0
        self.per_class = {c: [0, 0] for c in range(4)}

    def forward(self, x, y):
        out = self.fc(x)
        pred = out.argmax(1)
        self.correct += (pred == y).sum().item()
        self.total += y.size(0)
        for c in range(4):
            m = y == c
            self.per_class[c][0] += (pred[m] == c).sum().item()
            self.per_class[c][1] += m.sum().item()
        return F.cross_entropy(out, y), self.correct / self.total


def rows(n=6, classes=4):
    return lambda: [(torch.randn(n, 8) * (1 + 3 * (i % 2)), torch.randint(0, classes - i % 2, (n,))) for i in range(12)]


def inputs(n=6):
    return lambda: [(torch.randn(n, 8) * (1 + 3 * (i % 2)),) for i in range(12)]


def maps():
    return [(torch.randn(4, 8), (torch.rand(4, 8) < (0.2, 0.0, 0.6)[i % 3]).float()) for i in range(12)]


def episodes():
    calls = []
    for i in range(12):
        advantage = torch.randn(16) * (1 + i % 3)
        calls.append(
            (torch.randn(16, 8), torch.randint(0, 3, (16,)), -torch.rand(16) - 0.7, advantage, torch.randn(16))
        )
    return calls


def overflowing():
    return [(torch.randn(4, 8) * (float("inf") if i % 5 == 3 else 1),) for i in range(12)]


def unlabelled():
    return [(torch.randn(6, 8), torch.randn(6, 8) * (0.1 if i % 3 == 2 else 2)) for i in range(12)]


def partly_labelled():
    calls = []
    for i in range(12):
        is_ignored = torch.rand(6) < (1.1 if i % 4 == 3 else 0.4)
        calls.append((torch.randn(6, 8), torch.where(is_ignored, -100, torch.randint(0, 4, (6,)))))
    return calls


def images():
    return [(torch.randn(3, 6, 8), torch.rand(3, 6) < (0.5 if i % 3 else 0.1)) for i in range(12)]


def distances():
    return [(torch.rand(6, 6), torch.randint(0, 1 + i % 4, (6,))) for i in range(12)]


def segmented():
    return [(torch.randn(2, 4, 5), torch.randint(0, 1 + i % 4, (2, 5))) for i in range(12)]


CASES = {
    "tokens_by_expert": {
        "build": lambda: TokensByExpert().eval(),
        "calls": inputs(),
        "source": "DeepSeek-V2, modeling_deepseek.py, moe_infer",
    },
    "hard_negatives": {
        "build": Ohem,
        "calls": maps,
        "source": "SSD in PyTorch, multibox_loss.py, hard negative mining",
    },
    "memory_by_index": {"build": MemoryIndex, "calls": inputs(4), "source": "CMC, memory.py, MemoryMoCo"},
    "ppo_early_stop": {"build": PPO, "calls": episodes, "source": "CleanRL, ppo.py, the update with target_kl"},
    "skips_overflow": {"build": Scaler, "calls": overflowing, "source": "DeepSpeed, loss_scaler.py, DynamicLossScaler"},
    "swa_in_buffer": {
        "build": SWA,
        "calls": inputs(4),
        "source": "torch.optim.swa_utils, AveragedModel.update_parameters",
    },
    "exits_early": {"build": EarlyExit, "calls": inputs(2), "source": "DeeBERT, modeling_highway_bert.py"},
    "fixmatch": {"build": Confidence, "calls": unlabelled, "source": "FixMatch in PyTorch, train.py"},
    "active_loss": {
        "build": Ignore,
        "calls": partly_labelled,
        "source": "transformers, token classification heads: active_loss",
    },
    "clips_by_norm": {
        "build": ClipParams,
        "calls": inputs(4),
        "source": "torch.nn.utils.clip_grad_norm_, of parameters",
    },
    "per_image": {"build": PerImage, "calls": images, "source": "torchvision, detection losses per image"},
    "sup_con_loop": {"build": Contrast, "calls": rows(), "source": "SupContrast, losses.py, anchors without positives"},
    "dice_of_present": {
        "build": Dice,
        "calls": segmented,
        "source": "MONAI and others: the mean over the classes that are there",
    },
    "batch_hard": {"build": Hard, "calls": distances, "source": "open-reid, triplet.py, batch hard"},
    "per_class": {
        "build": Stats,
        "calls": rows(),
        "source": "a training loop's accuracy per class, as in PyTorch's CIFAR-10 tutorial",
    },
}
