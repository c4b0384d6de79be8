"""Reduced from reports about graph breaks: serving, policies, solvers, schedulers, speech."""

import logging
import math
import warnings
import zlib
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger("everyday.reported")


# 1. vLLM / SGLang sampler
@dataclass
class SamplingMetadata:
    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    all_greedy: bool


class Sampler(nn.Module):
    EPS = 1e-5

    def forward(self, logits, metadata):
        logits = logits.to(torch.float32)
        if torch.any(torch.isnan(logits)):
            logger.warning("Detected errors during sampling! NaN in the logits.")
            logits = torch.where(torch.isnan(logits), torch.full_like(logits, -1e5), logits)
        greedy = logits.argmax(dim=-1)
        if metadata.all_greedy:
            return greedy, logits.log_softmax(-1).gather(-1, greedy[:, None])
        temperature = torch.where(metadata.temperature < self.EPS, 1.0, metadata.temperature)
        logits = logits.div(temperature.unsqueeze(1))
        do_top_p = (metadata.top_p < 1.0).any()
        do_top_k = (metadata.top_k < logits.shape[-1]).any()
        if do_top_p or do_top_k:
            logits = self.apply_top_k_top_p(logits, metadata.top_k, metadata.top_p)
        probs = logits.softmax(dim=-1)
        q = torch.empty_like(probs).exponential_()
        sampled = torch.where(metadata.temperature < self.EPS, greedy, probs.div(q).argmax(dim=-1))
        return sampled, logits.log_softmax(-1).gather(-1, sampled[:, None])

    def apply_top_k_top_p(self, logits, k, p):
        logits_sort, logits_idx = logits.sort(dim=-1, descending=False)
        top_k_mask = logits_sort.gather(1, (logits.shape[1] - k).unsqueeze(1))
        logits_sort = logits_sort.masked_fill(logits_sort < top_k_mask, -float("inf"))
        probs_sum = logits_sort.softmax(dim=-1).cumsum(dim=-1)
        top_p_mask = probs_sum <= 1 - p.unsqueeze(1)
        top_p_mask[:, -1] = False
        logits_sort = logits_sort.masked_fill(top_p_mask, -float("inf"))
        return torch.empty_like(logits_sort).scatter_(-1, logits_idx, logits_sort)


def sampler_calls():
    calls = []
    for i in range(12):
        logits = torch.randn(4, 16) * 2
        if i in (5, 9):
            logits[i % 4, 3] = float("nan")
        temperature = torch.tensor([0.0, 0.7, 1.0, 1.3]) if i % 3 else torch.zeros(4)
        top_k = torch.full((4,), 16) if i % 2 else torch.tensor([16, 4, 8, 16])
        top_p = torch.ones(4) if i % 4 < 2 else torch.tensor([1.0, 0.9, 0.8, 1.0])
        calls.append((logits, SamplingMetadata(temperature, top_k, top_p, bool((temperature == 0).all()))))
    return calls


# 2. dynamic NTK rotary embedding (transformers / vLLM)
class DynamicNTKRotary(nn.Module):
    def __init__(self, dim=8, max_position=16, base=10000.0):
        super().__init__()
        self.dim, self.base = dim, base
        self.original_max_seq_len = max_position
        self.max_seq_len_cached = max_position
        self.register_buffer("inv_freq", self.compute(max_position), persistent=False)
        self.q_proj = nn.Linear(dim, dim)

    def compute(self, seq_len):
        base = self.base * ((2.0 * seq_len / self.original_max_seq_len) - 1.0) ** (self.dim / (self.dim - 2))
        return 1.0 / (base ** (torch.arange(0, self.dim, 2).float() / self.dim))

    def dynamic_frequency_update(self, position_ids):
        seq_len = int(torch.max(position_ids)) + 1
        if seq_len > self.max_seq_len_cached:
            self.register_buffer("inv_freq", self.compute(seq_len), persistent=False)
            self.max_seq_len_cached = seq_len
        if seq_len < self.original_max_seq_len and self.max_seq_len_cached > self.original_max_seq_len:
            self.inv_freq = self.compute(self.original_max_seq_len)
            self.max_seq_len_cached = self.original_max_seq_len

    def forward(self, hidden, position_ids):
        self.dynamic_frequency_update(position_ids)
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        q = self.q_proj(hidden)
        x1, x2 = q.chunk(2, dim=-1)
        return q * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


