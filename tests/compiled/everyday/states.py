"""State, counters, schedules, writes under data-dependent tests, numbers that decide."""

import copy
import math
from collections import Counter, defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def xs(n=12, d=8, scale=3.0):
    return lambda: [(torch.randn(4, d) * (1 + scale * (i % 2)),) for i in range(n)]


class ActNorm(nn.Module):
    """Scale and shift set from the first batch, flag in a uint8 buffer read by .item()."""

    def __init__(self, features=8):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, features))
        self.scale = nn.Parameter(torch.ones(1, features))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def initialize(self, x):
        with torch.no_grad():
            self.loc.data.copy_(-x.mean(0, keepdim=True))
            self.scale.data.copy_(1 / (x.std(0, keepdim=True) + 1e-6))

    def forward(self, x):
        if self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        logdet = torch.log(torch.abs(self.scale)).sum()
        return self.scale * (x + self.loc), logdet


def kmeans(samples, k, iters=4):
    means = samples[torch.randperm(samples.shape[0])[:k]]
    for _ in range(iters):
        nearest = ((samples[:, None] - means[None]) ** 2).sum(-1).argmin(-1)
        bins = torch.bincount(nearest, minlength=k)
        empty = bins == 0
        sums = torch.zeros(k, samples.shape[1]).index_add_(0, nearest, samples)
        means = torch.where(empty[:, None], means, sums / bins.masked_fill(empty, 1)[:, None])
    return means, bins


class KmeansCodebook(nn.Module):
    """EMA codebook: first batch clustered, later batches averaged in place."""

    def __init__(self, codes=3, dim=8, decay=0.9):
        super().__init__()
        self.decay, self.codes = decay, codes
        self.register_buffer("inited", torch.Tensor([False]))
        self.register_buffer("cluster_size", torch.zeros(codes))
        self.register_buffer("embed", torch.zeros(codes, dim))
        self.register_buffer("embed_avg", torch.zeros(codes, dim))

    def init_embed_(self, data):
        if self.inited:
            return
        embed, size = kmeans(data, self.codes)
        self.embed.data.copy_(embed)
        self.embed_avg.data.copy_(embed.clone())
        self.cluster_size.data.copy_(size)
        self.inited.data.copy_(torch.Tensor([True]))

    def forward(self, x):
        self.init_embed_(x)
        dist = x.pow(2).sum(1, keepdim=True) - 2 * x @ self.embed.t() + self.embed.pow(2).sum(1)
        ind = (-dist).max(-1).indices
        onehot = F.one_hot(ind, self.codes).type(x.dtype)
        quantized = F.embedding(ind, self.embed)
        if self.training:
            self.cluster_size.data.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
            self.embed_avg.data.mul_(self.decay).add_(onehot.t() @ x, alpha=1 - self.decay)
            total = self.cluster_size.sum()
            smooth = (self.cluster_size + 1e-5) / (total + self.codes * 1e-5) * total
            self.embed.data.copy_(self.embed_avg / smooth.unsqueeze(1))
        return quantized, ind


class ExpiresCodes(nn.Module):
    """Dead codes overwritten by samples of the batch, as many as the mask counts."""

    def __init__(self, codes=6, dim=8, threshold=0.35):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.threshold = threshold
        self.register_buffer("cluster_size", torch.ones(codes))
        self.register_buffer("embed", torch.randn(codes, dim))

    def replace(self, samples, mask):
        n = mask.sum().item()
        picked = samples[torch.randint(0, samples.shape[0], (n,))]
        self.embed.data[mask] = picked
        self.cluster_size.data[mask] = 1.0

    def expire_codes_(self, samples):
        if self.threshold == 0:
            return
        expired = self.cluster_size < self.threshold
        if not torch.any(expired):
            return
        self.replace(samples, expired)

    def forward(self, x):
        z = self.proj(x)
        ind = torch.cdist(z.detach(), self.embed).argmin(-1)
        q = self.embed[ind]
        commit = F.mse_loss(z, q)
        if self.training:
            self.cluster_size.lerp_(F.one_hot(ind, len(self.embed)).float().sum(0), 0.2)
            self.expire_codes_(z.detach())
        return z + (q - z).detach(), commit


