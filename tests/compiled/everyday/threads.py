"""Patterns of public reports about graph breaks and recompilations, each as a small piece of realistic code."""

import copy
import dataclasses
import functools
import logging
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("everyday.rb")


# vLLM: "make torch.compile work with vLLM" (sampler: greedy, random and mixed batches; top-k and top-p only where asked for).
class VllmSampler(nn.Module):
    def apply_top_k_top_p(self, logits, top_k, top_p):
        logits_sort, logits_idx = logits.sort(dim=-1, descending=False)
        if (top_k < logits.shape[-1]).any():
            threshold = logits_sort.gather(1, (logits_sort.size(1) - top_k).unsqueeze(1))
            logits_sort = logits_sort.masked_fill(logits_sort < threshold, -float("inf"))
        if (top_p < 1.0).any():
            probs_sum = logits_sort.softmax(dim=-1).cumsum(dim=-1)
            top_p_mask = probs_sum <= 1 - top_p.unsqueeze(1)
            top_p_mask[:, -1] = False
            logits_sort = logits_sort.masked_fill(top_p_mask, -float("inf"))
        return torch.empty_like(logits_sort).scatter_(-1, logits_idx, logits_sort)

    def forward(self, logits, temperature, top_k, top_p):
        greedy = temperature < 1e-5
        greedy_ids = logits.argmax(dim=-1)
        if greedy.all():
            return greedy_ids
        logits = logits / torch.where(greedy, 1.0, temperature).unsqueeze(1)
        probs = self.apply_top_k_top_p(logits, top_k, top_p).softmax(dim=-1)
        q = torch.empty_like(probs)
        q.exponential_()
        random_ids = probs.div_(q).argmax(dim=-1)
        if greedy.any():
            return torch.where(greedy, greedy_ids, random_ids)
        return random_ids