def rotary_calls():
    lasts = [4, 8, 12, 17, 20, 24, 22, 9, 10, 30, 31, 5]
    return [(torch.randn(2, 4, 8), torch.arange(last - 4, last).expand(2, 4)) for last in lasts]


# 3. lerobot diffusion policy
class DiffusionPolicy(nn.Module):
    def __init__(self, obs_dim=6, action_dim=2, horizon=4, n_action_steps=3, num_inference_steps=3):
        super().__init__()
        self.horizon, self.n_action_steps, self.action_dim = horizon, n_action_steps, action_dim
        self.num_inference_steps = num_inference_steps
        self.net = nn.Sequential(
            nn.Linear(obs_dim * 2 + horizon * action_dim + 1, 16), nn.Mish(), nn.Linear(16, horizon * action_dim)
        )
        betas = torch.linspace(1e-3, 0.2, 10)
        self.register_buffer("alphas_cumprod", torch.cumprod(1 - betas, 0))
        self.reset()

    def reset(self):
        self.queues = {"observation.state": deque(maxlen=2), "action": deque(maxlen=self.n_action_steps)}

    def conditional_sample(self, cond):
        b = cond.shape[0]
        sample = torch.randn(b, self.horizon * self.action_dim)
        timesteps = np.linspace(0, len(self.alphas_cumprod) - 1, self.num_inference_steps).round().astype(int)[::-1]
        for t in timesteps:
            a = self.alphas_cumprod[t]
            eps = self.net(torch.cat([cond, sample, torch.full((b, 1), float(t))], -1))
            sample = (sample - (1 - a).sqrt() * eps) / a.sqrt()
            sample = sample.clamp(-1, 1)
            if t > 0:
                sample = sample + 0.1 * torch.randn_like(sample)
        return sample.view(b, self.horizon, self.action_dim)

    @torch.no_grad()
    def forward(self, batch):
        if batch.get("episode_start", False):
            self.reset()
        queue = self.queues["observation.state"]
        if len(queue) == 0:
            while len(queue) < queue.maxlen:
                queue.append(batch["observation.state"])
        else:
            queue.append(batch["observation.state"])
        if len(self.queues["action"]) == 0:
            actions = self.conditional_sample(torch.cat(list(queue), dim=-1))
            self.queues["action"].extend(actions[:, : self.n_action_steps].transpose(0, 1))
        return self.queues["action"].popleft()


# 4. PPO loss
class PPOLoss(nn.Module):
    def __init__(self, obs_dim=6, n_actions=3, clip_coef=0.2, target_kl=0.3):
        super().__init__()
        self.actor, self.critic = nn.Linear(obs_dim, n_actions), nn.Linear(obs_dim, 1)
        self.clip_coef, self.target_kl = clip_coef, target_kl
        self.clipfracs, self.continue_training = [], True
        self.explained_variance = float("nan")

    def forward(self, obs, actions, old_logprob, advantages, returns, old_values):
        logits = self.actor(obs)
        dist = torch.distributions.Categorical(logits=logits, validate_args=False)
        logratio = dist.log_prob(actions) - old_logprob
        ratio = logratio.exp()
        with torch.no_grad():
            approx_kl = ((ratio - 1) - logratio).mean()
            self.clipfracs += [((ratio - 1.0).abs() > self.clip_coef).float().mean().item()]
        if len(advantages) > 1:
            advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss = torch.max(
            -advantages * ratio, -advantages * ratio.clamp(1 - self.clip_coef, 1 + self.clip_coef)
        ).mean()
        values = self.critic(obs).view(-1)
        v_clipped = old_values + torch.clamp(values - old_values, -self.clip_coef, self.clip_coef)
        v_loss = 0.5 * torch.max((values - returns) ** 2, (v_clipped - returns) ** 2).mean()
        y_pred, y_true = old_values.cpu().numpy(), returns.cpu().numpy()
        var_y = np.var(y_true)
        self.explained_variance = float("nan") if var_y == 0 else float(1 - np.var(y_true - y_pred) / var_y)
        self.continue_training = True
        if self.target_kl is not None and approx_kl > 1.5 * self.target_kl:
            self.continue_training = False
            logger.info("Early stopping due to reaching max kl: %.2f", approx_kl.item())
        return pg_loss - 0.01 * dist.entropy().mean() + 0.5 * v_loss


