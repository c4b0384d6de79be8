"""Code of which public reports say that it breaks graphs, or is compiled again and again."""

import logging
import warnings
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger(__name__)


# lerobot PR #2159 "Make ACT policy compatible with torch.compile" (also PR #729 for pi0):
# Tensor.item() for the loss_dict inside the policy's forward.
class ACTPolicy(nn.Module):
    def __init__(self, state_dim=8, action_dim=4, latent_dim=4, chunk_size=5, kl_weight=10.0):
        super().__init__()
        self.use_vae = True
        self.kl_weight = kl_weight
        self.chunk_size = chunk_size
        self.action_dim = action_dim
        self.vae_encoder = nn.Linear(chunk_size * action_dim, 2 * latent_dim)
        self.encoder = nn.Linear(state_dim + latent_dim, 16)
        self.action_head = nn.Linear(16, chunk_size * action_dim)

    def model(self, batch):
        mu, log_sigma_x2 = self.vae_encoder(batch["action"].flatten(1)).chunk(2, dim=-1)
        latent = mu + log_sigma_x2.div(2).exp() * torch.randn_like(mu)
        h = F.relu(self.encoder(torch.cat([batch["observation.state"], latent], dim=-1)))
        actions = self.action_head(h).view(-1, self.chunk_size, self.action_dim)
        return actions, (mu, log_sigma_x2)

    def forward(self, batch):
        actions_hat, (mu_hat, log_sigma_x2_hat) = self.model(batch)
        pad = batch["action_is_pad"].unsqueeze(-1)
        l1_loss = (F.l1_loss(batch["action"], actions_hat, reduction="none") * ~pad).mean()
        loss_dict = {"l1_loss": l1_loss.item()}
        if self.use_vae:
            kld = -0.5 * (1 + log_sigma_x2_hat - mu_hat.pow(2) - log_sigma_x2_hat.exp())
            mean_kld = kld.sum(-1).mean()
            loss_dict["kld_loss"] = mean_kld.item()
            loss = l1_loss + mean_kld * self.kl_weight
        else:
            loss = l1_loss
        return loss, loss_dict


def act_calls():
    torch.manual_seed(0)
    return [
        (
            {
                "observation.state": torch.randn(3, 8),
                "action": torch.randn(3, 5, 4),
                "action_is_pad": torch.rand(3, 5) > 0.7,
            },
        )
        for _ in range(12)
    ]


# lerobot issue #2061 "Compile policies with torch.compile" / src/lerobot/policies/act/modeling_act.py:
# select_action serves one action at a time from a deque and queries the model when it is empty.
class ChunkedPolicy(nn.Module):
    def __init__(self, state_dim=8, action_dim=4, chunk_size=5, n_action_steps=3):
        super().__init__()
        self.n_action_steps = n_action_steps
        self.chunk_size = chunk_size
        self.action_dim = action_dim
        self.net = nn.Sequential(nn.Linear(state_dim, 16), nn.ReLU(), nn.Linear(16, chunk_size * action_dim))
        self.reset()

    def reset(self):
        self._action_queue = deque(maxlen=self.n_action_steps)

    def predict_action_chunk(self, state):
        return self.net(state).view(-1, self.chunk_size, self.action_dim)

    @torch.no_grad()
    def forward(self, state):
        if len(self._action_queue) == 0:
            actions = self.predict_action_chunk(state)[:, : self.n_action_steps]
            # the queue has shape (n_action_steps, batch_size, action_dim)
            self._action_queue.extend(actions.transpose(0, 1))
        return self._action_queue.popleft()


def states():
    torch.manual_seed(1)
    return [(torch.randn(2, 8),) for _ in range(12)]