def sampler_calls():
    full, none = torch.full((4,), 12), torch.ones(4)
    temperatures = [torch.zeros(4), torch.tensor([0.7, 0.9, 1.0, 1.3]), torch.tensor([0.0, 0.8, 0.0, 1.0])]
    ks, ps = [full, torch.tensor([3, 12, 5, 12])], [none, torch.tensor([0.9, 1.0, 0.5, 0.8])]
    return [(torch.randn(4, 12) * 2, temperatures[i % 3], ks[i % 2], ps[i // 6]) for i in range(12)]


# lerobot: denoising loop of pi0 and SmolVLA, "while time >= -dt / 2" over tensors.
class FlowMatchingPolicy(nn.Module):
    def __init__(self, num_steps=5):
        super().__init__()
        self.num_steps = num_steps
        self.action_in = nn.Linear(4, 8)
        self.state_in = nn.Linear(6, 8)
        self.action_out = nn.Linear(9, 4)

    def denoise_step(self, state, x_t, timestep):
        h = torch.tanh(self.action_in(x_t) + self.state_in(state)[:, None])
        t = timestep[:, None, None].expand(-1, h.shape[1], 1)
        return self.action_out(torch.cat([h, t], dim=-1))

    def forward(self, state, noise):
        bsize = state.shape[0]
        dt = torch.tensor(-1.0 / self.num_steps, dtype=torch.float32, device=state.device)
        x_t = noise
        time = torch.tensor(1.0, dtype=torch.float32, device=state.device)
        while time >= -dt / 2:
            v_t = self.denoise_step(state, x_t, time.expand(bsize))
            x_t = x_t + dt * v_t
            time += dt
        return x_t


# torchmetrics: wrapped update with an update counter, checks of values, logits detected by their range.
class BinaryAccuracy(nn.Module):
    def __init__(self, threshold=0.5, ignore_index=-1):
        super().__init__()
        self.threshold, self.ignore_index = threshold, ignore_index
        self.update_count = 0
        self.register_buffer("correct", torch.tensor(0))
        self.register_buffer("total", torch.tensor(0))
        self.update = self._wrap_update(self.update)

    def _wrap_update(self, update):
        @functools.wraps(update)
        def wrapped_func(*args, **kwargs):
            self.update_count += 1
            with torch.set_grad_enabled(False):
                update(*args, **kwargs)

        return wrapped_func

    def update(self, preds, target):
        unique_values = torch.unique(target)
        check = torch.all((unique_values == 0) | (unique_values == 1) | (unique_values == self.ignore_index))
        if not check:
            raise RuntimeError(
                f"Detected the following values in `target`: {unique_values.tolist()} but expected only"
                f" the following values {[0, 1, self.ignore_index]}."
            )
        if not torch.all((preds >= 0) * (preds <= 1)):
            preds = preds.sigmoid()
        keep = target != self.ignore_index
        preds, target = preds[keep], target[keep]
        self.correct += ((preds > self.threshold).long() == target).sum()
        self.total += target.numel()

    def forward(self, preds, target):
        self.update(preds, target)
        return self.correct / self.total


def metric_calls():
    calls = []
    for i in range(12):
        preds = torch.rand(10) if i % 3 else torch.randn(10) * 3
        target = torch.randint(-1, 2, (10,)) if i % 2 else torch.randint(0, 2, (10,))
        if i == 7:
            target[3] = 4
        calls.append((preds, target))
    return calls


# prime-rl / torchtitan: experts run one by one over the tokens sorted by expert, their numbers read by tolist().
class GroupedExperts(nn.Module):
    def __init__(self, dim=6, hidden=8, n=4, top_k=2):
        super().__init__()
        self.n, self.top_k = n, top_k
        self.router = nn.Linear(dim, n, bias=False)
        self.w1 = nn.Parameter(torch.randn(n, hidden, dim) * 0.3)
        self.w2 = nn.Parameter(torch.randn(n, dim, hidden) * 0.3)

    def run_experts_for_loop(self, x, num_tokens_per_expert):
        num_tokens_per_expert = num_tokens_per_expert.tolist()
        splits = torch.split(x[: sum(num_tokens_per_expert)], split_size_or_sections=num_tokens_per_expert, dim=0)
        out_experts_splits = []
        for expert_idx, x_expert in enumerate(splits):
            h = F.silu(torch.matmul(x_expert, self.w1[expert_idx].transpose(-2, -1)))
            out_experts_splits.append(torch.matmul(h, self.w2[expert_idx].transpose(-2, -1)))
        return torch.cat(out_experts_splits, dim=0)

    def forward(self, x):
        top_scores, selected = torch.topk(self.router(x).sigmoid(), k=self.top_k, dim=1)
        num_tokens_per_expert = torch.bincount(selected.view(-1), minlength=self.n)
        order = torch.argsort(selected.view(-1), stable=True)
        token_indices = order // self.top_k
        routed = x[token_indices] * top_scores.view(-1)[order].unsqueeze(1)
        routed = self.run_experts_for_loop(routed, num_tokens_per_expert)
        return torch.zeros_like(x).index_add(0, token_indices, routed)


# kornia: the gate of every augmentation, "if batch_prob.sum() == 1".
class RandomHorizontalFlip(nn.Module):
    def __init__(self, p=0.5, p_batch=0.7):
        super().__init__()
        self.p, self.p_batch = p, p_batch
        self._params = {}

    def batch_prob_generator(self, batch_shape):
        batch_prob = torch.bernoulli(torch.tensor([self.p_batch]))
        if batch_prob.sum() == 1:
            elem_prob = torch.bernoulli(torch.full((batch_shape[0],), self.p))
            return batch_prob * elem_prob
        return batch_prob.repeat(batch_shape[0])

    def forward(self, input):
        to_apply = self.batch_prob_generator(input.shape) > 0.5
        self._params["batch_prob"] = to_apply
        if not to_apply.any():
            return input
        if to_apply.all():
            return input.flip(-1)
        output = input.clone()
        output[to_apply] = input[to_apply].flip(-1)
        return output


# gpytorch / linear_operator: psd_safe_cholesky, more and more jitter until the factorization succeeds.
class NanError(RuntimeError):
    pass


class NotPSDError(RuntimeError):
    pass


def psd_safe_cholesky(A, jitter=1e-4, max_tries=3):
    L, info = torch.linalg.cholesky_ex(A)
    if not torch.any(info):
        return L
    isnan = torch.isnan(A)
    if isnan.any():
        raise NanError(f"cholesky_cpu: {isnan.sum().item()} of {A.numel()} elements of the {A.shape} tensor are NaN.")
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


def cholesky_calls():
    calls = []
    for i in range(12):
        x = torch.randn(2, 4, 4)
        A = x @ x.mT + torch.eye(4)
        if i % 4 == 1:
            v = torch.randn(4, 1)
            A[1] = v @ v.T - [5e-5, 5e-4][i // 4 % 2] * torch.eye(4)
        if i == 6:
            A[0, 1, 1] = float("nan")
        if i == 10:
            A[1] = -A[1]
        calls.append((A,))
    return calls


# nflows: splines with linear tails; masked writes, and no call of the spline where all inputs are in the tails.
class PiecewiseLinearCDF(nn.Module):
    def __init__(self, num_bins=5, tail_bound=2.0):
        super().__init__()
        self.tail_bound = tail_bound
        self.unnormalized_pdf = nn.Parameter(torch.randn(num_bins))

    def linear_spline(self, inputs):
        pdf = F.softmax(self.unnormalized_pdf, dim=-1)
        cdf = F.pad(torch.cumsum(pdf, dim=-1), pad=(1, 0))
        num_bins = pdf.shape[-1]
        x = (inputs + self.tail_bound) / (2 * self.tail_bound)
        bin_pos = x * num_bins
        bin_idx = torch.floor(bin_pos).long().clamp(max=num_bins - 1)
        slope = pdf[bin_idx]
        outputs = cdf[bin_idx] + (bin_pos - bin_idx) * slope
        return outputs * 2 * self.tail_bound - self.tail_bound, torch.log(slope * num_bins)

    def forward(self, inputs):
        inside_interval_mask = (inputs >= -self.tail_bound) & (inputs <= self.tail_bound)
        outside_interval_mask = ~inside_interval_mask
        outputs = torch.zeros_like(inputs)
        logabsdet = torch.zeros_like(inputs)
        outputs[outside_interval_mask] = inputs[outside_interval_mask]
        logabsdet[outside_interval_mask] = 0
        if torch.any(inside_interval_mask):
            outputs[inside_interval_mask], logabsdet[inside_interval_mask] = self.linear_spline(
                inputs[inside_interval_mask]
            )
        return outputs, logabsdet.sum(-1)


# PyTorch: "assert fails to trigger inside torch.compile" (print of the condition, then assert on it).
class PredictsVariance(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(6, 1)
        self.var = nn.Linear(6, 1)
        nn.init.constant_(self.var.bias, 1.0)

    def forward(self, x, y):
        mean, var = self.mean(x), self.var(x)
        test = torch.all(var > 0)
        print(test)
        assert test, f"variance must be positive, lowest {var.min().item():.3f}"
        return 0.5 * (var.log() + (y - mean) ** 2 / var).mean()


# detectron2: fast_rcnn_inference, finite boxes only, score threshold by nonzero, suppression, the best few.
def nms(boxes, scores, threshold):
    order, keep = scores.argsort(descending=True), []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    while order.numel() > 0:
        i, rest = order[0], order[1:]
        keep.append(i)
        lt, rb = torch.max(boxes[i, :2], boxes[rest, :2]), torch.min(boxes[i, 2:], boxes[rest, 2:])
        inter = (rb - lt).clamp(min=0).prod(-1)
        order = rest[inter / (area[i] + area[rest] - inter) <= threshold]
    return torch.stack(keep) if keep else torch.zeros(0, dtype=torch.long)


class FastRCNNInference(nn.Module):
    def __init__(self, score_thresh=0.3, nms_thresh=0.5, topk=3):
        super().__init__()
        self.score_thresh, self.nms_thresh, self.topk = score_thresh, nms_thresh, topk

    def forward(self, boxes, scores, image_shape):
        valid_mask = torch.isfinite(boxes).all(dim=1) & torch.isfinite(scores).all(dim=1)
        if not valid_mask.all():
            boxes, scores = boxes[valid_mask], scores[valid_mask]
        scores = scores[:, :-1]
        h, w = image_shape
        boxes = torch.stack(
            [boxes[:, 0].clamp(0, w), boxes[:, 1].clamp(0, h), boxes[:, 2].clamp(0, w), boxes[:, 3].clamp(0, h)], 1
        )
        filter_mask = scores > self.score_thresh
        filter_inds = filter_mask.nonzero()
        boxes, scores = boxes[filter_inds[:, 0]], scores[filter_mask]
        keep = nms(boxes + filter_inds[:, 1:] * 100.0, scores, self.nms_thresh)
        if self.topk >= 0:
            keep = keep[: self.topk]
        return boxes[keep], scores[keep], filter_inds[keep, 1]


def detection_calls():
    calls = []
    for i in range(12):
        xy = torch.rand(6, 2) * 6
        boxes, scores = torch.cat([xy, xy + 1 + torch.rand(6, 2) * 4], 1), (torch.randn(6, 3) * 2).softmax(-1)
        if i % 3 == 2:
            boxes[i % 6, 1] = float("inf")
        if i == 4:
            scores = torch.full((6, 3), 0.2)
        calls.append((boxes, scores, (8, 9)))
    return calls


# torchrl: safe actor, a forward hook that projects an action that is not in its spec.
class Bounded:
    def __init__(self, low, high):
        self.low, self.high = low, high

    def is_in(self, val):
        return (val >= self.low.to(val.device)).all() and (val <= self.high.to(val.device)).all()

    def project(self, val):
        return torch.max(torch.min(val, self.high), self.low)


def forward_hook_safe_action(module, args, action):
    if not module.spec.is_in(action):
        module.projected += 1
        return module.spec.project(action)
    return action


class SafeActor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))
        self.spec = Bounded(torch.tensor([-0.6, -0.5]), torch.tensor([0.6, 0.5]))
        self.projected = 0
        self.register_forward_hook(forward_hook_safe_action)

    def forward(self, observation):
        return self.net(observation)


# transformers: "Fine-tuning wav2vec 2.0 with torch.compile", SpecAugment spans drawn by numpy.
def compute_mask_indices(shape, mask_prob, mask_length, attention_mask, min_masks=0):
    batch_size, sequence_length = shape
    epsilon = np.random.rand(1).item()
    input_lengths = attention_mask.detach().sum(-1).tolist()
    spec_aug_mask = np.zeros((batch_size, sequence_length), dtype=bool)
    for row, input_length in enumerate(input_lengths):
        num_masked_span = max(int(mask_prob * input_length / mask_length + epsilon), min_masks)
        if input_length - (mask_length - 1) < num_masked_span:
            num_masked_span = max(input_length - (mask_length - 1), 0)
        starts = np.random.choice(np.arange(max(input_length - (mask_length - 1), 1)), num_masked_span, replace=False)
        for start in starts:
            spec_aug_mask[row, start : start + mask_length] = True
    return spec_aug_mask


class SpecAugments(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.project = nn.Linear(dim, dim)
        self.masked_spec_embed = nn.Parameter(torch.rand(dim))

    def forward(self, features, attention_mask):
        hidden_states = self.project(features)
        mask = compute_mask_indices(hidden_states.shape[:2], 0.5, 2, attention_mask)
        mask = torch.tensor(mask, device=hidden_states.device, dtype=torch.bool)
        hidden_states[mask] = self.masked_spec_embed.to(hidden_states.dtype)
        return hidden_states


def speech_calls():
    lengths = [torch.tensor([8, 5, 1]) if i % 3 == 0 else torch.randint(1, 9, (3,)) for i in range(12)]
    return [(torch.randn(3, 8, 4), (torch.arange(8)[None] < n[:, None]).long()) for n in lengths]


# transformers: greedy generate loop, "unfinished_sequences.max() == 0" and a list of stopping criteria.
class MaxLengthCriteria:
    def __init__(self, max_length):
        self.max_length = max_length

    def __call__(self, input_ids):
        return torch.full((input_ids.shape[0],), input_ids.shape[-1] >= self.max_length, dtype=torch.bool)


class EosTokenCriteria:
    def __init__(self, eos_token_id):
        self.eos_token_id = torch.tensor([eos_token_id])

    def __call__(self, input_ids):
        return torch.isin(input_ids[:, -1], self.eos_token_id)


class Generates(nn.Module):
    def __init__(self, vocab=7, pad=0, eos=1):
        super().__init__()
        self.pad = pad
        self.embed = nn.Embedding(vocab, 8)
        self.head = nn.Linear(8, vocab)
        self.criteria = [MaxLengthCriteria(9), EosTokenCriteria(eos)]

    @torch.no_grad()
    def forward(self, input_ids, bias):
        unfinished_sequences = torch.ones(input_ids.shape[0], dtype=torch.long)
        this_peer_finished = False
        while not this_peer_finished:
            logits = self.head(self.embed(input_ids).cumsum(1)[:, -1]) + bias
            next_tokens = logits.argmax(dim=-1)
            next_tokens = next_tokens * unfinished_sequences + self.pad * (1 - unfinished_sequences)
            input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)
            is_done = torch.zeros(input_ids.shape[0], dtype=torch.bool)
            for criterion in self.criteria:
                is_done = is_done | criterion(input_ids)
            unfinished_sequences = unfinished_sequences & ~is_done
            this_peer_finished = unfinished_sequences.max() == 0
        return input_ids


# transformers / fairseq: beam search with Python lists of finished hypotheses.
class BeamHypotheses:
    def __init__(self, num_beams, length_penalty):
        self.num_beams, self.length_penalty, self.beams, self.worst_score = num_beams, length_penalty, [], 1e9

    def add(self, hyp, sum_logprobs):
        score = sum_logprobs / (len(hyp) ** self.length_penalty)
        if len(self.beams) < self.num_beams or score > self.worst_score:
            self.beams.append((score, hyp))
            if len(self.beams) > self.num_beams:
                self.beams.remove(min(self.beams, key=lambda b: b[0]))
            self.worst_score = min(b[0] for b in self.beams)

    def is_done(self, best_sum_logprobs, cur_len):
        return (
            len(self.beams) >= self.num_beams and self.worst_score >= best_sum_logprobs / cur_len**self.length_penalty
        )


class BeamSearch(nn.Module):
    def __init__(self, vocab=6, num_beams=3, max_length=6, eos=1):
        super().__init__()
        self.vocab, self.num_beams, self.max_length, self.eos = vocab, num_beams, max_length, eos
        self.embed = nn.Embedding(vocab, 8)
        self.head = nn.Linear(8, vocab)
        nn.init.constant_(self.head.bias[eos : eos + 1], 1.5)

    @torch.no_grad()
    def forward(self, context):
        hyps = BeamHypotheses(self.num_beams, 1.0)
        ids = torch.full((self.num_beams, 1), 2)
        beam_scores = torch.tensor([0.0] + [-1e9] * (self.num_beams - 1))
        while ids.shape[1] < self.max_length:
            scores = self.head(self.embed(ids).sum(1) + context).log_softmax(-1) + beam_scores[:, None]
            next_scores, next_tokens = scores.view(-1).topk(2 * self.num_beams)
            beams = []
            for score, token in zip(next_scores.tolist(), next_tokens.tolist()):
                beam, token = token // self.vocab, token % self.vocab
                if token == self.eos:
                    hyps.add(ids[beam].tolist(), score)
                else:
                    beams.append((score, token, beam))
                if len(beams) == self.num_beams:
                    break
            if hyps.is_done(next_scores.max().item(), ids.shape[1]):
                break
            beam_scores = torch.tensor([b[0] for b in beams])
            ids = torch.cat([ids[[b[2] for b in beams]], torch.tensor([[b[1]] for b in beams])], dim=1)
        else:
            for score, hyp in zip(beam_scores.tolist(), ids.tolist()):
                hyps.add(hyp, score)
        score, best = max(hyps.beams, key=lambda b: b[0])
        return torch.tensor(best), torch.tensor(score)


# RNN-T greedy decoding: frame by frame, int(pred.item()), the predictor moves only on a symbol.
class RNNTGreedy(nn.Module):
    def __init__(self, vocab=6, dim=8, blank=0, max_symbols=2):
        super().__init__()
        self.blank, self.max_symbols = blank, max_symbols
        self.encoder = nn.Linear(5, dim)
        self.embed = nn.Embedding(vocab, dim)
        self.decoder = nn.GRUCell(dim, dim)
        self.joint = nn.Linear(dim, vocab)
        nn.init.constant_(self.joint.bias[:1], 0.4)

    @torch.no_grad()
    def forward(self, features, length):
        enc = self.encoder(features)
        state = self.decoder(self.embed(torch.tensor([self.blank])), torch.zeros(1, enc.shape[-1]))
        tokens, score = [], torch.zeros(())
        for t in range(int(length)):
            not_blank, symbols_added = True, 0
            while not_blank and symbols_added < self.max_symbols:
                logp = self.joint(torch.tanh(enc[t] + state[0])).log_softmax(-1)
                v, k = logp.max(-1)
                score = score + v
                pred = int(k.item())
                if pred == self.blank:
                    not_blank = False
                else:
                    tokens.append(pred)
                    state = self.decoder(self.embed(k[None]), state)
                    symbols_added += 1
        return tokens, score


# torchdiffeq: adaptive steps while t < t1, accepted by the error ratio, "underflow in dt".
class AdaptiveHeun(nn.Module):
    def __init__(self, rtol=1e-2, atol=1e-2):
        super().__init__()
        self.rtol, self.atol, self.nfe = rtol, atol, 0
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))

    def func(self, t, y):
        self.nfe += 1
        return self.net(y) * (1 + t)

    def forward(self, y, t1):
        t, dt = torch.zeros(()), torch.tensor(0.8)
        while t < t1:
            dt = torch.minimum(dt, t1 - t)
            assert t + dt > t, "underflow in dt {}".format(dt.item())
            k1 = self.func(t, y)
            k2 = self.func(t + dt, y + dt * k1)
            y1 = y + dt * (k1 + k2) / 2
            tol = self.atol + self.rtol * torch.max(y.abs(), y1.abs())
            error_ratio = ((dt * (k2 - k1) / 2 / tol) ** 2).mean().sqrt().detach()
            if error_ratio <= 1:
                t, y = t + dt, y1
            factor = 0.9 / error_ratio**0.5
            dt = dt * factor.clamp(0.2, 3.0)
        return y


# PyTorch: GradScaler step inside a compiled step, "sum(v.item() for v in found_inf_per_device.values())", with clipping.
class ScaledStep(nn.Module):
    def __init__(self, lr=0.1, max_norm=1.0, growth_interval=3):
        super().__init__()
        self.lr, self.max_norm, self.growth_interval = lr, max_norm, growth_interval
        self.register_buffer("weight", torch.randn(3, 4))
        self.register_buffer("bias", torch.zeros(3))
        self.register_buffer("scale", torch.tensor(16.0))
        self.register_buffer("growth_tracker", torch.tensor(0, dtype=torch.int32))

    @torch.no_grad()
    def forward(self, grad_weight, grad_bias):
        grads = [grad_weight * self.scale, grad_bias * self.scale]
        inv_scale = self.scale.double().reciprocal().float()
        found_inf_per_device = {"cpu": torch.zeros(1)}
        torch._amp_foreach_non_finite_check_and_unscale_(grads, found_inf_per_device["cpu"], inv_scale)
        total_norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
        clip_coef = self.max_norm / (total_norm + 1e-6)
        if clip_coef < 1:
            for g in grads:
                g.mul_(clip_coef)
        if not sum(v.item() for v in found_inf_per_device.values()):
            for p, g in zip((self.weight, self.bias), grads):
                p.add_(g, alpha=-self.lr)
        torch._amp_update_scale_(
            self.scale, self.growth_tracker, found_inf_per_device["cpu"], 2.0, 0.5, self.growth_interval
        )
        return total_norm


def grad_calls():
    calls = []
    for i in range(12):
        w, b = torch.randn(3, 4) * [0.05, 2.0][i % 2], torch.randn(3) * 0.05
        if i in (4, 9):
            b[1] = float("inf")
        calls.append((w, b))
    return calls


# diffusers: scheduler step with a step index found by index_for_timestep (nonzero, item) and counted up.
class EulerScheduler(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 4)
        self.register_buffer("timesteps", torch.tensor([999.0, 749.0, 749.0, 499.0]))
        self.register_buffer("sigmas", torch.tensor([3.0, 2.0, 1.5, 0.7, 0.0]))
        self.step_index = None

    def index_for_timestep(self, timestep):
        indices = (self.timesteps == timestep).nonzero()
        pos = 1 if len(indices) > 1 else 0
        return indices[pos].item()

    def forward(self, sample, timestep):
        if self.step_index is None or self.step_index >= len(self.timesteps):
            self.step_index = self.index_for_timestep(timestep)
        sigma, sigma_next = self.sigmas[self.step_index], self.sigmas[self.step_index + 1]
        noise_pred = self.model(sample / (sigma**2 + 1) ** 0.5)
        sample = sample + (sigma_next - sigma) * noise_pred
        self.step_index += 1
        return sample


def scheduler_calls():
    return [(torch.randn(2, 4), torch.tensor(t)) for t in [999.0, 749.0, 749.0, 499.0, 749.0, 499.0] * 2]


# cache-dit / xDiT: first-block cache, the rest of the blocks is skipped while the first residual hardly moves.
class FirstBlockCache(nn.Module):
    def __init__(self, threshold=0.1):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.threshold = threshold
        self.buffers_by_name = {}
        self.cached_steps = []
        self.executed_steps = 0

    def are_two_tensors_similar(self, t1, t2):
        mean_diff = (t1 - t2).abs().mean()
        return (mean_diff / t1.abs().mean()).item() < self.threshold

    def forward(self, hidden_states):
        original = hidden_states
        hidden_states = hidden_states + torch.tanh(self.blocks[0](hidden_states))
        first_residual = (hidden_states - original).detach()
        previous = self.buffers_by_name.get("first_residual")
        can_use_cache = previous is not None and self.are_two_tensors_similar(previous, first_residual)
        if can_use_cache:
            self.cached_steps.append(self.executed_steps)
            hidden_states = hidden_states + self.buffers_by_name["rest_residual"]
        else:
            self.buffers_by_name["first_residual"] = first_residual
            after_first = hidden_states
            for block in self.blocks[1:]:
                hidden_states = hidden_states + torch.tanh(block(hidden_states))
            self.buffers_by_name["rest_residual"] = (hidden_states - after_first).detach()
        self.executed_steps += 1
        return hidden_states


def cache_calls():
    base = torch.randn(3, 6)
    calls = []
    for i in range(12):
        if i % 4 == 3:
            base = torch.randn(3, 6)
        calls.append((base + 0.01 * torch.randn(3, 6),))
    return calls


# diffusers / timm: averaged weights with a decay that depends on the counted steps.
class EMAModel(nn.Module):
    def __init__(self, max_decay=0.6, update_after_step=2):
        super().__init__()
        self.model = nn.Linear(4, 4)
        self.shadow = copy.deepcopy(self.model).requires_grad_(False)
        self.max_decay, self.update_after_step, self.optimization_step, self.cur_decay = (
            max_decay,
            update_after_step,
            0,
            None,
        )

    def get_decay(self, optimization_step):
        step = max(0, optimization_step - self.update_after_step - 1)
        if step <= 0:
            return 0.0
        return min((1 + step) / (10 + step), self.max_decay)

    @torch.no_grad()
    def step(self):
        self.optimization_step += 1
        decay = self.get_decay(self.optimization_step)
        self.cur_decay = decay
        for s_param, param in zip(self.shadow.parameters(), self.model.parameters()):
            if param.requires_grad:
                s_param.sub_((1 - decay) * (s_param - param))
            else:
                s_param.copy_(param)

    def forward(self, x, delta):
        with torch.no_grad():
            self.model.weight.sub_(0.1 * delta)
        self.step()
        return self.model(x), self.shadow(x)


# PyTorch "[deepseek-vl2] Graph break on copy.deepcopy" of the GenerationConfig, and generate's warnings through warning_once.
@dataclasses.dataclass
class GenerationConfig:
    do_sample: bool = False
    temperature: float = 1.0
    pad_token_id: int = None
    eos_token_id: int = 2

    def update(self, **kwargs):
        for key in list(kwargs):
            if hasattr(self, key):
                setattr(self, key, kwargs.pop(key))
        return kwargs


class PreparesGeneration(nn.Module):
    def __init__(self):
        super().__init__()
        self.generation_config = GenerationConfig()
        self.embed = nn.Embedding(6, 8)
        self.head = nn.Linear(8, 6)
        self.warning_once = functools.lru_cache(None)(log.warning)

    def forward(self, input_ids, **kwargs):
        generation_config = copy.deepcopy(self.generation_config)
        model_kwargs = generation_config.update(**kwargs)
        if generation_config.pad_token_id is None:
            self.warning_once(
                f"Setting `pad_token_id` to `eos_token_id`:{generation_config.eos_token_id} for open-end generation."
            )
            generation_config.pad_token_id = generation_config.eos_token_id
        if torch.sum(input_ids[:, -1] == generation_config.pad_token_id) > 0:
            self.warning_once("A decoder-only architecture is being used, but right-padding was detected!")
        logits = self.head(self.embed(input_ids).mean(1)) + model_kwargs.get("logit_bias", 0.0)
        if generation_config.do_sample:
            probs = (logits / generation_config.temperature).softmax(-1)
            return torch.multinomial(probs, num_samples=1).squeeze(1)
        return logits.argmax(-1)


def generation_calls():
    calls = []
    for i in range(12):
        ids = torch.randint(3, 6, (2, 5))
        if i in (3, 5, 10):
            ids[1, 3:] = 2
        kw = {"__kw": True, "do_sample": True, "temperature": 0.7} if i % 2 else {"__kw": True}
        calls.append((ids, kw))
    return calls


# Lightning: self.log inside a compiled training_step; sums over the epoch, the logger every few steps, the best kept.
class LitAutoEncoder(nn.Module):
    def __init__(self, log_every_n_steps=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 8))
        self.log_every_n_steps, self.global_step, self.best = log_every_n_steps, 0, float("inf")
        self.results = {}

    def log(self, name, value, prog_bar=False, batch_size=1):
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=torch.float32)
        if value.numel() != 1:
            raise ValueError(f"`self.log({name}, {value})` was called, but the tensor must have a single element.")
        value = value.detach().clone()
        item = self.results.setdefault(
            name, {"value": torch.zeros(()), "cumulated_batch_size": 0, "prog_bar": prog_bar}
        )
        item["value"] += value * batch_size
        item["cumulated_batch_size"] += batch_size
        if (self.global_step + 1) % self.log_every_n_steps == 0:
            log.info("step %d %s=%.4f", self.global_step, name, value.item())

    def forward(self, batch, batch_idx):
        x = batch.view(batch.size(0), -1)
        loss = F.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss, prog_bar=True, batch_size=x.size(0))
        self.log("batch_idx", float(batch_idx))
        if loss < self.best:
            self.best = loss.item()
            self.log("best", self.best)
        self.global_step += 1
        return loss


