"""Reduced from reports about graph breaks: experts, adapters, observers, solvers, graphs, decoding, tracking."""

import logging
import math
import random
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger("everyday.researched")


def xs(n=12, b=4, d=8, scale=2.0):
    return lambda: [(torch.randn(b, d) * (1 + scale * (i % 3)),) for i in range(n)]


# 1. SpecAugment (torchaudio mask_along_axis, wav2vec2 mask indices)
class SpecAugment(nn.Module):
    def __init__(self, freq_mask_param=3, time_mask_param=4, n_time_masks=2, p=0.8):
        super().__init__()
        self.freq_mask_param, self.time_mask_param = freq_mask_param, time_mask_param
        self.n_time_masks, self.p = n_time_masks, p
        self.encoder = nn.Linear(8, 8)

    def mask_along_axis(self, spec, mask_param, mask_value, axis, limit):
        if mask_param < 1 or limit < 1:
            return spec
        value = torch.rand(1) * mask_param
        min_value = torch.rand(1) * max(limit - value.item(), 0.0)
        mask_start, mask_end = min_value.long().item(), (min_value.long() + value.long()).item()
        mask = torch.arange(0, spec.shape[axis])
        mask = (mask >= mask_start) & (mask < mask_end)
        if axis == 1:
            mask = mask.unsqueeze(-1)
        if mask_end - mask_start >= mask_param:
            raise ValueError("Number of columns to be masked should be less than mask_param")
        return spec.masked_fill(mask, mask_value)

    def forward(self, spec, lengths):
        if self.training and random.random() < self.p:
            mean = spec.mean().item()
            spec = self.mask_along_axis(spec, self.freq_mask_param, mean, 2, spec.shape[2])
            for _ in range(random.randint(1, self.n_time_masks)):
                spec = self.mask_along_axis(spec, self.time_mask_param, mean, 1, int(lengths.min()))
        return self.encoder(spec)