# pytorch issue #128319 "Recompilation on a counter-like attribute of nn module", in the form of diffusers
# PR #4347 "add a step_index counter" (EulerAncestralDiscreteScheduler._init_step_index, _step_index += 1).
class EulerDenoiser(nn.Module):
    def __init__(self, dim=6, num_inference_steps=7):
        super().__init__()
        self.unet = nn.Linear(dim, dim)
        self.num_inference_steps = num_inference_steps
        self.set_timesteps(num_inference_steps)

    def set_timesteps(self, num_inference_steps):
        self.timesteps = torch.linspace(999, 0, num_inference_steps)
        self.sigmas = torch.cat([torch.linspace(10.0, 0.1, num_inference_steps), torch.zeros(1)])
        self._step_index = None

    def _init_step_index(self, timestep):
        self._step_index = (self.timesteps == timestep).nonzero().item()

    def step(self, model_output, timestep, sample):
        if self._step_index is None:
            self._init_step_index(timestep)
        sigma = self.sigmas[self._step_index]
        dt = self.sigmas[self._step_index + 1] - sigma
        pred_original_sample = sample - sigma * model_output
        derivative = (sample - pred_original_sample) / sigma
        prev_sample = sample + derivative * dt
        # upon completion increase step index by one
        self._step_index += 1
        return prev_sample

    def forward(self, sample, timestep):
        noise_pred = self.unet(sample)
        sample = self.step(noise_pred, timestep, sample)
        if self._step_index == self.num_inference_steps:
            self._step_index = None
        return sample


def euler_calls():
    torch.manual_seed(2)
    timesteps = torch.linspace(999, 0, 7)
    return [(torch.randn(3, 6), timesteps[i % 7]) for i in range(12)]


# torchrec PR #4338 (torchmetrics' Metric.update() increments _update_count, recompiles) with
# torchmetrics/aggregation.py: MeanMetric(nan_strategy="warn") tests `if torch.any(nans)`.
class MeanMetric(nn.Module):
    def __init__(self):
        super().__init__()
        self._update_count = 0
        self._computed = None
        self.register_buffer("mean_value", torch.tensor(0.0))
        self.register_buffer("weight", torch.tensor(0.0))

    def _cast_and_nan_check_input(self, x):
        nans = torch.isnan(x)
        if torch.any(nans):
            warnings.warn("Encountered `nan` values in tensor. Will be removed.", UserWarning)
            x = x[~nans]
        return x

    def update(self, value):
        self._computed = None
        self._update_count += 1
        value = self._cast_and_nan_check_input(value)
        self.mean_value += value.sum()
        self.weight += value.numel()

    def compute(self):
        if self._computed is None:
            self._computed = self.mean_value / self.weight
        return self._computed

    def forward(self, value):
        self.update(value)
        return self.compute()


def metric_calls():
    torch.manual_seed(3)
    calls = []
    for i in range(12):
        losses = torch.rand(6)
        if i % 5 == 3:
            losses[i % 6] = float("nan")
        calls.append((losses,))
    return calls


# transformers PR #37944 "fix graph break for torch.compile in attention mask check":
# `0.0 in attention_mask` in _update_causal_mask of the flash-attention path.
class FlashAttentionModel(nn.Module):
    def __init__(self, vocab=16, hidden=8):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.o_proj = nn.Linear(hidden, hidden)

    def _update_causal_mask(self, attention_mask):
        if attention_mask is not None and 0.0 in attention_mask:
            return attention_mask
        return None

    def forward(self, input_ids, attention_mask=None):
        hidden_states = self.embed_tokens(input_ids)
        causal_mask = self._update_causal_mask(attention_mask)
        q, k, v = self.qkv(hidden_states).chunk(3, dim=-1)
        if causal_mask is None:
            attn = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            length = input_ids.shape[1]
            allowed = torch.ones(length, length, dtype=torch.bool).tril() & causal_mask[:, None, :].bool()
            attn = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return hidden_states + self.o_proj(attn)


def mask_calls():
    torch.manual_seed(4)
    calls = []
    for i in range(12):
        mask = torch.ones(2, 6, dtype=torch.long)
        if i % 3 == 1:
            mask[1, 4:] = 0  # right padding
        calls.append((torch.randint(0, 16, (2, 6)), mask))
    return calls