class MomentumContrast(nn.Module):
    """Queue with an int pointer kept in a long buffer, momentum copy of the encoder."""

    def __init__(self, dim=8, K=16, m=0.9, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = nn.Linear(8, dim)
        self.encoder_k = nn.Linear(8, dim)
        for p in self.encoder_k.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.m + q.data * (1.0 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        n = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % n == 0
        self.queue[:, ptr : ptr + n] = keys.T
        self.queue_ptr[0] = (ptr + n) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([pos, neg], dim=1)
        logits /= self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._enqueue(k)
        return logits, labels


class PrototypeQueue(nn.Module):
    """Queue used only once it has filled; the latch is a Python bool, the test reads the buffer."""

    def __init__(self, protos=5, length=12):
        super().__init__()
        self.prototypes = nn.Linear(8, protos, bias=False)
        self.register_buffer("queue", torch.zeros(length, 8))
        self.use_the_queue = False

    @torch.no_grad()
    def sinkhorn(self, out, bs, iters=3):
        Q = torch.exp(out / 0.5).t()
        Q /= Q.sum()
        for _ in range(iters):
            Q /= Q.sum(1, keepdim=True) * Q.shape[0]
            Q /= Q.sum(0, keepdim=True) * Q.shape[1]
        return (Q / Q.sum(0, keepdim=True)).t()[-bs:]

    def forward(self, x):
        with torch.no_grad():
            w = F.normalize(self.prototypes.weight.data.clone(), dim=1, p=2)
            self.prototypes.weight.copy_(w)
        z = F.normalize(x, dim=1)
        bs = z.size(0)
        scores = self.prototypes(z)
        with torch.no_grad():
            out = scores.detach()
            if self.use_the_queue or not torch.all(self.queue[-1, :] == 0):
                self.use_the_queue = True
                out = torch.cat((torch.mm(self.queue, self.prototypes.weight.t()), out))
            self.queue[bs:] = self.queue[:-bs].clone()
            self.queue[:bs] = z
            q = self.sinkhorn(out, bs)
        return -(q * F.log_softmax(scores / 0.1, dim=1)).sum(1).mean()


class RangeObserver(nn.Module):
    """Moving average of min and max; the buffers start at infinities and are compared with them."""

    def __init__(self, averaging_constant=0.1):
        super().__init__()
        self.averaging_constant = averaging_constant
        self.fc = nn.Linear(8, 8)
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))

    def observe(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        min_val, max_val = self.min_val, self.max_val
        if min_val == float("inf") and max_val == float("-inf"):
            min_val, max_val = torch.aminmax(x)
        else:
            cur_min, cur_max = torch.aminmax(x)
            min_val = min_val + self.averaging_constant * (cur_min - min_val)
            max_val = max_val + self.averaging_constant * (cur_max - max_val)
        self.min_val.copy_(min_val)
        self.max_val.copy_(max_val)
        return x_orig

    def forward(self, x):
        h = self.observe(self.fc(x))
        scale = torch.clamp((self.max_val - self.min_val) / 255, min=1e-8)
        zero = torch.round(-self.min_val / scale).clamp(0, 255)
        q = ((h / scale + zero).round().clamp(0, 255) - zero) * scale
        return h + (q - h).detach()


class StepQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha, g, qn, qp):
        ctx.save_for_backward(x, alpha)
        ctx.other = g, qn, qp
        return (x / alpha).round().clamp(qn, qp) * alpha

    @staticmethod
    def backward(ctx, grad):
        x, alpha = ctx.saved_tensors
        g, qn, qp = ctx.other
        q = x / alpha
        small, big = (q < qn).float(), (q > qp).float()
        middle = 1.0 - small - big
        grad_alpha = ((small * qn + big * qp + middle * (q.round() - q)) * grad * g).sum().unsqueeze(0)
        return middle * grad, grad_alpha, None, None, None


class LearnedStepAct(nn.Module):
    """Step size filled from the first training batch, then learned."""

    def __init__(self, nbits=4):
        super().__init__()
        self.nbits = nbits
        self.fc = nn.Linear(8, 8)
        self.alpha = nn.Parameter(torch.ones(1))
        self.register_buffer("init_state", torch.zeros(1))
        self.register_buffer("signed", torch.zeros(1))

    def forward(self, x):
        x = self.fc(x)
        if self.training and self.init_state == 0:
            if x.detach().min() < -1e-5:
                self.signed.data.fill_(1)
            self.alpha.data.copy_(2 * x.detach().abs().mean() / math.sqrt(2 ** (self.nbits - 1) - 1))
            self.init_state.fill_(1)
        if self.signed == 1:
            qn, qp = -(2 ** (self.nbits - 1)), 2 ** (self.nbits - 1) - 1
        else:
            qn, qp = 0, 2**self.nbits - 1
        g = 1.0 / math.sqrt(x.numel() * qp)
        return StepQuant.apply(x, self.alpha, g, qn, qp)