def ppo_calls():
    calls = []
    for i in range(12):
        returns = torch.full((8,), 1.0) if i == 7 else torch.randn(8)
        old = torch.log_softmax(torch.randn(8, 3) * (0.2 if i % 2 else 1.5), -1)
        actions = torch.randint(0, 3, (8,))
        calls.append(
            (
                torch.randn(8, 6),
                actions,
                old.gather(1, actions[:, None]).squeeze(1),
                torch.randn(8),
                returns,
                returns + 0.3 * torch.randn(8),
            )
        )
    return calls


# 5. GradScaler / fairseq DynamicLossScaler
class DynamicLossScaler:
    def __init__(self, init_scale=64.0, scale_window=3, min_loss_scale=1.0):
        self.loss_scale, self.scale_window, self.min_loss_scale = init_scale, scale_window, min_loss_scale
        self.iter, self.last_overflow_iter = 0, -1

    def check_overflow(self, grad_norm):
        if grad_norm == float("inf") or grad_norm != grad_norm:
            self.loss_scale = max(self.loss_scale / 2.0, self.min_loss_scale)
            self.last_overflow_iter = self.iter
            self.iter += 1
            return True
        return False

    def update(self):
        if (self.iter - self.last_overflow_iter) % self.scale_window == 0:
            self.loss_scale *= 2.0
        self.iter += 1