# pytorch issue #108650 "Unsupported: inline in skipfiles: Logger.info":
# diffusers/models/unet_2d_condition.py logs when the sample size is not a multiple of the up factor.
class UNet2DConditionModel(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.num_upsamplers = 2
        self.conv_in = nn.Conv2d(3, channels, 3, padding=1)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.up = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv_out = nn.Conv2d(channels, 3, 3, padding=1)

    def forward(self, sample):
        default_overall_up_factor = 2**self.num_upsamplers
        forward_upsample_size = False
        upsample_size = None
        if any(s % default_overall_up_factor != 0 for s in sample.shape[-2:]):
            logger.info("Forward upsample size to force interpolation output size.")
            forward_upsample_size = True
        sample = self.conv_in(sample)
        res = sample
        sample = F.silu(self.down(sample))
        if forward_upsample_size:
            upsample_size = res.shape[2:]
        if upsample_size is None:
            sample = F.interpolate(sample, scale_factor=2.0, mode="nearest")
        else:
            sample = F.interpolate(sample, size=upsample_size, mode="nearest")
        return self.conv_out(self.up(sample) + res)


def image_calls():
    torch.manual_seed(5)
    return [(torch.randn(1, 3, 6, 10),) for _ in range(12)]


# pytorch issue #102339 "Better graph-break message for unsupported ctx managers"
# (warnings.catch_warnings) and #135688 (warnings.warn).
def safe_log(x):
    if (x <= 0).any():
        warnings.warn("non-positive values clamped in safe_log", RuntimeWarning)
        x = x.clamp(min=1e-6)
    return x.log()


class SilencedModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = safe_log(self.layer(x) + 2.0)
        return out.mean(dim=-1)


def silenced_calls():
    torch.manual_seed(6)
    return [(torch.randn(4, 6) * (3.0 if i % 3 == 0 else 0.5),) for i in range(12)]


# PrimeIntellect-ai/prime-rl issue #996 "graph break torch compile":
# num_tokens_per_expert.tolist() in _run_experts_for_loop (custom_models/layers/moe.py).
class MoE(nn.Module):
    def __init__(self, dim=8, hidden_dim=12, num_experts=4, top_k=2):
        super().__init__()
        self.num_experts = num_experts
        self.top_k = top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(num_experts, dim, hidden_dim) * 0.3)
        self.w2 = nn.Parameter(torch.randn(num_experts, hidden_dim, dim) * 0.3)

    def _run_experts_for_loop(self, x, num_tokens_per_expert):
        num_tokens_per_expert = num_tokens_per_expert.tolist()
        x = torch.split(x, split_size_or_sections=num_tokens_per_expert, dim=0)
        out_experts_splits = []
        for expert_idx, x_expert in enumerate(x):
            h = F.silu(torch.matmul(x_expert, self.w1[expert_idx]))
            out_experts_splits.append(torch.matmul(h, self.w2[expert_idx]))
        return torch.cat(out_experts_splits, dim=0)

    def forward(self, x):
        scores = self.gate(x).softmax(dim=-1)
        top_scores, selected = torch.topk(scores, k=self.top_k, dim=-1)
        num_tokens_per_expert = torch.histc(
            selected.float(), bins=self.num_experts, min=0, max=self.num_experts - 1
        ).int()
        order = torch.argsort(selected.view(-1), stable=True)
        token_indices = order // self.top_k
        routed = self._run_experts_for_loop(x[token_indices], num_tokens_per_expert)
        routed = routed * top_scores.view(-1)[order].unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, token_indices, routed)


def token_calls():
    torch.manual_seed(7)
    return [(torch.randn(10, 8),) for _ in range(12)]