class ShadowModel(nn.Module):
    """Average of a model, updated every few calls, copied during warm-up; step in a buffer."""

    def __init__(self, beta=0.95, update_after_step=3, update_every=2):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
        self.shadow = copy.deepcopy(self.online).eval().requires_grad_(False)
        self.beta, self.update_after_step, self.update_every = beta, update_after_step, update_every
        self.register_buffer("initted", torch.Tensor([False]))
        self.register_buffer("step", torch.tensor([0]))

    def pairs(self):
        yield from zip(self.shadow.parameters(), self.online.parameters())
        for s, o in zip(self.shadow.buffers(), self.online.buffers()):
            if s.dtype == torch.float32:
                yield s, o

    def copy_params(self):
        for s, o in self.pairs():
            s.data.copy_(o.data)

    def get_current_decay(self):
        epoch = max(self.step.item() - self.update_after_step - 1, 0.0)
        if epoch <= 0:
            return 0.0
        return min(max(1 - (1 + epoch) ** -(2 / 3), 0.0), self.beta)

    def update(self):
        step = self.step.item()
        self.step += 1
        if (step % self.update_every) != 0:
            return
        if step <= self.update_after_step:
            self.copy_params()
            return
        if not self.initted.item():
            self.copy_params()
            self.initted.data.copy_(torch.Tensor([True]))
        decay = self.get_current_decay()
        for s, o in self.pairs():
            difference = s.data - o.data
            difference.mul_(1.0 - decay)
            s.sub_(difference)

    def forward(self, x):
        y = self.online(x)
        self.update()
        with torch.no_grad():
            target = self.shadow(x)
        return F.mse_loss(y, target)


class GumbelLatents(nn.Module):
    """Temperature cooled by numpy on some batch numbers; becomes a numpy scalar on the way."""

    def __init__(self, latent=2, categories=4):
        super().__init__()
        self.latent, self.categories = latent, categories
        self.temp, self.min_temp = 1.0, 0.5
        self.anneal_rate, self.anneal_interval = 0.03, 3
        self.enc = nn.Linear(8, latent * categories)
        self.dec = nn.Linear(latent * categories, 8)

    def reparameterize(self, logits, eps=1e-7):
        u = torch.rand_like(logits)
        g = -torch.log(-torch.log(u + eps) + eps)
        s = F.softmax((logits + g) / self.temp, dim=-1)
        return s.view(-1, self.latent * self.categories)

    def forward(self, x, batch_idx):
        logits = self.enc(x).view(-1, self.latent, self.categories)
        recon = self.dec(self.reparameterize(logits))
        if batch_idx % self.anneal_interval == 0 and self.training:
            self.temp = np.maximum(self.temp * np.exp(-self.anneal_rate * batch_idx), self.min_temp)
        p = F.softmax(logits, dim=-1)
        kld = (p * torch.log(p + 1e-7) - p * np.log(1.0 / self.categories)).sum((1, 2)).mean()
        recon_loss = F.mse_loss(recon, x)
        return {"loss": recon_loss + kld, "Reconstruction_Loss": recon_loss.detach(), "KLD": -kld.detach()}


def linear_annealing(init, fin, step, annealing_steps):
    if annealing_steps == 0:
        return fin
    assert fin > init
    return min(init + (fin - init) * step / annealing_steps, fin)


class CapacityVAE(nn.Module):
    """KL held at a capacity that grows by step; every fifth training call is recorded in lists."""

    def __init__(self, c_fin=5.0, steps=8, gamma=30.0, record_loss_every=5):
        super().__init__()
        self.enc = nn.Linear(8, 8)
        self.dec = nn.Linear(4, 8)
        self.c_fin, self.steps, self.gamma = c_fin, steps, gamma
        self.n_train_steps, self.record_loss_every = 0, record_loss_every
        self.storer = defaultdict(list)

    def _pre_call(self):
        if self.training:
            self.n_train_steps += 1
        if not self.training or self.n_train_steps % self.record_loss_every == 1:
            return self.storer
        return None

    def forward(self, x):
        storer = self._pre_call()
        mean, logvar = self.enc(x).chunk(2, -1)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean) if self.training else mean
        rec = F.mse_loss(self.dec(z), x)
        latent_kl = 0.5 * (-1 - logvar + mean.pow(2) + logvar.exp()).mean(dim=0)
        kl = latent_kl.sum()
        if storer is not None:
            storer["kl_loss"].append(kl.item())
            for i in range(latent_kl.size(0)):
                storer["kl_loss_" + str(i)].append(latent_kl[i].item())
        C = linear_annealing(0.0, self.c_fin, self.n_train_steps, self.steps) if self.training else self.c_fin
        loss = rec + self.gamma * (kl - C).abs()
        if storer is not None:
            storer["loss"].append(loss.item())
        return loss


class AdaptiveCoef:
    def __init__(self, init, target, horizon):
        self.value, self.target, self.horizon = init, target, horizon

    def update(self, current, n_steps):
        error = np.clip(current / self.target - 1, -0.2, 0.2)
        self.value *= 1 + error * n_steps / self.horizon