class ScaledUpdate(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaler = DynamicLossScaler()
        self.register_buffer("weight", torch.ones(4, 4))
        self.register_buffer("momentum", torch.zeros(4, 4))
        self.skipped = 0

    def forward(self, grad):
        grad = (grad.half() * self.scaler.loss_scale).float() / self.scaler.loss_scale
        grad_norm = grad.norm(2).item()
        if self.scaler.check_overflow(grad_norm):
            self.skipped += 1
            logger.info(
                "NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: %s", self.scaler.loss_scale
            )
            return self.weight.clone()
        if grad_norm > 2.0:
            grad = grad * (2.0 / (grad_norm + 1e-6))
        self.momentum.mul_(0.9).add_(grad)
        self.weight.sub_(0.1 * self.momentum)
        self.scaler.update()
        return self.weight.clone()


# 6. gpytorch psd_safe_cholesky
class NotPSDError(RuntimeError):
    pass


def psd_safe_cholesky(A, jitter=1e-6, max_tries=3):
    L, info = torch.linalg.cholesky_ex(A)
    if not torch.any(info):
        return L
    isnan = torch.isnan(A)
    if isnan.any():
        raise ValueError(f"cholesky_cpu: {isnan.sum().item()} of {A.numel()} elements of the {A.shape} tensor are NaN.")
    Aprime = A.clone()
    jitter_prev = 0
    for i in range(max_tries):
        jitter_new = jitter * (10**i)
        diag_add = ((info > 0) * (jitter_new - jitter_prev)).unsqueeze(-1).expand(*Aprime.shape[:-1])
        Aprime.diagonal(dim1=-1, dim2=-2).add_(diag_add)
        jitter_prev = jitter_new
        warnings.warn(f"A not p.d., added jitter of {jitter_new:.1e} to the diagonal", RuntimeWarning)
        L, info = torch.linalg.cholesky_ex(Aprime)
        if not torch.any(info):
            return L
    raise NotPSDError(f"Matrix not positive definite after repeatedly adding jitter up to {jitter_new:.1e}.")


class ExactGP(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(1, dtype=torch.double))

    def forward(self, x, y, noise):
        dist = (x.unsqueeze(-2) - x.unsqueeze(-3)).div(F.softplus(self.raw_lengthscale)).pow(2).sum(-1)
        K = torch.exp(-0.5 * dist) + noise * torch.eye(x.shape[-2], dtype=x.dtype)
        L = psd_safe_cholesky(K)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        logdet = 2 * L.diagonal(dim1=-1, dim2=-2).log().sum(-1)
        return 0.5 * ((y * alpha).sum(-1) + logdet)


def gp_calls():
    noises = [1e-2, 1e-3, -1e-7, 1e-2, -5e-6, 1e-2, 1e-1, -2e-5, 1e-2, -1e-2, 1e-3, 1e-2]
    calls = []
    for i, noise in enumerate(noises):
        x = torch.randn(2, 5, 1, dtype=torch.double)
        if noise < 0:
            x[0, 1:] = x[0, 0]
        if i == 8:
            x[1, 2] = float("nan")
        calls.append((x, torch.randn(2, 5, dtype=torch.double), noise))
    return calls


# 7. RNN-T greedy decoding (NeMo)
class GreedyRNNT(nn.Module):
    def __init__(self, vocab=6, hidden=8, max_symbols=3):
        super().__init__()
        self.blank, self.max_symbols = vocab, max_symbols
        self.embed = nn.Embedding(vocab + 1, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.joint = nn.Linear(hidden * 2, vocab + 1)

    @torch.no_grad()
    def forward(self, encoded, lengths):
        hypotheses = []
        for b in range(encoded.shape[0]):
            hyp, score = [], 0.0
            state = torch.zeros(1, encoded.shape[-1])
            pred = self.cell(self.embed(torch.tensor([self.blank])), state)
            for t in range(int(lengths[b])):
                not_blank, symbols_added = True, 0
                while not_blank and symbols_added < self.max_symbols:
                    logp = self.joint(torch.cat([encoded[b : b + 1, t], pred], -1)).log_softmax(-1)[0]
                    v, k = logp.max(0)
                    k = k.item()
                    if k == self.blank:
                        not_blank = False
                    else:
                        hyp.append(k)
                        score += float(v)
                        state = pred
                        pred = self.cell(self.embed(torch.tensor([k])), state)
                    symbols_added += 1
            hypotheses.append((hyp, score))
        return hypotheses


# 8. Lightning module with torchmetrics-like accuracy
class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("correct", torch.tensor(0))
        self.register_buffer("total", torch.tensor(0))
        self.update_count, self.computed = 0, None

    def update(self, preds, target):
        if preds.ndim == target.ndim + 1:
            preds = preds.argmax(dim=-1)
        if target.numel() and target.max() >= 4:
            raise ValueError(
                f"Detected target label {target.max().item()} which is larger than the number of classes 4."
            )
        self.correct += (preds == target).sum()
        self.total += target.numel()
        self.update_count += 1
        self.computed = None

    def compute(self):
        if self.update_count == 0:
            warnings.warn("The ``compute`` method of metric was called before the ``update`` method", UserWarning)
        if self.computed is None:
            self.computed = self.correct.float() / self.total.clamp(min=1)
        return self.computed


class LitClassifier(nn.Module):
    def __init__(self, log_every_n_steps=4):
        super().__init__()
        self.net = nn.Linear(8, 4)
        self.train_acc = Accuracy()
        self.global_step, self.log_every_n_steps = 0, log_every_n_steps
        self.callback_metrics, self.progress_bar = {}, {}

    def log(self, name, value, prog_bar=False, on_epoch=False):
        if isinstance(value, torch.Tensor):
            if value.numel() != 1:
                raise ValueError(f"`self.log({name}, {value})` was called, but the tensor must have a single element.")
            value = value.detach()
        self.callback_metrics[name] = value
        if prog_bar:
            self.progress_bar[name] = round(float(value), 3)

    def forward(self, x, y):
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.train_acc.update(logits, y)
        self.log("train_loss", loss, prog_bar=True)
        self.log("lr", 0.1 * 0.9**self.global_step)
        if self.global_step % self.log_every_n_steps == 0:
            self.log("train_acc", self.train_acc.compute(), on_epoch=True)
            logger.info("step %d %s", self.global_step, self.progress_bar)
        self.global_step += 1
        return loss


# 9. timm: drop path, mixup, model EMA
class DropPath(nn.Module):
    def __init__(self, drop_prob):
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x):
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep_prob = 1 - self.drop_prob
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep_prob)
        return x * mask.div_(keep_prob)