# 2. DeepSeek / Mixtral experts with load stats and an auxiliary loss
class SparseMoe(nn.Module):
    def __init__(self, dim=8, num_experts=4, top_k=2, aux_coef=0.01):
        super().__init__()
        self.num_experts, self.top_k, self.aux_coef = num_experts, top_k, aux_coef
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 16), nn.SiLU(), nn.Linear(16, dim)) for _ in range(num_experts)
        )
        self.shared = nn.Linear(dim, dim)
        self.register_buffer("expert_bias", torch.zeros(num_experts))
        self.register_buffer("tokens_per_expert", torch.zeros(num_experts))
        self.forward_count = 0

    def moe_infer(self, x, topk_ids, topk_weight):
        cnts = topk_ids.new_zeros((topk_ids.shape[0], self.num_experts)).scatter_(1, topk_ids, 1)
        tokens_per_expert = cnts.sum(dim=0).cpu().numpy()
        idxs = topk_ids.view(-1).argsort(stable=True)
        sorted_tokens = x[idxs // topk_ids.shape[1]]
        outputs, start_idx = [], 0
        for i, num_tokens in enumerate(tokens_per_expert):
            end_idx = start_idx + num_tokens
            if num_tokens == 0:
                continue
            outputs.append(self.experts[i](sorted_tokens[start_idx:end_idx]))
            start_idx = end_idx
        outs = torch.cat(outputs, dim=0) if outputs else sorted_tokens.new_empty(0)
        new_x = torch.zeros_like(outs).index_copy(0, idxs, outs)
        return (new_x.view(*topk_ids.shape, -1) * topk_weight.unsqueeze(-1)).sum(dim=1)

    def forward(self, x):
        scores = self.gate(x).softmax(-1)
        topk_ids = torch.topk(scores.detach() + self.expert_bias, self.top_k, dim=-1).indices
        topk_weight = scores.gather(1, topk_ids)
        topk_weight = topk_weight / (topk_weight.sum(-1, keepdim=True) + 1e-20)
        y = self.moe_infer(x, topk_ids, topk_weight) + self.shared(x)
        load = torch.bincount(topk_ids.flatten(), minlength=self.num_experts).float()
        aux = self.aux_coef * self.num_experts * (load / load.sum() * scores.mean(0)).sum()
        if self.training:
            self.tokens_per_expert += load
            self.forward_count += 1
            if self.forward_count % 4 == 0:
                self.expert_bias += 0.01 * torch.sign(self.tokens_per_expert.mean() - self.tokens_per_expert)
                self.tokens_per_expert.zero_()
        return y, aux


# 3. PEFT LoRA: merge, disabled adapters, rank dropout
class LoraLinear(nn.Module):
    def __init__(self, dim=8, r=4, alpha=8, rank_dropout=0.5, module_dropout=0.2):
        super().__init__()
        self.base_layer = nn.Linear(dim, dim)
        self.base_layer.requires_grad_(False)
        self.lora_A = nn.ModuleDict({"default": nn.Linear(dim, r, bias=False), "other": nn.Linear(dim, r, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(r, dim, bias=False), "other": nn.Linear(r, dim, bias=False)})
        self.scaling = {"default": alpha / r, "other": 1.0}
        self.rank_dropout, self.module_dropout = rank_dropout, module_dropout
        self.disable_adapters, self.merged_adapters = False, []

    @property
    def merged(self):
        return bool(self.merged_adapters)

    def merge(self, names):
        for name in names:
            if name in self.merged_adapters:
                warnings.warn(f"Already following adapters were merged {name}")
                continue
            delta = self.scaling[name] * self.lora_B[name].weight @ self.lora_A[name].weight
            if not torch.isfinite(delta).all():
                raise ValueError(f"NaNs detected in the merged weights. The adapter {name} seems to be broken")
            self.base_layer.weight.data += delta.data
            self.merged_adapters.append(name)

    def unmerge(self):
        while len(self.merged_adapters) > 0:
            name = self.merged_adapters.pop()
            self.base_layer.weight.data -= (
                self.scaling[name] * self.lora_B[name].weight @ self.lora_A[name].weight
            ).data

    def forward(self, x, adapters):
        if self.disable_adapters:
            if self.merged:
                self.unmerge()
            return self.base_layer(x)
        result = self.base_layer(x)
        if self.merged:
            return result
        for name in adapters:
            if name not in self.lora_A:
                continue
            if self.training and torch.rand(1) < self.module_dropout:
                continue
            h = self.lora_A[name](x)
            if self.training and self.rank_dropout:
                h = h * (torch.rand(h.shape[-1]) > self.rank_dropout)
            result = result + self.lora_B[name](h) * self.scaling[name]
        return result


class LoraBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = LoraLinear()

    def forward(self, x, adapters, phase):
        if phase == "train":
            self.layer.unmerge()
            self.layer.train()
        elif phase == "eval":
            self.layer.eval()
            self.layer.merge(adapters)
        return F.relu(self.layer(x, adapters))


# 4. quantisation observer and fake quant
class MovingAverageFakeQuant(nn.Module):
    def __init__(self, averaging_constant=0.1, quant_min=-128, quant_max=127, freeze_after=8, start_after=3):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.averaging_constant, self.quant_min, self.quant_max = averaging_constant, quant_min, quant_max
        self.freeze_after, self.start_after = freeze_after, start_after
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("fake_quant_enabled", torch.tensor([0], dtype=torch.uint8))
        self.register_buffer("num_batches", torch.tensor(0))

    def observe(self, x):
        if x.numel() == 0:
            return
        min_cur, max_cur = torch.aminmax(x.detach())
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            min_val, max_val = min_cur, max_cur
        else:
            min_val = self.min_val + self.averaging_constant * (min_cur - self.min_val)
            max_val = self.max_val + self.averaging_constant * (max_cur - self.max_val)
        self.min_val.copy_(min_val)
        self.max_val.copy_(max_val)

    def calculate_qparams(self):
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default scale and zero point")
            return torch.tensor(1.0), torch.tensor(0)
        min_neg, max_pos = torch.clamp(self.min_val, max=0), torch.clamp(self.max_val, min=0)
        scale = ((max_pos - min_neg) / (self.quant_max - self.quant_min)).clamp(min=torch.finfo(torch.float32).eps)
        zero_point = (self.quant_min - torch.round(min_neg / scale)).clamp(self.quant_min, self.quant_max)
        return scale, zero_point.int()

    def forward(self, x):
        h = self.fc(x)
        self.num_batches += 1
        if self.num_batches > self.start_after:
            self.fake_quant_enabled[0] = 1
        if self.num_batches > self.freeze_after:
            self.observer_enabled[0] = 0
        if self.observer_enabled[0] == 1:
            self.observe(h)
        if self.fake_quant_enabled[0] == 1:
            scale, zero_point = self.calculate_qparams()
            h = torch.fake_quantize_per_tensor_affine(h, scale, zero_point, self.quant_min, self.quant_max)
        return h


# 5. VQ codebook: k-means on the first batch, expiry of dead codes
def kmeans(samples, num_clusters, num_iters=4):
    means = samples[torch.randperm(samples.shape[0])[:num_clusters]]
    for _ in range(num_iters):
        buckets = torch.cdist(samples, means).argmin(dim=-1)
        bins = torch.bincount(buckets, minlength=num_clusters)
        zero_mask = bins == 0
        new_means = torch.zeros_like(means).index_add_(0, buckets, samples) / bins.masked_fill(zero_mask, 1)[..., None]
        means = torch.where(zero_mask[..., None], means, new_means)
    return means, bins


class EuclideanCodebook(nn.Module):
    def __init__(self, dim=4, codebook_size=6, decay=0.8, threshold_ema_dead_code=0.3):
        super().__init__()
        self.codebook_size, self.decay, self.threshold = codebook_size, decay, threshold_ema_dead_code
        self.register_buffer("initted", torch.tensor([False]))
        self.register_buffer("cluster_size", torch.zeros(codebook_size))
        self.register_buffer("embed", torch.zeros(codebook_size, dim))
        self.register_buffer("embed_avg", torch.zeros(codebook_size, dim))

    @torch.no_grad()
    def init_embed_(self, data):
        if self.initted:
            return
        embed, cluster_size = kmeans(data, self.codebook_size)
        self.embed.data.copy_(embed)
        self.embed_avg.data.copy_(embed * cluster_size[:, None])
        self.cluster_size.data.copy_(cluster_size)
        self.initted.data.copy_(torch.Tensor([True]))

    @torch.no_grad()
    def expire_codes_(self, samples):
        if self.threshold == 0:
            return
        expired_codes = self.cluster_size < self.threshold
        if not torch.any(expired_codes):
            return
        replace = samples[torch.randint(0, samples.shape[0], (self.codebook_size,))]
        self.embed.data.copy_(torch.where(expired_codes[..., None], replace, self.embed))
        self.cluster_size.data[expired_codes] = self.threshold
        self.embed_avg.data[expired_codes] = self.embed[expired_codes] * self.threshold

    def forward(self, x):
        self.init_embed_(x.detach())
        ind = torch.cdist(x.detach(), self.embed).argmin(dim=-1)
        onehot = F.one_hot(ind, self.codebook_size).type(x.dtype)
        quantize = F.embedding(ind, self.embed)
        if self.training:
            self.cluster_size.data.lerp_(onehot.sum(0), 1 - self.decay)
            self.embed_avg.data.lerp_(onehot.t() @ x.detach(), 1 - self.decay)
            self.embed.data.copy_(self.embed_avg / self.cluster_size.clamp(min=1e-3).unsqueeze(1))
            self.expire_codes_(x.detach())
        avg_probs = onehot.mean(0)
        return quantize, ind, torch.exp(-(avg_probs * (avg_probs + 1e-10).log()).sum())


# 6. Sinkhorn with tolerance (POT, geomloss, SuperGlue)
class SinkhornDistance(nn.Module):
    def __init__(self, eps=0.2, max_iter=30, thresh=1e-2, reduction="mean"):
        super().__init__()
        self.eps, self.max_iter, self.thresh, self.reduction = eps, max_iter, thresh, reduction
        self.proj = nn.Linear(3, 3)
        self.actual_nits = 0

    def M(self, C, u, v):
        return (-C + u.unsqueeze(-1) + v.unsqueeze(-2)) / self.eps

    def forward(self, x, y):
        C = (self.proj(x).unsqueeze(-2) - self.proj(y).unsqueeze(-3)).abs().pow(2).sum(-1)
        x_points, y_points = x.shape[-2], y.shape[-2]
        batch_size = 1 if x.dim() == 2 else x.shape[0]
        mu = torch.full((batch_size, x_points), 1.0 / x_points)
        nu = torch.full((batch_size, y_points), 1.0 / y_points)
        u, v = torch.zeros_like(mu), torch.zeros_like(nu)
        self.actual_nits = 0
        for i in range(self.max_iter):
            u1 = u
            u = self.eps * (torch.log(mu + 1e-8) - torch.logsumexp(self.M(C, u, v), dim=-1)) + u
            v = self.eps * (torch.log(nu + 1e-8) - torch.logsumexp(self.M(C, u, v).transpose(-2, -1), dim=-1)) + v
            err = (u - u1).abs().sum(-1).mean()
            self.actual_nits += 1
            if err.item() < self.thresh:
                break
        else:
            logger.info("sinkhorn did not converge, err %.3f", err.item())
        pi = torch.exp(self.M(C, u, v))
        cost = torch.sum(pi * C, dim=(-2, -1))
        return (cost.mean() if self.reduction == "mean" else cost), pi


# 7. DEQ fixed point with Anderson / plain iteration
class DEQFixedPoint(nn.Module):
    def __init__(self, dim=8, tol=1e-3, max_iter=10):
        super().__init__()
        self.linear = nn.Linear(dim, dim, bias=False)
        self.inject = nn.Linear(dim, dim)
        nn.init.orthogonal_(self.linear.weight, gain=0.7)
        self.tol, self.max_iter = tol, max_iter
        self.forward_res = []

    def f(self, z, x):
        return torch.tanh(self.linear(z) + x)

    def solver(self, x):
        z = torch.zeros_like(x)
        res, best, lowest = [], z, 1e8
        for k in range(self.max_iter):
            z_next = self.f(z, x)
            res.append(((z_next - z).norm().item()) / (1e-5 + z_next.norm().item()))
            z = z_next
            if res[-1] < lowest:
                lowest, best = res[-1], z
            if res[-1] < self.tol:
                break
        return best, res

    def forward(self, x):
        x = self.inject(x)
        with torch.no_grad():
            z, self.forward_res = self.solver(x)
        if len(self.forward_res) == self.max_iter:
            warnings.warn(f"solver stopped at {self.forward_res[-1]:.1e}", RuntimeWarning)
        return self.f(z, x)


# 8. linear_operator preconditioned CG, with a pivoted Cholesky preconditioner
class LinearCG(nn.Module):
    def __init__(self, tolerance=1e-3, max_iter=3, rank=2, error_tol=1e-3):
        super().__init__()
        self.tolerance, self.max_iter, self.rank, self.error_tol = tolerance, max_iter, rank, error_tol

    def pivoted_cholesky(self, K):
        L, d = torch.zeros(K.shape[0], 0), K.diagonal().clone()
        m = 0
        while m == 0 or (m < self.rank and torch.max(d) > self.error_tol):
            i = int(d.argmax())
            col = (K[:, i] - L @ L[i]) / d[i].sqrt()
            L = torch.cat([L, col[:, None]], 1)
            d = (d - col**2).clamp(min=0)
            m += 1
        return L

    def forward(self, K, rhs, noise):
        A = K + noise * torch.eye(K.shape[0])
        L = self.pivoted_cholesky(K)
        precond = torch.linalg.inv(L @ L.T + noise * torch.eye(K.shape[0]))
        rhs_norm = rhs.norm()
        if rhs_norm < 1e-10:
            return torch.zeros_like(rhs)
        rhs = rhs / rhs_norm
        x, r = torch.zeros_like(rhs), rhs
        z = precond @ r
        p, rz = z, r @ z
        for k in range(self.max_iter):
            Ap = A @ p
            alpha = rz / (p @ Ap)
            x, r = x + alpha * p, r - alpha * Ap
            residual_norm = r.norm()
            if k >= 1 and bool(residual_norm < self.tolerance):
                break
            z = precond @ r
            rz_new = r @ z
            p, rz = z + (rz_new / rz) * p, rz_new
        if residual_norm >= self.tolerance:
            warnings.warn(
                "CG terminated in {} iterations with average residual norm {:.4f} which is larger than the tolerance of {}".format(
                    k + 1, residual_norm.item(), self.tolerance
                ),
                RuntimeWarning,
            )
        return x * rhs_norm


def cg_calls():
    calls = []
    for i in range(12):
        X = torch.randn(6, 2 + i % 4)
        rhs = torch.zeros(6) if i == 5 else torch.randn(6)
        calls.append((X @ X.T, rhs, 0.5 if i % 4 else 0.02))
    return calls


# 9. graph net: index check, degree, isolated nodes
class SimpleGCN(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        self.isolated = nn.Parameter(torch.zeros(dim))
        self.register_buffer("avg_deg", torch.tensor(1.0))

    def remove_isolated(self, edge_index, num_nodes):
        mask = torch.zeros(num_nodes, dtype=torch.bool)
        mask[edge_index.view(-1)] = True
        return ~mask

    def forward(self, x, edge_index):
        num_nodes = x.size(0)
        if edge_index.numel() > 0 and int(edge_index.max()) >= num_nodes:
            raise IndexError(
                f"Found indices in 'edge_index' that are larger than {num_nodes - 1} (got {int(edge_index.max())})"
            )
        loops = edge_index[0] == edge_index[1]
        if loops.any():
            edge_index = edge_index[:, ~loops]
        row, col = edge_index
        deg = torch.zeros(num_nodes).scatter_add_(0, col, torch.ones(col.size(0)))
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        h = self.lin(x)
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        out = torch.zeros_like(h).index_add_(0, col, norm.unsqueeze(-1) * h[row])
        alone = self.remove_isolated(edge_index, num_nodes)
        if alone.any():
            logger.debug("%d isolated nodes", int(alone.sum()))
            out = torch.where(alone.unsqueeze(-1), self.isolated, out)
        if self.training and deg.sum() > 0:
            self.avg_deg.lerp_(deg.mean(), 0.1)
        return out / self.avg_deg.clamp(min=1).log1p()


def gcn_calls():
    calls = []
    for i in range(12):
        edges = torch.randint(0, 6, (2, 10))
        if i == 4:
            edges = edges.clamp(max=1)
        if i == 7:
            edges = edges[:, :0]
        if i == 9:
            edges[0, 0] = 6
        calls.append((torch.randn(6, 8), edges))
    return calls


# 10. padded batches with a curriculum over the length
class CurriculumLM(nn.Module):
    def __init__(self, vocab=12, dim=8, pad=0, min_len=3, max_len=8, total_steps=8, schedule="fixed_linear"):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=pad)
        self.rnn_in, self.head = nn.Linear(dim, dim), nn.Linear(dim, vocab)
        self.pad, self.min_len, self.max_len, self.total_steps, self.schedule = (
            pad,
            min_len,
            max_len,
            total_steps,
            schedule,
        )
        self.global_step, self.current_difficulty = 0, min_len

    def update_difficulty(self):
        if self.global_step < self.total_steps:
            frac = self.global_step / self.total_steps
            if self.schedule == "fixed_root":
                frac = math.sqrt(frac)
            self.current_difficulty = int(self.min_len + frac * (self.max_len - self.min_len))
        else:
            self.current_difficulty = self.max_len
        self.global_step += 1

    def forward(self, input_ids):
        self.update_difficulty()
        lengths = (input_ids != self.pad).sum(-1)
        max_len = lengths.max().item()
        if max_len > self.current_difficulty:
            max_len = self.current_difficulty
        input_ids = input_ids[:, :max_len]
        mask = (input_ids != self.pad).float()
        h = torch.tanh(self.rnn_in(self.embed(input_ids))) * mask.unsqueeze(-1)
        h = h.cumsum(1) / mask.cumsum(1).clamp(min=1).unsqueeze(-1)
        logits, labels = self.head(h)[:, :-1], input_ids[:, 1:]
        n_tokens = (labels != self.pad).sum()
        if n_tokens == 0:
            return logits.sum() * 0.0
        return (
            F.cross_entropy(
                logits.reshape(-1, logits.size(-1)), labels.reshape(-1), ignore_index=self.pad, reduction="sum"
            )
            / n_tokens
        )


def lm_calls():
    calls = []
    for i in range(12):
        ids = torch.randint(1, 12, (3, 8))
        lengths = torch.randint(2, 9, (3,)) if i != 6 else torch.ones(3, dtype=torch.long)
        calls.append((ids * (torch.arange(8)[None] < lengths[:, None]),))
    return calls


# 11. GAN discriminator: spectral norm, adaptive augmentation, lazy R1
class Discriminator(nn.Module):
    def __init__(self, dim=8, r1_interval=4, ada_interval=2, ada_target=0.6, n_power_iterations=1):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim, dim) * 0.5)
        self.out = nn.Linear(dim, 1)
        self.register_buffer("u", F.normalize(torch.randn(dim), dim=0))
        self.register_buffer("ada_stats", torch.zeros(2))
        self.r1_interval, self.ada_interval, self.ada_target = r1_interval, ada_interval, ada_target
        self.n_power_iterations, self.augment_p, self.batch_idx = n_power_iterations, 0.0, 0

    def compute_weight(self):
        with torch.no_grad():
            for _ in range(self.n_power_iterations if self.training else 0):
                v = F.normalize(torch.mv(self.weight.t(), self.u), dim=0)
                self.u.copy_(F.normalize(torch.mv(self.weight, v), dim=0))
            v = F.normalize(torch.mv(self.weight.t(), self.u), dim=0)
        return self.weight / torch.dot(self.u, torch.mv(self.weight, v))

    def augment(self, x):
        if self.augment_p > 0:
            flip = torch.rand(x.shape[0], 1) < self.augment_p
            x = torch.where(flip, x.flip(-1), x)
            if random.random() < self.augment_p:
                x = x + 0.1 * torch.randn_like(x)
        return x

    def score(self, x, weight):
        return self.out(F.leaky_relu(x @ weight.t(), 0.2))

    def forward(self, real, fake):
        weight = self.compute_weight()
        real_pred, fake_pred = self.score(self.augment(real), weight), self.score(self.augment(fake), weight)
        loss = F.softplus(-real_pred).mean() + F.softplus(fake_pred).mean()
        self.ada_stats += torch.stack([real_pred.detach().sign().sum(), torch.tensor(float(real.shape[0]))])
        if self.batch_idx % self.r1_interval == 0:
            slope = torch.where(real @ weight.t() > 0, 1.0, 0.2)
            grad_real = (slope * self.out.weight) @ weight
            loss = loss + grad_real.pow(2).sum(-1).mean() * (0.5 * self.r1_interval)
        if self.batch_idx % self.ada_interval == 0:
            adjust = np.sign((self.ada_stats[0] / self.ada_stats[1]).item() - self.ada_target) * 0.2
            self.augment_p = float(min(max(self.augment_p + adjust, 0.0), 1.0))
            self.ada_stats.zero_()
        self.batch_idx += 1
        return loss