class KLPenalty(nn.Module):
    """Reward shaped with a KL coefficient that a controller object moves after each batch."""

    def __init__(self):
        super().__init__()
        self.policy = nn.Linear(8, 5)
        self.ref = nn.Linear(8, 5).requires_grad_(False)
        self.kl_ctl = AdaptiveCoef(0.2, 0.3, 20)

    def forward(self, x, score):
        logp = self.policy(x).log_softmax(-1)
        with torch.no_grad():
            ref = self.ref(x).log_softmax(-1)
        action = logp.argmax(-1, keepdim=True)
        kl = (logp.exp() * (logp - ref)).sum(-1)
        reward = score - self.kl_ctl.value * kl.detach()
        loss = -(reward * logp.gather(1, action).squeeze(1)).mean()
        mean_kl = kl.detach().mean().item()
        self.kl_ctl.update(mean_kl, n_steps=x.shape[0])
        return loss, {"objective/kl": mean_kl, "objective/kl_coef": float(self.kl_ctl.value)}


class AdaptiveRatePPO(nn.Module):
    """Learning rate raised or lowered by the measured KL against the previous policy; clipped surrogate."""

    def __init__(self, desired_kl=0.05, clip_param=0.2):
        super().__init__()
        self.actor = nn.Linear(8, 3)
        nn.init.zeros_(self.actor.bias)
        self.log_std = nn.Parameter(torch.zeros(3))
        self.desired_kl, self.clip_param = desired_kl, clip_param
        self.learning_rate = 1e-3
        self.param_groups = [{"lr": self.learning_rate}, {"lr": self.learning_rate}]
        self.schedule = "adaptive"

    def forward(self, obs, actions, old_mu, old_sigma, advantages):
        mu = self.actor(obs)
        sigma = self.log_std.exp().expand_as(mu)
        if self.desired_kl is not None and self.schedule == "adaptive":
            with torch.inference_mode():
                kl = torch.sum(
                    torch.log(sigma / old_sigma + 1e-5)
                    + (old_sigma.square() + (old_mu - mu).square()) / (2.0 * sigma.square())
                    - 0.5,
                    dim=-1,
                )
                kl_mean = torch.mean(kl)
                if kl_mean > self.desired_kl * 2.0:
                    self.learning_rate = max(1e-5, self.learning_rate / 1.5)
                elif kl_mean < self.desired_kl / 2.0 and kl_mean > 0.0:
                    self.learning_rate = min(1e-2, self.learning_rate * 1.5)
                for group in self.param_groups:
                    group["lr"] = self.learning_rate
        logp = torch.distributions.Normal(mu, sigma).log_prob(actions).sum(-1)
        old = torch.distributions.Normal(old_mu, old_sigma).log_prob(actions).sum(-1)
        ratio = torch.exp(logp - old)
        clipped = torch.clamp(ratio, 1.0 - self.clip_param, 1.0 + self.clip_param)
        return torch.max(-advantages * ratio, -advantages * clipped).mean()


def ppo_calls():
    calls = []
    for i in range(12):
        obs = torch.randn(4, 8) * (0.02 if i % 3 == 0 else 1)
        mu = torch.zeros(4, 3) + (0.0 if i % 3 == 0 else 0.5 * torch.randn(4, 3))
        sigma = torch.full((4, 3), 1.0 if i % 3 == 0 else 0.8)
        calls.append((obs, mu + sigma * torch.randn(4, 3), mu, sigma, torch.randn(4)))
    return calls


class RowStat:
    def __init__(self, shape):
        self._n = 0
        self._M = torch.zeros(shape)
        self._S = torch.zeros(shape)

    def push(self, row):
        self._n += 1
        if self._n == 1:
            self._M[...] = row
        else:
            old = self._M.clone()
            self._M[...] = old + (row - old) / self._n
            self._S[...] = self._S + (row - old) * (row - self._M)

    @property
    def var(self):
        return self._S / (self._n - 1) if self._n > 1 else torch.square(self._M)

    @property
    def std(self):
        return torch.sqrt(self.var)


class ObservationFilter(nn.Module):
    """Welford statistics pushed row by row into a helper object with properties."""

    def __init__(self, clip=5.0):
        super().__init__()
        self.rs = RowStat(8)
        self.clip = clip
        self.fc = nn.Linear(8, 8)

    def forward(self, x, update=True):
        if update:
            for row in x:
                self.rs.push(row)
        x = x - self.rs._M
        x = x / (self.rs.std + 1e-8)
        if self.clip:
            x = torch.clamp(x, -self.clip, self.clip)
        return self.fc(x)