# NVIDIA/NeMo nemo/collections/asr/parts/submodules/rnnt_greedy_decoding.py, GreedyRNNTInfer._greedy_decode:
# k.item() and the `while not_blank` loop.
class GreedyRNNT(nn.Module):
    def __init__(self, feat=6, hidden=8, vocab=5, max_symbols=3):
        super().__init__()
        self._blank_index = vocab
        self.max_symbols = max_symbols
        self.embed = nn.Embedding(vocab + 1, hidden)
        self.cell = nn.GRUCell(hidden, hidden)
        self.enc = nn.Linear(feat, hidden)
        self.joint = nn.Linear(hidden, vocab + 1)

    @torch.no_grad()
    def forward(self, x):
        x = self.enc(x)
        y_sequence = []
        score = 0.0
        last_token = self._blank_index
        state = x.new_zeros(1, x.shape[-1])
        for time_idx in range(x.shape[0]):
            f = x[time_idx : time_idx + 1]
            not_blank = True
            symbols_added = 0
            while not_blank and symbols_added < self.max_symbols:
                g = self.cell(self.embed(torch.tensor([last_token])), state)
                logp = self.joint(torch.tanh(f + g)).log_softmax(dim=-1)[0]
                v, k = logp.max(0)
                k = k.item()
                if k == self._blank_index:
                    not_blank = False
                else:
                    y_sequence.append(k)
                    score += float(v)
                    state = g
                    last_token = k
                symbols_added += 1
        return torch.tensor(y_sequence, dtype=torch.long), score


def build_rnnt():
    model = GreedyRNNT()
    with torch.no_grad():
        nn.init.normal_(model.joint.weight, std=0.6)
        nn.init.zeros_(model.joint.bias)
        model.joint.bias[-1] = 0.7
    return model


def speech_calls():
    torch.manual_seed(8)
    return [(torch.randn(4, 6) * 2,) for _ in range(12)]


# cornellius-gp/linear_operator PR #27 "Adds settings.trace_mode and skip cholesky jitter"
# (linear_operator/utils/cholesky.py): `torch.any(info)` and the jitter loop with its warning.
def psd_safe_cholesky(A, jitter=1e-4, max_tries=3):
    L, info = torch.linalg.cholesky_ex(A)
    if not torch.any(info):
        return L
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
    raise ValueError(f"Matrix not positive definite after adding jitter up to {jitter_new:.1e}.")