# 12. early exit: PABEE patience, DeeBERT entropy
class EarlyExitEncoder(nn.Module):
    def __init__(self, dim=8, num_layers=5, num_labels=3, patience=1, entropy_threshold=0.5):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(num_layers))
        self.classifiers = nn.ModuleList(nn.Linear(dim, num_labels) for _ in range(num_layers))
        self.patience, self.entropy_threshold = patience, entropy_threshold
        self.inference_instances_num, self.inference_layers_num = 0, 0
        self.exits = {"patience": 0, "entropy": 0, "last": 0}

    def forward(self, x):
        patient_counter, patient_result, calculated = 0, None, 0
        reason = "last"
        for layer, classifier in zip(self.layers, self.classifiers):
            calculated += 1
            x = x + F.gelu(layer(x))
            logits = classifier(x)
            labels = logits.detach().argmax(dim=1)
            if patient_result is not None and torch.all(labels.eq(patient_result.argmax(dim=1))):
                patient_counter += 1
            else:
                patient_counter = 0
            patient_result = logits.detach()
            if patient_counter == self.patience:
                reason = "patience"
                break
            probs = logits.softmax(-1)
            if -(probs * probs.log()).sum(-1).mean() < self.entropy_threshold:
                reason = "entropy"
                break
        self.exits[reason] += 1
        self.inference_layers_num += calculated
        self.inference_instances_num += 1
        if self.inference_instances_num % 6 == 0:
            self.log_stats()
        return logits

    def log_stats(self):
        avg_inf_layers = self.inference_layers_num / self.inference_instances_num
        print(f"*** Patience = {self.patience} Avg. Inference Layers = {avg_inf_layers:.2f} ***")


