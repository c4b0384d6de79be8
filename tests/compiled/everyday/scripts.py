"""Pieces of training scripts and of small libraries, written by somebody who had not seen this package."""

import logging
import math
import random
import warnings
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger(__name__)


# --- adaptive computation time -------------------------------------------


class PonderCell(nn.Module):
    """Universal-transformer style halting."""

    def __init__(self, dim=8, threshold=0.9, max_hops=6):
        super().__init__()
        self.step = nn.Linear(dim, dim)
        self.p = nn.Linear(dim, 1)
        self.p.bias.data.fill_(-0.5)
        self.threshold = threshold
        self.max_hops = max_hops

    def forward(self, state):
        halting = torch.zeros(state.size(0))
        remainders = torch.zeros_like(halting)
        n_updates = torch.zeros_like(halting)
        out = torch.zeros_like(state)
        hop = 0
        while ((halting < self.threshold) & (n_updates < self.max_hops)).byte().any():
            p = torch.sigmoid(self.p(state)).squeeze(-1)
            running = (halting < 1.0).float()
            new_halted = (halting + p * running > self.threshold).float() * running
            running = (halting + p * running <= self.threshold).float() * running
            halting = halting + p * running
            remainders = remainders + new_halted * (1 - halting)
            halting = halting + new_halted * remainders
            n_updates = n_updates + running + new_halted
            w = p * running + new_halted * remainders
            state = torch.tanh(self.step(state))
            out = state * w.unsqueeze(-1) + out * (1 - w.unsqueeze(-1))
            hop += 1
        return out, (remainders + n_updates).mean(), hop


def ponder_calls():
    torch.manual_seed(1)
    return [(torch.randn(3, 8) * (0.2 if i % 3 else 4.0),) for i in range(12)]


# --- vector quantizer ------------------------------------------------------


class EMAQuantizer(nn.Module):
    def __init__(self, dim=4, n_codes=6, decay=0.8, dead_below=0.3):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.decay, self.dead_below = decay, dead_below
        self.register_buffer("inited", torch.tensor(False))
        self.register_buffer("embed", torch.zeros(n_codes, dim))
        self.register_buffer("cluster_size", torch.ones(n_codes))

    @torch.no_grad()
    def _update(self, flat, onehot):
        self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        means = onehot.t() @ flat / onehot.sum(0).clamp(min=1).unsqueeze(1)
        used = onehot.sum(0) > 0
        self.embed[used] = self.decay * self.embed[used] + (1 - self.decay) * means[used]
        dead = self.cluster_size < self.dead_below
        if dead.any():
            self.embed[dead] = flat[: int(dead.sum())]
            self.cluster_size[dead] = 1.0

    def forward(self, z):
        flat = self.proj(z)
        if self.training and not self.inited:
            self.embed.copy_(flat.detach()[: self.embed.size(0)])
            self.inited.fill_(True)
        idx = torch.cdist(flat.detach(), self.embed).argmin(-1)
        onehot = F.one_hot(idx, self.embed.size(0)).float()
        quant = self.embed[idx]
        if self.training:
            self._update(flat.detach(), onehot)
        commit = F.mse_loss(flat, quant)
        return flat + (quant - flat).detach(), commit