# stable-baselines3: collect_rollouts, actions through numpy, a rollout buffer of numpy arrays with a position.
class CollectsRollouts(nn.Module):
    def __init__(self, buffer_size=5, n_envs=2):
        super().__init__()
        self.pi, self.vf, self.log_std = nn.Linear(4, 2), nn.Linear(4, 1), nn.Parameter(torch.zeros(2))
        self.buffer_size, self.pos, self.full = buffer_size, 0, False
        self.buffer = {
            "actions": np.zeros((buffer_size, n_envs, 2), np.float32),
            "values": np.zeros((buffer_size, n_envs), np.float32),
            "rewards": np.zeros((buffer_size, n_envs), np.float32),
        }

    def add(self, action, value, reward):
        self.buffer["actions"][self.pos] = np.array(action).copy()
        self.buffer["rewards"][self.pos] = np.array(reward).copy()
        self.buffer["values"][self.pos] = value.clone().cpu().numpy().flatten()
        self.pos += 1
        if self.pos == self.buffer_size:
            self.full, self.pos = True, 0

    def forward(self, obs):
        with torch.no_grad():
            mean = self.pi(obs)
            actions = mean + self.log_std.exp() * torch.randn_like(mean)
            values = self.vf(obs)
            log_prob = (
                torch.distributions.Normal(mean, self.log_std.exp(), validate_args=False).log_prob(actions).sum(-1)
            )
        actions = actions.cpu().numpy()
        clipped_actions = np.clip(actions, -1.0, 1.0)
        rewards = -np.abs(clipped_actions).sum(-1)
        if np.abs(actions - clipped_actions).max() > 1.5:
            log.info("an action far outside of its bounds: %.3f", float(np.abs(actions).max()))
        self.add(actions, values, rewards)
        return torch.as_tensor(clipped_actions), values, log_prob