# 13. speculative decoding: accept loop
class SpeculativeDecoder(nn.Module):
    def __init__(self, vocab=6, dim=8, gamma=3):
        super().__init__()
        self.embed, self.gamma = nn.Embedding(vocab, dim), gamma
        self.draft, self.target = nn.Linear(dim, vocab), nn.Linear(dim, vocab)
        self.num_draft_tokens, self.num_accepted_tokens = 0, 0

    def probs(self, head, tokens):
        h = self.embed(tokens).cumsum(0) / torch.arange(1, len(tokens) + 1).unsqueeze(-1)
        return head(h).softmax(-1)

    @torch.no_grad()
    def forward(self, prefix):
        tokens, draft_probs = prefix, []
        for _ in range(self.gamma):
            q = self.probs(self.draft, tokens)[-1]
            draft_probs.append(q)
            tokens = torch.cat([tokens, torch.multinomial(q, 1)])
        p = self.probs(self.target, tokens)[len(prefix) - 1 :]
        n = self.gamma
        for i in range(self.gamma):
            r = torch.rand(1)
            j = tokens[len(prefix) + i]
            if r > p[i, j] / draft_probs[i][j]:
                n = i
                break
        self.num_draft_tokens += self.gamma
        self.num_accepted_tokens += n
        if n < self.gamma:
            residual = (p[n] - draft_probs[n]).clamp(min=0)
            next_token = torch.multinomial(residual / residual.sum(), 1)
        else:
            next_token = torch.multinomial(p[n], 1)
        return torch.cat([tokens[: len(prefix) + n], next_token]), self.num_accepted_tokens / self.num_draft_tokens