class LossScale:
    def __init__(self, scale=16.0, factor=2.0, window=3, min_scale=0.5):
        self.loss_scale, self.factor, self.window, self.min_scale = scale, factor, window, min_scale
        self._iter, self._last_overflow = 0, -1

    def update(self):
        if (self._iter - self._last_overflow) % self.window == 0:
            self.loss_scale *= self.factor
        self._iter += 1

    def check_overflow(self, norm):
        if norm == float("inf") or norm != norm:
            previous = self.loss_scale
            self._last_overflow = self._iter
            self.loss_scale /= self.factor
            if self.loss_scale <= self.min_scale:
                self.loss_scale = previous
                raise FloatingPointError("minimum loss scale reached (%s)" % self.min_scale)
            self._iter += 1
            raise OverflowError("setting loss scale to: " + str(self.loss_scale))


class ScaledStep(nn.Module):
    """Dynamic loss scale; an overflow is an exception that the step itself catches."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.scaler = LossScale()
        self.skipped = 0

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        try:
            self.scaler.check_overflow(loss.item())
            scaled = self.scaler.loss_scale * loss
            self.scaler.update()
        except OverflowError as e:
            print(f"NOTE: overflow detected, {e}")
            self.skipped += 1
            scaled = torch.zeros(())
        return scaled, self.scaler.loss_scale, self.skipped


class CurriculumLabels(nn.Module):
    """Pseudo labels remembered per sample; class thresholds from a Counter over the remembered list."""

    def __init__(self, n=10, classes=4, p_cutoff=0.5):
        super().__init__()
        self.fc = nn.Linear(8, classes)
        self.p_cutoff, self.classes = p_cutoff, classes
        self.selected_label = torch.ones((n,), dtype=torch.long) * -1
        self.classwise_acc = torch.zeros((classes,))

    @torch.no_grad()
    def update(self):
        counter = Counter(self.selected_label.tolist())
        if max(counter.values()) < len(self.selected_label):
            for i in range(self.classes):
                self.classwise_acc[i] = counter[i] / max(counter.values())

    @torch.no_grad()
    def masking(self, logits, idx):
        max_probs, max_idx = torch.softmax(logits, -1).max(-1)
        acc = self.classwise_acc[max_idx]
        mask = max_probs.ge(self.p_cutoff * (acc / (2.0 - acc)))
        select = max_probs.ge(self.p_cutoff)
        if idx[select == 1].nelement() != 0:
            self.selected_label[idx[select == 1]] = max_idx[select == 1]
        self.update()
        return mask.to(max_probs.dtype), max_idx

    def forward(self, weak, strong, idx):
        mask, pseudo = self.masking(self.fc(weak).detach(), idx)
        return (F.cross_entropy(self.fc(strong), pseudo, reduction="none") * mask).mean()


def l2normalize(v, eps=1e-12):
    return v / (v.norm() + eps)


class SpectralWrap(nn.Module):
    """Power iteration by .data assignment on parameters found by name; the weight is set as an attribute."""

    def __init__(self, module, name="weight", power_iterations=1):
        super().__init__()
        self.module, self.name, self.power_iterations = module, name, power_iterations
        w = getattr(module, name)
        height, width = w.data.shape[0], w.data.view(w.shape[0], -1).shape[1]
        u = nn.Parameter(l2normalize(w.data.new(height).normal_(0, 1)), requires_grad=False)
        v = nn.Parameter(l2normalize(w.data.new(width).normal_(0, 1)), requires_grad=False)
        bar = nn.Parameter(w.data)
        del module._parameters[name]
        module.register_parameter(name + "_u", u)
        module.register_parameter(name + "_v", v)
        module.register_parameter(name + "_bar", bar)

    def _update_u_v(self):
        u = getattr(self.module, self.name + "_u")
        v = getattr(self.module, self.name + "_v")
        w = getattr(self.module, self.name + "_bar")
        height = w.data.shape[0]
        for _ in range(self.power_iterations):
            v.data = l2normalize(torch.mv(torch.t(w.view(height, -1).data), u.data))
            u.data = l2normalize(torch.mv(w.view(height, -1).data, v.data))
        sigma = u.dot(w.view(height, -1).mv(v))
        setattr(self.module, self.name, w / sigma.expand_as(w))

    def forward(self, *args):
        self._update_u_v()
        return self.module.forward(*args)


class GrowingRotary(nn.Module):
    """Cos and sin tables registered anew in forward when a longer sequence comes."""

    def __init__(self, dim=8, max_positions=6, base=10000):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.qk = nn.Linear(dim, 2 * dim)
        self._set_cos_sin_cache(max_positions)

    def _set_cos_sin_cache(self, seq_len):
        self.max_seq_len_cached = seq_len
        freqs = torch.outer(torch.arange(seq_len).type_as(self.inv_freq), self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        self.register_buffer("cos_cached", emb.cos(), persistent=False)
        self.register_buffer("sin_cached", emb.sin(), persistent=False)

    @staticmethod
    def rotate_half(x):
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def forward(self, x):
        seq_len = x.shape[-2]
        if seq_len > self.max_seq_len_cached:
            self._set_cos_sin_cache(seq_len)
        cos, sin = self.cos_cached[:seq_len], self.sin_cached[:seq_len]
        q, k = self.qk(x).chunk(2, -1)
        q = q * cos + self.rotate_half(q) * sin
        k = k * cos + self.rotate_half(k) * sin
        return (q @ k.transpose(-1, -2)).softmax(-1) @ x


class SinkCache(nn.Module):
    """Decoding with the first and the most recent keys kept; the cache is None, then a list that is cut."""

    def __init__(self, start_size=2, recent_size=4):
        super().__init__()
        self.start_size, self.recent_size = start_size, recent_size
        self.cache_size = start_size + recent_size
        self.qkv = nn.Linear(8, 24)
        self.past = None

    def evict(self, past):
        if past is None:
            return None
        seq_len = past[0].size(1)
        if seq_len <= self.cache_size:
            return past
        return [torch.cat([t[:, : self.start_size], t[:, seq_len - self.recent_size : seq_len]], dim=1) for t in past]

    def forward(self, x):
        q, k, v = self.qkv(x.unsqueeze(1)).chunk(3, -1)
        if self.past is not None:
            k = torch.cat([self.past[0], k], dim=1)
            v = torch.cat([self.past[1], v], dim=1)
        att = (q @ k.transpose(1, 2) / math.sqrt(8)).softmax(-1)
        self.past = self.evict([k.detach(), v.detach()])
        return (att @ v).squeeze(1)


class LossHistory:
    def __init__(self, max_len=5, scale_factor=2):
        self.history = deque(maxlen=max_len)
        self.scale_factor = scale_factor

    def __call__(self, loss):
        self.history.append(loss.detach())
        smallest = min(self.history)
        if loss.item() > smallest * self.scale_factor:
            loss = smallest * self.scale_factor
        return loss


class CapsLoss(nn.Module):
    """Loss capped by the smallest of the last few, a deque of detached tensors."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.cap = LossHistory()

    def forward(self, x):
        h = self.fc(x)
        return self.cap(F.smooth_l1_loss(h, x)), h.mean()