# trl: PPO loss, whitened advantages, batches skipped when the average ratio exceeds a threshold.
def masked_mean(values, mask):
    return (values * mask).sum() / mask.sum()


def masked_whiten(values, mask):
    mean = masked_mean(values, mask)
    variance = masked_mean((values - mean) ** 2, mask)
    mask_sum = mask.sum()
    if mask_sum == 0:
        raise ValueError("The sum of the mask is zero, which can happen when `mini_batch_size=1`;")
    if mask_sum > 1:
        variance = variance * mask_sum / (mask_sum - 1)
    return (values - mean) * torch.rsqrt(variance + 1e-8)


class PPOLoss(nn.Module):
    def __init__(self, cliprange=0.2, ratio_threshold=1.5):
        super().__init__()
        self.cliprange, self.ratio_threshold = cliprange, ratio_threshold
        self.policy = nn.Linear(5, 4)
        self.stats = {}

    def forward(self, x, actions, old_logprobs, advantages, mask):
        logits = self.policy(x)
        logprobs = logits.log_softmax(-1).gather(-1, actions[..., None]).squeeze(-1)
        advantages = masked_whiten(advantages, mask)
        ratio = torch.exp(logprobs - old_logprobs)
        pg_losses = -advantages * ratio
        pg_losses2 = -advantages * torch.clamp(ratio, 1.0 - self.cliprange, 1.0 + self.cliprange)
        pg_loss = masked_mean(torch.max(pg_losses, pg_losses2), mask)
        avg_ratio = masked_mean(ratio, mask).item()
        if avg_ratio > self.ratio_threshold:
            warnings.warn(
                f"The average ratio of batch ({avg_ratio:.2f}) exceeds threshold {self.ratio_threshold:.2f}. Skipping batch."
            )
            pg_loss = pg_loss * 0.0
        approxkl = 0.5 * masked_mean((logprobs - old_logprobs) ** 2, mask)
        self.stats = {"loss/policy": pg_loss.detach(), "policy/approxkl": approxkl.detach(), "policy/ratio": avg_ratio}
        return pg_loss