class TimmTrainStep(nn.Module):
    def __init__(self, mixup_alpha=0.4, mix_prob=0.7, num_classes=4):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.drops = nn.ModuleList(DropPath(p.item()) for p in torch.linspace(0, 0.3, 3))
        self.head = nn.Linear(8, num_classes)
        self.register_buffer("ema_head", self.head.weight.detach().clone())
        self.mixup_alpha, self.mix_prob, self.num_classes = mixup_alpha, mix_prob, num_classes
        self.num_updates = 0

    def get_decay(self):
        return min(0.999, (1 + self.num_updates) / (10 + self.num_updates))

    def forward(self, x, target):
        lam = 1.0
        if np.random.rand() < self.mix_prob:
            lam = float(np.random.beta(self.mixup_alpha, self.mixup_alpha))
        target = F.one_hot(target, self.num_classes).float()
        if lam != 1.0:
            x = x * lam + x.flip(0) * (1.0 - lam)
            target = target * lam + target.flip(0) * (1.0 - lam)
        for block, drop in zip(self.blocks, self.drops):
            x = x + drop(F.gelu(block(x)))
        loss = torch.sum(-target * self.head(x).log_softmax(-1), dim=-1).mean()
        if not math.isnan(loss.item()):
            with torch.no_grad():
                self.ema_head.lerp_(self.head.weight, 1 - self.get_decay())
            self.num_updates += 1
        return loss


# 10. detectron2 / torchvision box head
class BoxHead(nn.Module):
    def __init__(self, num_classes=3, score_thresh=0.35, min_size=0.1, topk=2):
        super().__init__()
        self.cls, self.reg = nn.Linear(8, num_classes + 1), nn.Linear(8, 4)
        self.score_thresh, self.min_size, self.topk = score_thresh, min_size, topk
        self.num_kept = []

    def forward(self, features, proposals, image_size):
        scores, deltas = self.cls(features).softmax(-1), 0.2 * self.reg(features)
        widths = proposals[:, 2] - proposals[:, 0]
        heights = proposals[:, 3] - proposals[:, 1]
        boxes = torch.stack(
            [
                proposals[:, 0] + deltas[:, 0] * widths,
                proposals[:, 1] + deltas[:, 1] * heights,
                proposals[:, 2] + deltas[:, 2] * widths,
                proposals[:, 3] + deltas[:, 3] * heights,
            ],
            -1,
        )
        valid_mask = torch.isfinite(boxes).all(dim=1) & torch.isfinite(scores).all(dim=1)
        if not valid_mask.all():
            boxes, scores = boxes[valid_mask], scores[valid_mask]
        h, w = image_size
        boxes = torch.stack(
            [boxes[:, 0].clamp(0, w), boxes[:, 1].clamp(0, h), boxes[:, 2].clamp(0, w), boxes[:, 3].clamp(0, h)], -1
        )
        best, labels = scores[:, :-1].max(dim=-1)
        keep = torch.where(
            (best > self.score_thresh)
            & (boxes[:, 2] - boxes[:, 0] >= self.min_size)
            & (boxes[:, 3] - boxes[:, 1] >= self.min_size)
        )[0]
        self.num_kept.append(keep.numel())
        if keep.numel() == 0:
            return boxes.new_zeros((0, 4)), best.new_zeros((0,)), labels.new_zeros((0,))
        boxes, best, labels = boxes[keep], best[keep], labels[keep]
        if len(best) > self.topk:
            best, order = best.topk(self.topk)
            boxes, labels = boxes[order], labels[order]
        return boxes, best, labels


def box_calls():
    calls = []
    for i in range(12):
        n = 8 if i != 6 else 0
        corner = torch.rand(n, 2) * 8
        features = torch.randn(n, 8) * (0.1 if i % 4 == 1 else 1.0)
        if i in (4, 10):
            features[2] = float("inf")
        calls.append((features, torch.cat([corner, corner + 1 + torch.rand(n, 2) * 4], -1), (10, 12)))
    return calls