# 14. MoCo queue, CLIP logit scale clamp, and an outlier step that is skipped
class MoCo(nn.Module):
    def __init__(self, dim=8, K=12, m=0.9, max_logit_scale=4.0, skip_factor=1.3):
        super().__init__()
        self.encoder_q, self.encoder_k = nn.Linear(dim, dim), nn.Linear(dim, dim)
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data.copy_(q.data)
            k.requires_grad = False
        self.logit_scale = nn.Parameter(torch.tensor(1.7))
        self.K, self.m, self.max_logit_scale, self.skip_factor = K, m, max_logit_scale, skip_factor
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))
        self.loss_ema, self.skipped = None, 0

    @torch.no_grad()
    def dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr : ptr + batch_size] = keys.T
        self.queue_ptr[0] = (ptr + batch_size) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)
            k = F.normalize(self.encoder_k(im_k), dim=1)
            self.logit_scale.clamp_(0, math.log(self.max_logit_scale))
        l_pos = (q * k).sum(-1, keepdim=True)
        l_neg = q @ self.queue.clone().detach()
        logits = torch.cat([l_pos, l_neg], dim=1) * self.logit_scale.exp()
        loss = F.cross_entropy(logits, torch.zeros(logits.shape[0], dtype=torch.long))
        value = loss.item()
        if self.loss_ema is not None and value > self.skip_factor * self.loss_ema:
            self.skipped += 1
            logger.warning("skipping outlier batch: loss %.3f, running %.3f", value, self.loss_ema)
            return loss * 0.0
        self.loss_ema = value if self.loss_ema is None else 0.9 * self.loss_ema + 0.1 * value
        self.dequeue_and_enqueue(k)
        return loss