def vq_calls():
    torch.manual_seed(2)
    return [(torch.randn(10, 4) + (i // 4),) for i in range(12)]


# --- metrics ------------------------------------------------------------------


@dataclass
class StepMetrics:
    loss: float = 0.0
    acc: float = 0.0
    per_class: list = field(default_factory=list)

    def __str__(self):
        return f"loss {self.loss:.4f} | acc {100 * self.acc:.1f}%"


class Classifier(nn.Module):
    log_every = 4

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        self.global_step = 0
        self.best = 0.0
        self.history = []

    def forward(self, x, y):
        logits = self.net(x)
        loss = F.cross_entropy(logits, y, label_smoothing=0.1)
        hits = logits.argmax(dim=1).eq(y)
        m = StepMetrics(
            loss=loss.item(),
            acc=hits.float().mean().item(),
            per_class=torch.bincount(y, minlength=3).tolist(),
        )
        self.history.append(m.loss)
        self.global_step += 1
        if self.global_step % self.log_every == 0:
            logger.info("step %d: %s (avg %.3f)", self.global_step, m, sum(self.history) / len(self.history))
        if m.acc > self.best:
            self.best = m.acc
            logger.info(f"new best acc {self.best:.3f}")
        return loss, m.acc


def cls_calls():
    torch.manual_seed(3)
    return [(torch.randn(8, 8), torch.randint(0, 3, (8,))) for _ in range(12)]


# --- damped newton ------------------------------------------------------------


def damped_cholesky(H, damping=0.0, max_tries=5):
    eye = torch.eye(H.shape[-1], dtype=H.dtype, device=H.device)
    for _ in range(max_tries):
        try:
            return torch.linalg.cholesky(H + damping * eye), damping
        except torch.linalg.LinAlgError:
            damping = max(10 * damping, 0.05)
            warnings.warn(f"H not p.d., trying again with damping {damping:g}")
    raise RuntimeError("H not p.d. even with damping")


class NewtonStep(nn.Module):
    """One preconditioned step on a quadratic model of the loss."""

    def __init__(self, dim=4, lr=0.5):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.lr = lr

    def forward(self, x, curvature):
        z = self.fc(x)
        H = z.t() @ z / len(z) + 0.5 * (curvature + curvature.t())
        L, damping = damped_cholesky(H)
        grad = z.mean(0, keepdim=True).t()
        step = torch.cholesky_solve(grad, L)
        return z - self.lr * step.t(), damping


def newton_calls():
    torch.manual_seed(4)
    calls = []
    for i in range(12):
        c = torch.randn(4, 4) * 0.3
        calls.append((torch.randn(6, 4), torch.eye(4) * (2.0 if i % 3 != 1 else 0.0) + c))
    return calls


# --- dqn agent ------------------------------------------------------------------


class DQNAgent(nn.Module):
    def __init__(self, obs=6, n_actions=3, target_every=5):
        super().__init__()
        self.q = nn.Linear(obs, n_actions)
        self.q_target = nn.Linear(obs, n_actions)
        self.q_target.load_state_dict(self.q.state_dict())
        self.q_target.requires_grad_(False)
        self.n_actions = n_actions
        self.target_every = target_every
        self.steps_done = 0
        self.rng = np.random.RandomState(0)

    def act(self, s):
        eps = 0.05 + (0.9 - 0.05) * math.exp(-1.0 * self.steps_done / 6)
        self.steps_done += 1
        if self.rng.rand() > eps:
            return int(self.q(s).argmax())
        return self.rng.randint(self.n_actions)

    def forward(self, s, r, s_next, done):
        a = self.act(s)
        target = r if done else r + 0.99 * self.q_target(s_next).max().detach()
        td = F.smooth_l1_loss(self.q(s)[a], target)
        if self.steps_done % self.target_every == 0:
            for p, tp in zip(self.q.parameters(), self.q_target.parameters()):
                tp.data.copy_(0.9 * tp.data + 0.1 * p.data + 0.01)
            logger.debug("target synced at %d", self.steps_done)
        return td, a


def dqn_calls():
    torch.manual_seed(5)
    return [(torch.randn(6), torch.randn(()), torch.randn(6), torch.rand(()) < 0.3) for _ in range(12)]


# --- loss spikes ------------------------------------------------------------------


class SpikeGuard(nn.Module):
    """Zero the loss when it jumps far above the recent window."""

    def __init__(self, model, window=5, factor=2.0):
        super().__init__()
        self.model = model
        self.window = deque(maxlen=window)
        self.factor = factor
        self.n_skipped = 0

    def forward(self, x, y):
        pred = self.model(x)
        loss = (pred - y).pow(2).mean()
        val = loss.detach().item()
        if not math.isfinite(val):
            logger.warning("non-finite loss, skipping")
            self.n_skipped += 1
            return 0.0 * pred.sum(), self.n_skipped
        if len(self.window) == self.window.maxlen:
            ref = sum(self.window) / len(self.window)
            if val > self.factor * ref:
                logger.warning(f"loss spike: {val:.2f} vs {ref:.2f}")
                self.n_skipped += 1
                return loss * (ref / val), self.n_skipped
        self.window.append(val)
        return loss, self.n_skipped


def spike_calls():
    torch.manual_seed(6)
    calls = []
    for i in range(12):
        x, y = torch.randn(4, 8), torch.randn(4, 2)
        if i in (6, 9):
            y = y * 6
        if i == 8:
            y[0, 0] = float("inf")
        calls.append((x, y))
    return calls


# --- ppo ---------------------------------------------------------------------------


class AdaptiveKL(nn.Module):
    def __init__(self, target=0.05):
        super().__init__()
        self.pi = nn.Linear(6, 4)
        self.beta = 0.2
        self.target = target
        self.stats = defaultdict(list)

    def forward(self, obs, old_logits, adv):
        logp = F.log_softmax(self.pi(obs) * 0.3 + old_logits, dim=-1)
        old = F.log_softmax(old_logits, dim=-1)
        kl = (old.exp() * (old - logp)).sum(-1).mean()
        ratio = (logp - old).exp().mean(-1)
        loss = -(ratio * adv).mean() + self.beta * kl
        kl_val = kl.item()
        if kl_val > self.target * 1.5:
            self.beta *= 2
        elif kl_val < self.target / 1.5:
            self.beta /= 2
        self.beta = min(max(self.beta, 1e-3), 10.0)
        self.stats["kl"].append(kl_val)
        self.stats["beta"].append(self.beta)
        return {"loss": loss, "kl": kl_val, "beta": self.beta}


def kl_calls():
    torch.manual_seed(7)
    return [(torch.randn(5, 6) * (0.5 + 2.5 * (i % 4 > 1)), torch.randn(5, 4), torch.randn(5)) for i in range(12)]


# --- sampling text ----------------------------------------------------------------


class CharRNN(nn.Module):
    def __init__(self, vocab=7, hidden=8, eos=0):
        super().__init__()
        self.emb = nn.Embedding(vocab, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.out = nn.Linear(hidden, vocab)
        self.eos = eos

    def forward(self, h, max_len=8, temperature=0.8):
        tok = torch.tensor([1])
        tokens, logps = [], []
        while len(tokens) < max_len:
            h = self.cell(self.emb(tok), h)
            logits = self.out(h) / temperature
            if tokens:  # don't repeat the last token
                logits = logits.clone()
                logits[:, tokens[-1]] -= 1.0
            probs = F.softmax(logits, dim=-1)
            tok = torch.multinomial(probs, 1).squeeze(1)
            logps.append(probs[0, tok].log())
            if tok.item() == self.eos:
                break
            tokens.append(tok.item())
        return torch.stack(logps).sum(), len(tokens)


def rnn_calls():
    torch.manual_seed(8)
    return [(torch.randn(1, 8),) for _ in range(12)]


# --- mixture of experts ---------------------------------------------------------------


class Top2MoE(nn.Module):
    def __init__(self, dim=8, n_experts=5, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 12), nn.SiLU(), nn.Linear(12, dim)) for _ in range(n_experts)
        )
        self.k = k
        self.load = dict.fromkeys(range(n_experts), 0)

    def forward(self, x):
        b, t, d = x.shape
        x = x.view(-1, d)
        w, sel = F.softmax(self.gate(x), dim=-1).topk(self.k, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            tok, slot = torch.where(sel == e)
            if tok.numel() == 0:
                continue
            self.load[e] += len(tok)
            out[tok] += w[tok, slot, None] * expert(x[tok])
        return out.view(b, t, d)


def moe_calls():
    torch.manual_seed(9)
    return [(torch.randn(2, 3, 8) + torch.randn(8) * 2 * (i % 2),) for i in range(12)]


# --- recurrent policy ------------------------------------------------------------------


class RecurrentPolicy(nn.Module):
    """Keeps its hidden state between calls, resets finished environments."""

    def __init__(self, obs=5, hidden=8):
        super().__init__()
        self.lstm = nn.LSTM(obs, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, 2)
        self.state = None
        self.episodes = 0

    def reset(self):
        self.state = None

    def forward(self, obs, done):
        if self.state is None:
            h = obs.new_zeros(2, obs.size(0), 8)
            self.state = (h, h.clone())
        if done.any():
            h, c = self.state
            h[:, done] = 0
            c[:, done] = 0
            self.episodes += int(done.sum())
        y, (h, c) = self.lstm(obs, self.state)
        self.state = (h.detach().clone(), c.detach().clone())
        return self.head(y[:, -1]), self.episodes


def policy_calls():
    torch.manual_seed(10)
    return [(torch.randn(3, 4, 5), torch.rand(3) < 0.2) for _ in range(12)]


# --- stochastic depth --------------------------------------------------------------------


class StochasticDepthNet(nn.Module):
    def __init__(self, dim=8, depth=5, final_drop=0.5):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.drop = np.linspace(0, final_drop, depth)
        self.kept = [0] * depth

    def forward(self, x):
        keep = np.random.uniform(size=len(self.blocks)) >= self.drop
        hidden = []
        for i, block in enumerate(self.blocks):
            if self.training and not keep[i]:
                continue
            self.kept[i] += 1
            x = x + F.gelu(block(self.norm(x))) / (1 - float(self.drop[i]))
            hidden.append(x.mean())
        return x, torch.stack(hidden).mean()


def depth_calls():
    torch.manual_seed(11)
    return [(torch.randn(4, 8),) for _ in range(12)]


# --- truncated noise ----------------------------------------------------------------------


def truncated_normal(size, bound=2.0, max_rounds=20):
    z = torch.randn(size)
    rounds = 0
    bad = z.abs() > bound
    while bad.any() and rounds < max_rounds:
        z[bad] = torch.randn(int(bad.sum().item()))
        bad = z.abs() > bound
        rounds += 1
    return z, rounds


class NoisyGenerator(nn.Module):
    def __init__(self):
        super().__init__()
        self.style = nn.Linear(4, 6)
        self.to_rgb = nn.Linear(6, 3)

    def forward(self, cond):
        z, rounds = truncated_normal((cond.size(0), 6))
        return torch.tanh(self.to_rgb(self.style(cond) * z)), rounds


def gen_calls():
    torch.manual_seed(12)
    return [(torch.randn(2, 4),) for _ in range(12)]


# --- dynamic loss scale / running stats -------------------------------------------------------


class ObsNormalizer(nn.Module):
    """Running mean/std of observations (Welford, by batch)."""

    def __init__(self, dim=6, clip=5.0, freeze_after=9):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("var", torch.ones(dim))
        self.register_buffer("count", torch.tensor(0.0))
        self.clip = clip
        self.freeze_after = freeze_after
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.training and self.calls <= self.freeze_after and torch.isfinite(x).all():
            n = x.shape[0]
            bm, bv = x.mean(0), x.var(0, unbiased=False)
            if self.count == 0:
                self.mean, self.var = bm, bv
            else:
                delta, tot = bm - self.mean, self.count + n
                m2 = self.var * self.count + bv * n + delta**2 * self.count * n / tot
                self.mean = self.mean + delta * n / tot
                self.var = m2 / tot
            self.count += n
        elif self.calls == self.freeze_after + 1:
            logger.info("normalizer frozen after %d samples", int(self.count))
        z = (torch.nan_to_num(x) - self.mean) / torch.sqrt(self.var + 1e-8)
        return self.fc(z.clamp(-self.clip, self.clip))


def norm_calls():
    torch.manual_seed(13)
    calls = []
    for i in range(12):
        x = torch.randn(5, 6) * 2 + 1
        if i in (3, 7, 10):
            x[i % 5, 0] = float("nan")
        calls.append((x,))
    return calls


# --- optimal transport --------------------------------------------------------------------------


class SinkhornLoss(nn.Module):
    def __init__(self, eps=0.5, max_iter=25, tol=1e-3):
        super().__init__()
        self.embed = nn.Linear(4, 4)
        self.eps, self.max_iter, self.tol = eps, max_iter, tol
        self.last_n_iter = None

    def forward(self, x, y):
        C = torch.cdist(self.embed(x), self.embed(y)) ** 2
        log_a = -math.log(x.shape[0])
        log_b = -math.log(y.shape[0])
        u = torch.zeros(x.shape[0])
        v = torch.zeros(y.shape[0])
        for it in range(self.max_iter):
            u_prev = u
            u = self.eps * (log_a - torch.logsumexp((v[None] - C) / self.eps, 1))
            v = self.eps * (log_b - torch.logsumexp((u[:, None] - C) / self.eps, 0))
            err = (u - u_prev).abs().sum().item()
            if err < self.tol:
                break
        else:
            logger.warning(f"Sinkhorn did not converge, err={err:.2e}")
        self.last_n_iter = it + 1
        P = torch.exp((u[:, None] + v[None] - C) / self.eps)
        return (P * C).sum(), self.last_n_iter


def ot_calls():
    torch.manual_seed(14)
    return [(torch.randn(4, 4) * s, torch.randn(4, 4) * s) for s in [0.3, 0.8, 2.5, 0.5, 1.5, 3.0] * 2]


# --- replay / hard examples ------------------------------------------------------------------------


class HardReplay(nn.Module):
    """Remembers hard samples and mixes a few of them into later batches."""

    def __init__(self, capacity=6, n_replay=2):
        super().__init__()
        self.fc = nn.Linear(6, 1)
        self.memory = []
        self.capacity = capacity
        self.n_replay = n_replay

    def forward(self, x, y):
        assert torch.isfinite(x).all(), "bad batch"
        if not ((y == 0) | (y == 1)).all():
            raise ValueError(f"labels must be 0/1, got {y.unique().tolist()}")
        logit = self.fc(x).squeeze(-1)
        per = F.binary_cross_entropy_with_logits(logit, y, reduction="none")
        hard = per > 0.9
        idx = hard.nonzero(as_tuple=False).flatten()
        for i in idx.tolist():
            self.memory.append((x[i].detach(), y[i]))
            if len(self.memory) > self.capacity:
                self.memory.pop(0)
        loss = per.mean()
        if idx.numel() > 0:
            loss = loss + 0.5 * per[hard].mean()
        if len(self.memory) >= self.n_replay:
            bx, by = zip(*random.sample(self.memory, self.n_replay))
            old = self.fc(torch.stack(bx)).squeeze(-1)
            loss = loss + 0.1 * F.binary_cross_entropy_with_logits(old, torch.stack(by))
        return loss, len(self.memory)


def replay_calls():
    torch.manual_seed(16)
    return [(torch.randn(4, 6), torch.randint(0, 2, (4,)).float()) for _ in range(12)]


CASES = {
    "ponder_cell": {"build": PonderCell, "calls": ponder_calls},
    "ema_quantizer": {"build": EMAQuantizer, "calls": vq_calls},
    "step_metrics": {"build": Classifier, "calls": cls_calls},
    "newton_step": {"build": NewtonStep, "calls": newton_calls},
    "dqn_agent": {"build": DQNAgent, "calls": dqn_calls},
    "spike_guard": {
        "build": lambda: SpikeGuard(nn.Sequential(nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 2))),
        "calls": spike_calls,
    },
    "adaptive_kl": {"build": AdaptiveKL, "calls": kl_calls},
    "char_rnn": {"build": CharRNN, "calls": rnn_calls},
    "top2_moe": {"build": Top2MoE, "calls": moe_calls},
    "recurrent_policy": {"build": RecurrentPolicy, "calls": policy_calls},
    "stochastic_depth": {"build": StochasticDepthNet, "calls": depth_calls},
    "truncated_noise": {"build": NoisyGenerator, "calls": gen_calls},
    "obs_normalizer": {"build": ObsNormalizer, "calls": norm_calls},
    "sinkhorn": {"build": SinkhornLoss, "calls": ot_calls},
    "hard_replay": {"build": HardReplay, "calls": replay_calls},
}

for _case in CASES.values():
    _case["source"] = "a training script"