class AutoClip(nn.Module):
    """Norm clipped at a percentile of all norms seen, a growing list of floats."""

    def __init__(self, clip_percentile=60):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.clip_percentile = clip_percentile
        self.history = []

    def total_norm(self, tensors):
        total = 0
        for t in tensors:
            total += t.data.norm(2).item() ** 2
        return total ** (1.0 / 2)

    def forward(self, x):
        hs = []
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x
            hs.append(x)
        norm = self.total_norm(hs)
        self.history.append(norm)
        clip_value = np.percentile(self.history, self.clip_percentile)
        if norm > clip_value:
            x = x * (clip_value / (norm + 1e-6))
        return x, float(clip_value)


class DashThreshold(nn.Module):
    """Loss threshold shrinking every few calls from the first loss; at its floor labels become hard."""

    def __init__(self, rho_min=1.0, gamma=1.3, C=1.1, every=2):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.gamma, self.C, self.rho_min, self.every = gamma, C, rho_min, every
        self.rho_init = self.rho = None
        self.rho_update_cnt = self.it = 0
        self.use_hard_label = False

    @torch.no_grad()
    def update(self, logits):
        if self.rho_init is None:
            self.rho_init = F.cross_entropy(logits, logits.argmin(-1)).item()
        if self.it % self.every == 0:
            self.rho = self.C * (self.gamma**-self.rho_update_cnt) * self.rho_init
            self.rho = max(self.rho, self.rho_min)
            self.rho_update_cnt += 1
        self.use_hard_label = self.rho == self.rho_min
        self.it += 1

    def forward(self, x):
        logits = self.fc(x)
        self.update(logits.detach())
        if self.use_hard_label:
            pseudo = torch.argmax(logits, dim=-1).detach()
        else:
            pseudo = torch.softmax(logits / 0.5, dim=-1).detach()
        loss = F.cross_entropy(logits, pseudo, reduction="none")
        mask = loss.detach().le(self.rho).to(logits.dtype)
        return (loss * mask).sum() / mask.sum().clamp(min=1), mask


def get_linear_fn(start, end, end_fraction):
    def func(progress_remaining):
        if (1 - progress_remaining) > end_fraction:
            return end
        return start + (1 - progress_remaining) * (end - start) / end_fraction

    return func