# 15. Kalman filter with gating
class GatedKalman(nn.Module):
    def __init__(self, dt=0.5, q=0.05, r=0.3, gate=9.21, max_age=3):
        super().__init__()
        self.gate, self.max_age = gate, max_age
        eye = torch.eye(2)
        self.register_buffer("Fm", torch.cat([torch.cat([eye, dt * eye], 1), torch.cat([0 * eye, eye], 1)], 0))
        self.register_buffer("H", torch.cat([eye, 0 * eye], 1))
        self.log_q, self.log_r = nn.Parameter(torch.tensor(q).log()), nn.Parameter(torch.tensor(r).log())
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("cov", torch.eye(4))
        self.initialized, self.time_since_update, self.hits, self.state = False, 0, 0, "tentative"

    def initiate(self, z):
        self.mean.zero_()
        self.mean[:2] = z
        self.cov.copy_(torch.eye(4))
        self.initialized, self.time_since_update, self.hits, self.state = True, 0, 1, "tentative"

    def forward(self, z):
        if not self.initialized:
            self.initiate(z)
        mean = self.Fm @ self.mean
        cov = self.Fm @ self.cov @ self.Fm.T + self.log_q.exp() * torch.eye(4)
        S = self.H @ cov @ self.H.T + self.log_r.exp() * torch.eye(2)
        innovation = z - self.H @ mean
        maha = innovation @ torch.linalg.solve(S, innovation)
        nll = 0.5 * (maha + torch.logdet(S))
        if torch.isnan(z).any() or maha > self.gate:
            self.time_since_update += 1
            nll = nll.detach() * 0
            if self.time_since_update > self.max_age:
                logger.info("track lost after %d hits", self.hits)
                self.initialized, self.state = False, "deleted"
        else:
            K = torch.linalg.solve(S, self.H @ cov).T
            mean, cov = mean + K @ innovation, cov - K @ S @ K.T
            self.time_since_update = 0
            self.hits += 1
            if self.state == "tentative" and self.hits >= 3:
                self.state = "confirmed"
        self.mean.copy_(mean.detach())
        self.cov.copy_(0.5 * (cov + cov.T).detach())
        return self.mean.clone(), nll