# 11. torchrl / MAPPO: value normalisation with env-like step and replay weights
class ValueNormStep(nn.Module):
    def __init__(self, num_envs=4, max_steps=5, gamma=0.9, beta=0.9):
        super().__init__()
        self.policy, self.value = nn.Linear(3, 1), nn.Linear(3, 1)
        self.max_steps, self.gamma, self.beta = max_steps, gamma, beta
        self.register_buffer("steps", torch.zeros(num_envs, dtype=torch.long))
        self.register_buffer("running_mean", torch.zeros(1))
        self.register_buffer("running_mean_sq", torch.zeros(1))
        self.register_buffer("debiasing_term", torch.tensor(0.0))
        self.max_priority, self.episodes = 1.0, 0

    def mean_std(self):
        mean = self.running_mean / self.debiasing_term.clamp(min=1e-5)
        var = (self.running_mean_sq / self.debiasing_term.clamp(min=1e-5) - mean**2).clamp(min=1e-2)
        return mean, var.sqrt()

    def forward(self, state):
        action = torch.tanh(self.policy(state))
        with torch.no_grad():
            next_state = state + 0.5 * action
            self.steps += 1
            reward = -next_state.pow(2).sum(-1)
            terminated = next_state.abs().max(-1).values > 2.5
            done = terminated | (self.steps >= self.max_steps)
            mean, std = self.mean_std()
            returns = reward + self.gamma * (self.value(next_state).squeeze(-1) * std + mean) * (~terminated)
            self.running_mean.mul_(self.beta).add_(returns.mean() * (1 - self.beta))
            self.running_mean_sq.mul_(self.beta).add_(returns.pow(2).mean() * (1 - self.beta))
            self.debiasing_term.mul_(self.beta).add_(1 - self.beta)
            if done.any():
                self.episodes += int(done.sum())
                self.steps[done] = 0
                next_state[done] = 0.0
        mean, std = self.mean_std()
        td_error = self.value(state).squeeze(-1) - (returns - mean) / std
        self.max_priority = max(self.max_priority, td_error.abs().max().item())
        weights = (td_error.detach().abs() / self.max_priority + 1e-6).pow(-0.5)
        return next_state, ((weights / weights.max()) * td_error.pow(2)).mean()


# 12. diffusers EulerDiscreteScheduler with dynamic thresholding
class EulerScheduler:
    def __init__(self, num_train_timesteps=100, num_inference_steps=4):
        betas = torch.linspace(0.01**0.5, 0.1**0.5, num_train_timesteps) ** 2
        alphas_cumprod = torch.cumprod(1 - betas, 0)
        sigmas = ((1 - alphas_cumprod) / alphas_cumprod) ** 0.5
        self.timesteps = torch.linspace(num_train_timesteps - 1, 0, num_inference_steps).round().long()
        self.sigmas = torch.cat([sigmas[self.timesteps], torch.zeros(1)])
        self.step_index, self.begin_index, self.is_scale_input_called = None, None, False

    def index_for_timestep(self, timestep):
        indices = (self.timesteps == timestep).nonzero()
        pos = 1 if len(indices) > 1 else 0
        return indices[pos].item()

    def scale_model_input(self, sample, timestep):
        if self.step_index is None:
            self.step_index = self.index_for_timestep(timestep)
        self.is_scale_input_called = True
        return sample / ((self.sigmas[self.step_index] ** 2 + 1) ** 0.5)

    def threshold_sample(self, sample, ratio=0.9, max_value=3.0):
        s = torch.quantile(sample.reshape(sample.shape[0], -1).abs(), ratio, dim=1).clamp(1, max_value).unsqueeze(1)
        return torch.clamp(sample, -s, s) / s

    def step(self, model_output, timestep, sample):
        if not self.is_scale_input_called:
            logger.warning("The `scale_model_input` function should be called before `step`.")
        sigma, sigma_next = self.sigmas[self.step_index], self.sigmas[self.step_index + 1]
        pred_original = self.threshold_sample(sample - sigma * model_output)
        derivative = (sample - pred_original) / sigma
        self.step_index += 1
        return sample + derivative * (sigma_next - sigma)


class EulerPipeline(nn.Module):
    def __init__(self):
        super().__init__()
        self.unet = nn.Linear(9, 8)
        self.scheduler = EulerScheduler()

    def forward(self, latents, timestep):
        if timestep == self.scheduler.timesteps[0]:
            self.scheduler.step_index = None
        x = self.scheduler.scale_model_input(latents, timestep)
        t = timestep.float().expand(latents.shape[0], 1) / 100
        return self.scheduler.step(self.unet(torch.cat([x, t], -1)), timestep, latents)