def ppo_calls():
    calls = []
    for i in range(12):
        mask = (torch.rand(3, 4) > 0.3).float()
        mask[0, 0] = 1.0
        if i in (3, 8):
            mask.zero_()[0, 0] = float(i == 3)
        calls.append(
            (
                torch.randn(3, 4, 5),
                torch.randint(0, 4, (3, 4)),
                -1.4 + 0.2 * torch.randn(3, 4) - float(i % 4 == 2),
                torch.randn(3, 4),
                mask,
            )
        )
    return calls


# timesfm: "start = decode_cache.next_index[0]; decode_cache.key[:, start:end] = key", the cache cleared when it is full.
class DecodesWithCache(nn.Module):
    def __init__(self, dim=4, max_len=8, batch=2):
        super().__init__()
        self.max_len = max_len
        self.qkv = nn.Linear(dim, 3 * dim)
        self.register_buffer("next_index", torch.zeros(batch, dtype=torch.long))
        self.register_buffer("key", torch.zeros(batch, max_len, dim))
        self.register_buffer("value", torch.zeros(batch, max_len, dim))

    @torch.no_grad()
    def forward(self, x):
        n_patches = x.shape[1]
        if self.next_index[0] + n_patches > self.max_len:
            self.next_index.zero_()
            self.key.zero_()
            self.value.zero_()
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        start = self.next_index[0]
        end = start + n_patches
        self.key[:, start:end] = key
        self.value[:, start:end] = value
        self.next_index += n_patches
        positions = torch.arange(self.max_len)[None, None]
        mask = positions <= (start + torch.arange(n_patches))[None, :, None]
        scores = (query @ self.key.transpose(1, 2)).masked_fill(~mask, float("-inf"))
        return scores.softmax(-1) @ self.value