class EpsilonGreedyQ(nn.Module):
    """Exploration rate from a closure schedule, numpy coin for acting, target network moved every few calls."""

    def __init__(self, total=10, target_update_interval=4, tau=0.5):
        super().__init__()
        self.q_net = nn.Linear(8, 3)
        self.q_net_target = nn.Linear(8, 3).requires_grad_(False)
        self.exploration_schedule = get_linear_fn(1.0, 0.05, 0.6)
        self.total, self.target_update_interval, self.tau = total, target_update_interval, tau
        self._n_calls = 0
        self.exploration_rate = 0.0

    def _on_step(self):
        self._n_calls += 1
        if self._n_calls % max(self.target_update_interval, 1) == 0:
            with torch.no_grad():
                for p, t in zip(self.q_net.parameters(), self.q_net_target.parameters()):
                    t.data.mul_(1 - self.tau)
                    torch.add(t.data, p.data, alpha=self.tau, out=t.data)
        self.exploration_rate = self.exploration_schedule(1.0 - self._n_calls / self.total)

    def forward(self, obs, next_obs, rewards, dones):
        self._on_step()
        q = self.q_net(obs)
        if np.random.rand() < self.exploration_rate:
            action = torch.as_tensor(np.array([np.random.randint(3) for _ in range(obs.shape[0])]))
        else:
            action = q.argmax(dim=1)
        with torch.no_grad():
            next_q, _ = self.q_net_target(next_obs).max(dim=1)
            target = rewards + (1 - dones) * 0.99 * next_q
        return F.smooth_l1_loss(q.gather(1, action[:, None]).squeeze(1), target), action


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.counter, self.best_score, self.early_stop = patience, 0, None, False
        self.val_loss_min = float("inf")

    def __call__(self, val_loss):
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
        elif score < self.best_score:
            self.counter += 1
            print(f"EarlyStopping counter: {self.counter} out of {self.patience}")
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            print(f"Validation loss decreased ({self.val_loss_min:.4f} --> {val_loss:.4f}).")
            self.val_loss_min = val_loss
            self.counter = 0