# 13. k-diffusion: churn and adaptive step
class KSampler(nn.Module):
    def __init__(self, s_churn=1.0, s_tmin=0.5, s_tmax=5.0, atol=0.2, rtol=0.1):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.s_churn, self.s_tmin, self.s_tmax = s_churn, s_tmin, s_tmax
        self.atol, self.rtol = atol, rtol
        self.info = {"steps": 0, "n_accept": 0, "n_reject": 0}

    def to_d(self, x, sigma):
        denoised = self.inner(x / (sigma**2 + 1).sqrt())
        return (x - denoised) / sigma

    @torch.no_grad()
    def forward(self, x, sigma, sigma_min):
        x = x * sigma
        h = (sigma - sigma_min) / 3
        while sigma > sigma_min + 1e-4 and self.info["steps"] < 200:
            gamma = min(self.s_churn / 4, 2**0.5 - 1) if self.s_tmin <= sigma <= self.s_tmax else 0.0
            sigma_hat = sigma * (gamma + 1)
            if gamma > 0:
                x = x + torch.randn_like(x) * (sigma_hat**2 - sigma**2) ** 0.5
            sigma_next = torch.maximum(sigma - h, sigma_min)
            d = self.to_d(x, sigma_hat)
            x_low = x + d * (sigma_next - sigma_hat)
            x_high = x + (d + self.to_d(x_low, sigma_next)) / 2 * (sigma_next - sigma_hat)
            delta = torch.maximum(torch.tensor(self.atol), self.rtol * torch.maximum(x_low.abs(), x_high.abs()))
            error = torch.linalg.norm((x_low - x_high) / delta) / x.numel() ** 0.5
            if error < 1.2:
                x, sigma = x_high, sigma_next
                self.info["n_accept"] += 1
            else:
                self.info["n_reject"] += 1
            h = h * torch.clamp(0.9 * error.clamp(min=1e-3) ** -0.5, 0.3, 2.0)
            self.info["steps"] += 1
        self.info["steps"] = 0
        return x


# 14. mamba inference cache
class InferenceParams:
    def __init__(self, max_seqlen):
        self.max_seqlen, self.seqlen_offset = max_seqlen, 0
        self.key_value_memory_dict = {}


class MambaMixer(nn.Module):
    def __init__(self, d=6, d_state=4, d_conv=3, layer_idx=0):
        super().__init__()
        self.d, self.d_state, self.d_conv, self.layer_idx = d, d_state, d_conv, layer_idx
        self.in_proj = nn.Linear(d, 2 * d)
        self.conv_weight = nn.Parameter(torch.randn(d, d_conv) * 0.3)
        self.x_proj = nn.Linear(d, 2 * d_state + 1)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float()).repeat(d, 1))
        self.out_proj = nn.Linear(d, d)

    def states_from_cache(self, params, batch_size, initialize_states=False):
        if self.layer_idx not in params.key_value_memory_dict:
            conv_state = torch.zeros(batch_size, self.d, self.d_conv)
            ssm_state = torch.zeros(batch_size, self.d, self.d_state)
            params.key_value_memory_dict[self.layer_idx] = (conv_state, ssm_state)
        else:
            conv_state, ssm_state = params.key_value_memory_dict[self.layer_idx]
            if initialize_states:
                conv_state.zero_()
                ssm_state.zero_()
        return conv_state, ssm_state

    @torch.no_grad()
    def forward(self, hidden, params):
        conv_state, ssm_state = self.states_from_cache(params, hidden.shape[0], params.seqlen_offset == 0)
        x, z = self.in_proj(hidden).chunk(2, dim=-1)
        conv_state.copy_(torch.roll(conv_state, shifts=-1, dims=-1))
        conv_state[:, :, -1] = x
        x = F.silu((conv_state * self.conv_weight).sum(-1))
        dt, B, C = self.x_proj(x).split([1, self.d_state, self.d_state], -1)
        dt = F.softplus(dt)
        dA = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.A_log))
        ssm_state.copy_(ssm_state * dA + x.unsqueeze(-1) * (dt * B).unsqueeze(1))
        y = torch.einsum("bdn,bn->bd", ssm_state, C) * F.silu(z)
        params.seqlen_offset += 1
        if params.seqlen_offset >= params.max_seqlen:
            params.seqlen_offset = 0
        return self.out_proj(y)


def mamba_calls():
    params = InferenceParams(5)
    return [(torch.randn(2, 6), params) for _ in range(12)]