CASES = {
    "vllm_sampler": {
        "build": VllmSampler,
        "calls": sampler_calls,
        "source": "https://github.com/pytorch/pytorch/issues/130174 (sampler code from memory)",
    },
    "lerobot_denoise_while": {
        "build": FlowMatchingPolicy,
        "calls": lambda: [(torch.randn(2, 6), torch.randn(2, 3, 4)) for _ in range(12)],
        "source": "https://github.com/huggingface/lerobot/pull/2600",
    },
    "torchmetrics_update": {
        "build": BinaryAccuracy,
        "calls": metric_calls,
        "source": "https://github.com/Lightning-AI/torchmetrics/issues/1780",
    },
    "moe_tokens_per_expert": {
        "build": GroupedExperts,
        "calls": lambda: [(torch.randn(6, 6) + (i % 3),) for i in range(12)],
        "source": "https://github.com/PrimeIntellect-ai/prime-rl/issues/996, https://github.com/pytorch/torchtitan/pull/2369",
    },
    "kornia_batch_prob": {
        "build": RandomHorizontalFlip,
        "calls": lambda: [(torch.randn(2, 1, 3, 4),) for _ in range(12)],
        "source": "https://github.com/kornia/kornia/pull/3793",
    },
    "gpytorch_safe_cholesky": {
        "build": lambda: psd_safe_cholesky,
        "calls": cholesky_calls,
        "source": "https://github.com/cornellius-gp/gpytorch/issues/598, https://github.com/cornellius-gp/gpytorch/pull/1586",
    },
    "nflows_tails": {
        "build": PiecewiseLinearCDF,
        "calls": lambda: [
            (torch.randn(4, 3) * 2 if i % 4 else torch.sign(torch.randn(4, 3)) * (2.5 + torch.rand(4, 3)),)
            for i in range(12)
        ],
        "source": "https://github.com/bayesiains/nflows/issues/23",
    },
    "prints_then_asserts": {
        "build": PredictsVariance,
        "calls": lambda: [(torch.randn(4, 6) * [0.3, 0.3, 4.0][i % 3], torch.randn(4, 1)) for i in range(12)],
        "source": "https://github.com/pytorch/pytorch/issues/147282",
    },
    "detectron2_inference": {
        "build": FastRCNNInference,
        "calls": detection_calls,
        "source": "https://github.com/facebookresearch/detectron2/pull/2482, https://github.com/facebookresearch/detectron2/pull/5361",
    },
    "torchrl_safe_action": {
        "build": SafeActor,
        "calls": lambda: [(torch.randn(3, 5) * [0.3, 3.0][i % 2],) for i in range(12)],
        "source": "https://github.com/pytorch/pytorch/issues/140394",
    },
    "wav2vec2_spec_augment": {
        "build": SpecAugments,
        "calls": speech_calls,
        "source": "https://github.com/huggingface/transformers/issues/22849",
    },
    "generate_loop": {
        "build": Generates,
        "calls": lambda: [
            (torch.randint(2, 7, (3, 3)), torch.randn(7) * 0.3 + torch.eye(7)[1] * [0.0, 1.5, 4.0][i % 3])
            for i in range(12)
        ],
        "source": "https://github.com/huggingface/transformers/pull/29662",
    },
    "beam_search": {
        "build": BeamSearch,
        "calls": lambda: [(torch.randn(8) * [0.5, 3.0, 6.0][i % 3],) for i in range(12)],
        "source": "from memory: beam search of transformers and fairseq under torch.compile",
    },
    "rnnt_frames": {
        "build": RNNTGreedy,
        "calls": lambda: [(torch.randn(6, 5) * [1.0, 3.0][i % 2], torch.tensor(3 + i % 4)) for i in range(12)],
        "source": "https://github.com/fd873630/RNN-Transducer/issues/2, https://github.com/NVIDIA-NeMo/Speech/pull/7926",
    },
    "torchdiffeq_adaptive": {
        "build": AdaptiveHeun,
        "calls": lambda: [
            (torch.randn(2, 3) * [1.0, 4.0][i % 2] * (float("nan") if i == 8 else 1.0), torch.tensor([1.0, 2.0][i % 2]))
            for i in range(12)
        ],
        "source": "https://github.com/rtqichen/torchdiffeq/pull/269",
    },
    "amp_scaled_step": {
        "build": ScaledStep,
        "calls": grad_calls,
        "source": "https://github.com/pytorch/pytorch/issues/138412",
    },
    "diffusers_step_index": {
        "build": EulerScheduler,
        "calls": scheduler_calls,
        "source": "https://github.com/huggingface/diffusers/pull/14176",
    },
    "first_block_cache": {
        "build": FirstBlockCache,
        "calls": cache_calls,
        "source": "https://github.com/vipshop/cache-dit/issues/76, https://github.com/xdit-project/xDiT/pull/453",
    },
    "ema_decay": {
        "build": EMAModel,
        "calls": lambda: [(torch.randn(3, 4), torch.randn(4, 4)) for _ in range(12)],
        "source": "https://github.com/huggingface/diffusers/pull/64 (class from memory)",
    },
    "deepcopies_config": {
        "build": PreparesGeneration,
        "calls": generation_calls,
        "source": "https://github.com/pytorch/pytorch/issues/149970, https://github.com/tenstorrent/tt-torch/issues/852",
    },
    "lightning_self_log": {
        "build": LitAutoEncoder,
        "calls": lambda: [(torch.randn(4, 2, 4) * (1.5 - 0.1 * i), i) for i in range(12)],
        "source": "https://github.com/Lightning-AI/pytorch-lightning/issues/16822, https://github.com/Lightning-AI/pytorch-lightning/pull/21837",
    },
    "sb3_rollout_buffer": {
        "build": CollectsRollouts,
        "calls": lambda: [(torch.randn(2, 4) * [1.0, 3.0][i % 2],) for i in range(12)],
        "source": "https://github.com/pytorch/torchdynamo/issues/1382",
    },
    "trl_ppo_ratio": {
        "build": PPOLoss,
        "calls": ppo_calls,
        "source": "from memory: PPOTrainer.loss and masked_whiten of trl",
    },
    "timesfm_decode_cache": {
        "build": DecodesWithCache,
        "calls": lambda: [(torch.randn(2, 2, 4),) for _ in range(12)],
        "source": "https://github.com/google-research/timesfm/pull/459",
    },
}