class DeepKernelMLL(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.feature_extractor = nn.Linear(d, 3)

    def forward(self, x, y):
        z = self.feature_extractor(x)
        K = torch.exp(-0.5 * (z.unsqueeze(1) - z.unsqueeze(0)).pow(2).sum(-1))
        L = psd_safe_cholesky(K)
        alpha = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        return 0.5 * (y @ alpha) + L.diagonal().log().sum()


def gp_calls():
    torch.manual_seed(9)
    calls = []
    for i in range(12):
        x = torch.randn(6, 4) * 2
        if i % 3 == 2:
            x[3:] = x[:3]  # repeated points: K is singular
        calls.append((x, torch.randn(6)))
    return calls


# pytorch issue #138412: GradScaler.step's `sum(v.item() for v in found_inf_per_device.values())`
# decides whether the optimizer steps.
class GradScalerStep(nn.Module):
    def __init__(self, lr=0.1, init_scale=1024.0, growth_interval=4):
        super().__init__()
        self.lr = lr
        self.growth_interval = growth_interval
        self.layer = nn.Linear(6, 3)
        self.register_buffer("_scale", torch.tensor(init_scale))
        self.register_buffer("_growth_tracker", torch.zeros((), dtype=torch.int32))

    def unscale_(self, grads):
        inv_scale = self._scale.reciprocal()
        found_inf = torch.zeros(())
        for g in grads:
            found_inf = torch.maximum(found_inf, (~torch.isfinite(g)).any().float())
            g.mul_(inv_scale)
        return {"cpu": found_inf}

    @torch.no_grad()
    def forward(self, weight_grad, bias_grad):
        grads = [weight_grad * self._scale, bias_grad * self._scale]
        found_inf_per_device = self.unscale_(grads)
        found_inf = found_inf_per_device["cpu"]
        if not sum(v.item() for v in found_inf_per_device.values()):
            for p, g in zip(self.layer.parameters(), grads):
                p.sub_(g, alpha=self.lr)
        grown = torch.where(self._growth_tracker + 1 == self.growth_interval, self._scale * 2.0, self._scale)
        self._scale.copy_(torch.where(found_inf > 0, self._scale * 0.5, grown))
        tracker = torch.where(found_inf > 0, torch.zeros_like(self._growth_tracker), self._growth_tracker + 1)
        self._growth_tracker.copy_(tracker % self.growth_interval)
        return self.layer.weight.clone(), self._scale.clone()


def grad_calls():
    torch.manual_seed(10)
    calls = []
    for i in range(12):
        g = torch.randn(3, 6)
        if i in (2, 7, 8):
            g[0, 0] = float("inf")
        calls.append((g, torch.randn(3)))
    return calls


# DLR-RM/stable-baselines3 stable_baselines3/ppo/ppo.py (KL check: PR #419), CleanRL ppo.py:
# clip fractions kept with .item(), stop at target_kl over the minibatches.
class PPOLoss(nn.Module):
    def __init__(self, obs_dim=6, n_actions=3, clip_range=0.2, target_kl=0.02, n_minibatches=3):
        super().__init__()
        self.clip_range = clip_range
        self.target_kl = target_kl
        self.n_minibatches = n_minibatches
        self.actor = nn.Linear(obs_dim, n_actions)
        nn.init.orthogonal_(self.actor.weight, 0.01)
        nn.init.constant_(self.actor.bias, 0.0)

    def forward(self, obs, actions, old_log_prob, advantages):
        clip_fractions = []
        loss = obs.new_zeros(())
        size = obs.shape[0] // self.n_minibatches
        for start in range(0, obs.shape[0], size):
            mb = slice(start, start + size)
            log_probs = self.actor(obs[mb]).log_softmax(-1)
            log_prob = log_probs.gather(1, actions[mb].unsqueeze(1)).squeeze(1)
            log_ratio = log_prob - old_log_prob[mb]
            ratio = torch.exp(log_ratio)
            adv = advantages[mb]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            policy_loss_1 = adv * ratio
            policy_loss_2 = adv * torch.clamp(ratio, 1 - self.clip_range, 1 + self.clip_range)
            clip_fractions.append(torch.mean((torch.abs(ratio - 1) > self.clip_range).float()).item())
            loss = loss - torch.min(policy_loss_1, policy_loss_2).mean()
            with torch.no_grad():
                approx_kl = torch.mean((ratio - 1) - log_ratio)
            if self.target_kl is not None and approx_kl > 1.5 * self.target_kl:
                break
        return loss, sum(clip_fractions) / len(clip_fractions)


def ppo_calls():
    torch.manual_seed(11)
    calls = []
    for i in range(12):
        log_prob = torch.randn(12, 3).mul(0.1 + 0.15 * (i % 3)).log_softmax(-1)
        actions = torch.randint(0, 3, (12,))
        old = log_prob.gather(1, actions.unsqueeze(1)).squeeze(1)
        calls.append((torch.randn(12, 6), actions, old, torch.randn(12)))
    return calls


# facebookresearch/encodec encodec/quantization/core_vq.py (issues #33, #61), EuclideanCodebook:
# `if not torch.any(expired_codes)` in expire_codes_.
class EuclideanCodebook(nn.Module):
    def __init__(self, dim=4, codebook_size=6, decay=0.8, threshold_ema_dead_code=1.0):
        super().__init__()
        self.decay = decay
        self.codebook_size = codebook_size
        self.threshold_ema_dead_code = threshold_ema_dead_code
        self.project_in = nn.Linear(8, dim)
        self.register_buffer("cluster_size", torch.full((codebook_size,), 2.0))
        self.register_buffer("embed", torch.randn(codebook_size, dim) * 0.5)

    def expire_codes_(self, batch_samples):
        expired_codes = self.cluster_size < self.threshold_ema_dead_code
        if not torch.any(expired_codes):
            return
        samples = batch_samples[: self.codebook_size]
        self.embed.data.copy_(torch.where(expired_codes[..., None], samples, self.embed))
        self.cluster_size.data.masked_fill_(expired_codes, 2.0)

    def forward(self, x):
        x = self.project_in(x)
        flat = x.detach()
        embed_ind = torch.cdist(flat, self.embed).argmin(dim=-1)
        quantize = F.embedding(embed_ind, self.embed)
        if self.training:
            self.expire_codes_(flat)
            onehot = F.one_hot(embed_ind, self.codebook_size).type(flat.dtype)
            self.cluster_size.data.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        commit_loss = F.mse_loss(x, quantize)
        return x + (quantize - x).detach(), embed_ind, commit_loss


def codec_calls():
    torch.manual_seed(12)
    return [(torch.randn(12, 8),) for _ in range(12)]


# diffusers issues #9417 and #3950: index_for_timestep's nonzero() and .item() in
# scheduling_flow_match_euler_discrete.py, one per element of the batch.
class FlowMatchTrainer(nn.Module):
    def __init__(self, dim=6, num_train_timesteps=10):
        super().__init__()
        timesteps = torch.linspace(num_train_timesteps, 1, num_train_timesteps)
        self.register_buffer("timesteps", timesteps)
        self.register_buffer("sigmas", timesteps / num_train_timesteps)
        self.net = nn.Linear(dim + 1, dim)

    def index_for_timestep(self, timestep, schedule_timesteps=None):
        if schedule_timesteps is None:
            schedule_timesteps = self.timesteps
        indices = (schedule_timesteps == timestep).nonzero()
        # the very first step should use the second index (or the last one if there is only one)
        pos = 1 if len(indices) > 1 else 0
        return indices[pos].item()

    def scale_noise(self, sample, timestep, noise):
        step_indices = [self.index_for_timestep(t) for t in timestep]
        sigma = self.sigmas[step_indices].flatten()
        while len(sigma.shape) < len(sample.shape):
            sigma = sigma.unsqueeze(-1)
        return sigma * noise + (1.0 - sigma) * sample

    def forward(self, latents, timestep, noise):
        noisy = self.scale_noise(latents, timestep, noise)
        pred = self.net(torch.cat([noisy, timestep.unsqueeze(-1) / 10], dim=-1))
        return F.mse_loss(pred, noise - latents)


def flow_calls():
    torch.manual_seed(13)
    return [(torch.randn(3, 6), torch.randint(1, 11, (3,)).float(), torch.randn(3, 6)) for _ in range(12)]


# transformers src/transformers/modeling_rope_utils.py and LlamaRotaryEmbedding._dynamic_frequency_update
# (torchtitan PR #2486 removes the like for vLLM: "extending rope cache, .max().item()").
class DynamicNTKRotary(nn.Module):
    def __init__(self, dim=8, base=10000.0, max_position_embeddings=16):
        super().__init__()
        self.dim = dim
        self.base = base
        self.factor = 2.0
        self.original_max_seq_len = max_position_embeddings
        self.max_seq_len_cached = max_position_embeddings
        self.q_proj = nn.Linear(dim, dim)
        inv_freq = self.rope_init_fn(max_position_embeddings)
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self.original_inv_freq = self.inv_freq

    def rope_init_fn(self, seq_len):
        ratio = self.factor * seq_len / self.original_max_seq_len - (self.factor - 1)
        base = self.base * ratio ** (self.dim / (self.dim - 2))
        return 1.0 / (base ** (torch.arange(0, self.dim, 2).float() / self.dim))

    def _dynamic_frequency_update(self, position_ids):
        seq_len = int(torch.max(position_ids)) + 1
        if seq_len > self.max_seq_len_cached:  # growth
            self.inv_freq = self.rope_init_fn(seq_len)
            self.max_seq_len_cached = seq_len
        if seq_len < self.original_max_seq_len and self.max_seq_len_cached > self.original_max_seq_len:  # reset
            self.inv_freq = self.original_inv_freq
            self.max_seq_len_cached = self.original_max_seq_len

    def forward(self, x, position_ids):
        self._dynamic_frequency_update(position_ids)
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        q = self.q_proj(x)
        q1, q2 = q.chunk(2, dim=-1)
        return q * emb.cos() + torch.cat((-q2, q1), dim=-1) * emb.sin()


def rope_calls():
    torch.manual_seed(14)
    starts = [0, 8, 14, 20, 3, 1, 30, 10, 12, 40, 0, 25]
    return [(torch.randn(2, 4, 8), s + torch.arange(4).expand(2, 4)) for s in starts]


# pytorch issue #140394 (torchrl): the graph break in _forward_hook_safe_action, `if not _spec.is_in(item)`,
# where is_in is `(val >= low).all() and (val <= high).all()`.
class Bounded:
    def __init__(self, low, high):
        self.low = low
        self.high = high

    def is_in(self, val):
        return (val >= self.low).all() and (val <= self.high).all()

    def project(self, val):
        return torch.max(torch.min(val, self.high), self.low)


def _forward_hook_safe_action(module, inputs, output):
    action, value = output
    if not module.spec.is_in(action):
        action = module.spec.project(action)
    return action, value


class SafeActor(nn.Module):
    def __init__(self, obs_dim=6, action_dim=2):
        super().__init__()
        self.spec = Bounded(-torch.ones(action_dim), torch.ones(action_dim))
        self.policy = nn.Linear(obs_dim, action_dim)
        self.value = nn.Linear(obs_dim, 1)
        self.register_forward_hook(_forward_hook_safe_action)

    def forward(self, obs):
        return self.policy(obs), self.value(obs)


def obs_calls():
    torch.manual_seed(15)
    return [(torch.randn(3, 6) * (0.3 if i % 2 else 2.5),) for i in range(12)]


CASES = {
    "act_loss_dict": {"build": ACTPolicy, "calls": act_calls, "source": "lerobot PR #2159"},
    "act_action_queue": {"build": ChunkedPolicy, "calls": states, "source": "lerobot issue #2061, modeling_act.py"},
    "euler_step_index": {"build": EulerDenoiser, "calls": euler_calls, "source": "diffusers PR #4347, pytorch #128319"},
    "mean_metric": {"build": MeanMetric, "calls": metric_calls, "source": "torchrec PR #4338, torchmetrics MeanMetric"},
    "fa2_mask_check": {"build": FlashAttentionModel, "calls": mask_calls, "source": "transformers PR #37944"},
    "unet_logs_upsample": {"build": UNet2DConditionModel, "calls": image_calls, "source": "pytorch #108650"},
    "silenced_warning": {"build": SilencedModule, "calls": silenced_calls, "source": "pytorch #102339"},
    "moe_tolist": {"build": MoE, "calls": token_calls, "source": "prime-rl issue #996"},
    "rnnt_greedy": {"build": build_rnnt, "calls": speech_calls, "source": "NeMo rnnt_greedy_decoding.py"},
    "psd_safe_cholesky": {"build": DeepKernelMLL, "calls": gp_calls, "source": "linear_operator PR #27"},
    "grad_scaler_step": {"build": GradScalerStep, "calls": grad_calls, "source": "pytorch #138412"},
    "ppo_target_kl": {"build": PPOLoss, "calls": ppo_calls, "source": "stable-baselines3 PR #419"},
    "encodec_codebook": {
        "build": EuclideanCodebook,
        "calls": codec_calls,
        "source": "encodec core_vq.py, issues #33 and #61",
    },
    "index_for_timestep": {"build": FlowMatchTrainer, "calls": flow_calls, "source": "diffusers issue #9417"},
    "dynamic_ntk_rope": {
        "build": DynamicNTKRotary,
        "calls": rope_calls,
        "source": "transformers modeling_rope_utils.py",
    },
    "safe_action_hook": {"build": SafeActor, "calls": obs_calls, "source": "pytorch #140394"},
}