def kalman_calls():
    calls, position = [], torch.zeros(2)
    for i in range(12):
        position = position + 0.4
        z = position + 0.2 * torch.randn(2)
        if i == 3:
            z = torch.full((2,), float("nan"))
        if 5 <= i <= 8:
            z = z + 30 * torch.randn(2).sign()
        calls.append((z,))
    return calls


CASES = {
    "spec_augment_again": {
        "build": SpecAugment,
        "calls": lambda: [(torch.randn(2, 10, 8), torch.randint(4, 11, (2,))) for _ in range(12)],
    },
    "deepseek_moe": {"build": SparseMoe, "calls": xs()},
    "peft_lora": {
        "build": LoraBlock,
        "calls": lambda: [
            (torch.randn(4, 8), ["default"] if i % 2 else ["default", "other"], "eval" if 4 <= i < 8 else "train")
            for i in range(12)
        ],
    },
    "moving_average_fake_quant": {"build": MovingAverageFakeQuant, "calls": xs()},
    "vq_codebook": {
        "build": EuclideanCodebook,
        "calls": lambda: [(torch.randn(10, 4) + (3 if i % 4 == 3 else 0),) for i in range(12)],
    },
    "sinkhorn_tolerance": {
        "build": SinkhornDistance,
        "calls": lambda: [(torch.randn(2, 5, 3) * (0.3 + i % 3), torch.randn(2, 4, 3)) for i in range(12)],
    },
    "deq_fixed_point": {"build": DEQFixedPoint, "calls": xs()},
    "linear_cg": {"build": LinearCG, "calls": cg_calls},
    "gcn_degree": {"build": SimpleGCN, "calls": gcn_calls},
    "curriculum_padding": {"build": CurriculumLM, "calls": lm_calls},
    "gan_discriminator": {
        "build": Discriminator,
        "calls": lambda: [(torch.randn(4, 8) + 0.5 * (i % 3), torch.randn(4, 8)) for i in range(12)],
    },
    "pabee_early_exit": {"build": EarlyExitEncoder, "calls": xs(scale=1.0, b=2)},
    "speculative_accept": {
        "build": SpeculativeDecoder,
        "calls": lambda: [(torch.randint(0, 6, (3,)),) for _ in range(12)],
    },
    "moco_queue_again": {
        "build": MoCo,
        "calls": lambda: [
            ((x := torch.randn(4, 8)), x + (0.1 if i % 4 else 3.0) * torch.randn(4, 8)) for i in range(12)
        ],
    },
    "kalman_gating": {"build": GatedKalman, "calls": kalman_calls},
}

for _case in CASES.values():
    _case["source"] = "as in torchaudio, DeepSeek, PEFT, torch.ao, POT, DEQ, PyG, StyleGAN2, PABEE, MoCo"