class StopsEarly(nn.Module):
    """A stopping counter with prints; once it has tripped, the head runs without gradients."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 8)
        self.stopper = EarlyStopping()

    def forward(self, x):
        h = torch.relu(self.body(x))
        if self.stopper.early_stop:
            with torch.no_grad():
                return self.head(h), True
        y = self.head(h)
        self.stopper(F.mse_loss(y, x).item())
        return y, self.stopper.early_stop


class IntegrateAndFire(nn.Module):
    """Membrane potential that is a float at first and a tensor after; reset where it has fired."""

    def __init__(self, v_threshold=1.0, v_reset=0.0, tau=2.0):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.v_threshold, self.v_reset, self.tau = v_threshold, v_reset, tau
        self.v = 0.0 if v_reset is None else v_reset

    def v_float_to_tensor(self, x):
        if isinstance(self.v, float):
            v_init = self.v
            self.v = torch.full_like(x.data, v_init)

    def neuronal_charge(self, x):
        self.v = self.v + (x - (self.v - self.v_reset)) / self.tau

    def neuronal_fire(self):
        soft = torch.sigmoid(4.0 * (self.v - self.v_threshold))
        hard = (self.v >= self.v_threshold).to(soft)
        return (hard - soft).detach() + soft

    def neuronal_reset(self, spike):
        spike = spike.detach()
        if self.v_reset is None:
            self.v = self.v - spike * self.v_threshold
        else:
            self.v = (1.0 - spike) * self.v + spike * self.v_reset

    def forward(self, x):
        h = self.fc(x)
        self.v_float_to_tensor(h)
        self.neuronal_charge(h)
        spike = self.neuronal_fire()
        self.neuronal_reset(spike)
        self.v = self.v.detach()
        return spike


CASES = {
    "actnorm_first_batch": {"build": ActNorm, "calls": xs(), "source": "rosinality/glow-pytorch model.py"},
    "kmeans_codebook": {
        "build": KmeansCodebook,
        "calls": xs(),
        "source": "facebookresearch/encodec encodec/quantization/core_vq.py",
    },
    "expires_dead_codes": {
        "build": ExpiresCodes,
        "calls": xs(),
        "source": "lucidrains/vector-quantize-pytorch vector_quantize_pytorch/vector_quantize_pytorch.py",
    },
    "moco_queue": {
        "build": MomentumContrast,
        "calls": lambda: [(torch.randn(4, 8) * (1 + 3 * (i % 2)), torch.randn(4, 8)) for i in range(12)],
        "source": "facebookresearch/moco moco/builder.py",
    },
    "queue_when_full": {"build": PrototypeQueue, "calls": xs(), "source": "facebookresearch/swav main_swav.py"},
    "range_observer": {
        "build": RangeObserver,
        "calls": xs(),
        "source": "pytorch/pytorch torch/ao/quantization/observer.py",
    },
    "learned_step_init": {"build": LearnedStepAct, "calls": xs(), "source": "hustzxd/LSQuantization lsq.py"},
    "shadow_model": {
        "build": ShadowModel,
        "calls": xs(),
        "source": "lucidrains/ema-pytorch ema_pytorch/ema_pytorch.py",
    },
    "gumbel_temperature": {
        "build": GumbelLatents,
        "calls": lambda: [(torch.randn(4, 8), i) for i in range(12)],
        "source": "AntixK/PyTorch-VAE models/cat_vae.py",
    },
    "capacity_annealing": {
        "build": CapacityVAE,
        "calls": xs(),
        "source": "YannDubs/disentangling-vae disvae/models/losses.py",
    },
    "kl_controller": {
        "build": KLPenalty,
        "calls": lambda: [(torch.randn(4, 8) * (0.5 + 2 * (i % 2)), torch.randn(4)) for i in range(12)],
        "source": "huggingface/trl trl/trainer/utils.py",
    },
    "rate_by_kl": {
        "build": AdaptiveRatePPO,
        "calls": ppo_calls,
        "source": "leggedrobotics/rsl_rl rsl_rl/algorithms/ppo.py",
    },
    "welford_rows": {
        "build": ObservationFilter,
        "calls": lambda: [(torch.randn(4 if i else 1, 8) * (1 + 3 * (i % 2)), i % 4 != 3) for i in range(12)],
        "source": "Khrylx/PyTorch-RL utils/zfilter.py",
    },
    "loss_scale_overflow": {
        "build": ScaledStep,
        "calls": lambda: [(torch.randn(4, 8) * (1e25 if i in (3, 8, 9) else 1.0),) for i in range(12)],
        "source": "facebookresearch/fairseq fairseq/optim/dynamic_loss_scaler.py",
    },
    "curriculum_pseudo_labels": {
        "build": CurriculumLabels,
        "calls": lambda: [
            (torch.randn(4, 8) * (0.2 + 3 * (i % 2)), torch.randn(4, 8), torch.randperm(10)[:4]) for i in range(12)
        ],
        "source": "microsoft/Semi-supervised-learning semilearn/algorithms/flexmatch/utils.py",
    },
    "spectral_power_iteration": {
        "build": lambda: SpectralWrap(nn.Linear(8, 8)),
        "calls": xs(),
        "source": "christiancosgrove/pytorch-spectral-normalization-gan spectral_normalization.py",
    },
    "rotary_grows": {
        "build": GrowingRotary,
        "calls": lambda: [(torch.randn(4, n, 8),) for n in (4, 5, 6, 8, 7, 8, 9, 6, 12, 10, 12, 13)],
        "source": "huggingface/transformers src/transformers/models/gpt_neox/modeling_gpt_neox.py",
    },
    "sink_cache": {"build": SinkCache, "calls": xs(), "source": "mit-han-lab/streaming-llm streaming_llm/kv_cache.py"},
    "caps_loss": {
        "build": CapsLoss,
        "calls": xs(),
        "source": "longzilicart/GloReDi src/Logger/longzili_loss_scaler.py",
    },
    "clips_by_percentile": {"build": AutoClip, "calls": xs(), "source": "pseeth/autoclip autoclip.py"},
    "shrinking_threshold": {
        "build": DashThreshold,
        "calls": xs(),
        "source": "microsoft/Semi-supervised-learning semilearn/algorithms/dash/utils.py",
    },
    "epsilon_greedy": {
        "build": EpsilonGreedyQ,
        "calls": lambda: [
            (torch.randn(4, 8) * (1 + 3 * (i % 2)), torch.randn(4, 8), torch.randn(4), (torch.rand(4) < 0.3).float())
            for i in range(12)
        ],
        "source": "DLR-RM/stable-baselines3 stable_baselines3/dqn/dqn.py",
    },
    "stops_early": {
        "build": StopsEarly,
        "calls": lambda: [
            (torch.randn(4, 8) * s,) for s in (2.0, 1.0, 3.0, 0.5, 2.0, 2.0, 0.2, 1.0, 2.0, 3.0, 0.1, 1.0)
        ],
        "source": "Bjarten/early-stopping-pytorch pytorchtools.py",
    },
    "integrate_and_fire": {
        "build": IntegrateAndFire,
        "calls": xs(),
        "source": "fangwei123456/spikingjelly spikingjelly/activation_based/neuron.py",
    },
}