# 15. Whisper decode_with_fallback
class WhisperLike(nn.Module):
    def __init__(self, vocab=8, hidden=8, sample_len=6):
        super().__init__()
        self.eot, self.no_speech, self.sample_len = vocab - 1, vocab - 2, sample_len
        self.embed = nn.Embedding(vocab, hidden)
        self.head = nn.Linear(hidden, vocab)

    def decode(self, audio, temperature):
        tokens, sum_logprob, no_speech_prob = [0], 0.0, 0.0
        for i in range(self.sample_len):
            logits = self.head(torch.tanh(self.embed(torch.tensor(tokens[-1])) + audio))
            if i == 0:
                no_speech_prob = logits.softmax(-1)[self.no_speech].item()
            if temperature == 0:
                next_token = logits.argmax(-1)
            else:
                next_token = torch.multinomial((logits / temperature).softmax(-1), 1)[0]
            sum_logprob += logits.log_softmax(-1)[next_token].item()
            tokens.append(int(next_token))
            if next_token == self.eot:
                break
        text = "".join(chr(97 + t) * 3 for t in tokens).encode()
        return {
            "tokens": tokens,
            "avg_logprob": sum_logprob / len(tokens),
            "no_speech_prob": no_speech_prob,
            "compression_ratio": len(text) / len(zlib.compress(text)),
            "temperature": temperature,
        }

    @torch.no_grad()
    def forward(self, audio):
        for t in (0.0, 0.4, 0.8):
            result = self.decode(audio, t)
            needs_fallback = False
            if result["compression_ratio"] > 1.3:
                needs_fallback = True
            if result["avg_logprob"] < -1.2:
                needs_fallback = True
            if result["no_speech_prob"] > 0.15:
                needs_fallback = False
            if not needs_fallback:
                break
        if result["no_speech_prob"] > 0.15 and result["avg_logprob"] < -0.9:
            logger.info("skipping silent segment")
            return None
        return result


CASES = {
    "vllm_sampler_again": {"build": Sampler, "calls": sampler_calls},
    "dynamic_ntk_rotary": {"build": DynamicNTKRotary, "calls": rotary_calls},
    "lerobot_diffusion_policy": {
        "build": DiffusionPolicy,
        "calls": lambda: [({"observation.state": torch.randn(2, 6), "episode_start": i in (0, 7)},) for i in range(12)],
    },
    "ppo_loss": {"build": PPOLoss, "calls": ppo_calls},
    "dynamic_loss_scaler": {
        "build": ScaledUpdate,
        "calls": lambda: [(torch.randn(4, 4) * (3000.0 if i in (3, 4, 9) else 0.5),) for i in range(12)],
    },
    "gp_psd_safe_cholesky": {"build": ExactGP, "calls": gp_calls},
    "rnnt_greedy_again": {
        "build": GreedyRNNT,
        "calls": lambda: [(torch.randn(2, 3, 8) * 2, torch.randint(1, 4, (2,))) for _ in range(12)],
    },
    "lightning_log": {
        "build": LitClassifier,
        "calls": lambda: [(torch.randn(4, 8), torch.randint(0, 4, (4,))) for i in range(12)],
    },
    "timm_train_step": {
        "build": TimmTrainStep,
        "calls": lambda: [(torch.randn(4, 8), torch.randint(0, 4, (4,))) for _ in range(12)],
    },
    "box_head": {"build": BoxHead, "calls": box_calls},
    "value_norm_env": {
        "build": ValueNormStep,
        "calls": lambda: [(torch.randn(4, 3) * (1 + i % 3),) for i in range(12)],
    },
    "euler_scheduler": {
        "build": EulerPipeline,
        "calls": lambda: [(torch.randn(2, 8) * 3, torch.tensor([99, 66, 33, 0][i % 4])) for i in range(12)],
    },
    "k_diffusion_adaptive": {
        "build": KSampler,
        "calls": lambda: [(torch.randn(2, 8), torch.tensor(2.0 + i % 4), torch.tensor(0.3)) for i in range(12)],
    },
    "mamba_step": {"build": MambaMixer, "calls": mamba_calls},
    "whisper_fallback": {"build": WhisperLike, "calls": lambda: [(torch.randn(8) * (1 + i % 3),) for i in range(12)]},
}

for _case in CASES.values():
    _case["source"] = (
        "as in public reports about vLLM, transformers, lerobot, CleanRL, fairseq, gpytorch, NeMo, Lightning, timm"
    )
