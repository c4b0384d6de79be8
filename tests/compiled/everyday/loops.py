"""Data-dependent exits, loops, experts, dropped layers, recurrent layers, retries and losses over chosen elements."""

import math
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


# --- leaving early ------------------------------------------------------------------------------------------------


def entropy(logits):
    e = torch.exp(logits)
    total = torch.sum(e, dim=1)
    return torch.log(total) - torch.sum(logits * e, dim=1) / total


class HighwayExit(Exception):
    def __init__(self, message, exit_layer):
        self.message = message
        self.exit_layer = exit_layer


class HighwayEncoder(nn.Module):
    def __init__(self, n_layers=4, hidden=8, labels=3):
        super().__init__()
        self.layer = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(n_layers))
        self.highway = nn.ModuleList(nn.Linear(hidden, labels) for _ in range(n_layers))
        self.early_exit_entropy = [0.8 for _ in range(n_layers)]

    def forward(self, hidden_states):
        all_exits = ()
        for i, layer_module in enumerate(self.layer):
            hidden_states = hidden_states + torch.relu(layer_module(hidden_states))
            highway_logits = self.highway[i](hidden_states)
            if not self.training:
                highway_entropy = entropy(highway_logits)
                all_exits = all_exits + ((highway_logits, highway_entropy),)
                if highway_entropy < self.early_exit_entropy[i]:
                    raise HighwayExit((highway_logits, all_exits), i + 1)
            else:
                all_exits = all_exits + ((highway_logits,),)
        return hidden_states, all_exits


class HighwayClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_layers = 4
        self.encoder = HighwayEncoder(self.num_layers)
        self.classifier = nn.Linear(8, 3)

    def forward(self, x):
        exit_layer = self.num_layers
        try:
            outputs = self.encoder(x)
            logits = self.classifier(outputs[0])
            outputs = (logits,) + outputs[1:]
        except HighwayExit as e:
            outputs = e.message
            exit_layer = e.exit_layer
            logits = outputs[0]
        return logits, len(outputs[1]), exit_layer


class AndersonLayer(nn.Module):
    """z = f(z, x) by Anderson mixing with a trace of residuals; the gradient by one more step."""

    def __init__(self, m=3, lam=1e-4, threshold=12, eps=3e-3):
        super().__init__()
        self.w = nn.Linear(8, 8)
        self.u = nn.Linear(8, 8)
        self.m, self.lam, self.threshold, self.eps = m, lam, threshold, eps

    def solve(self, f, x0):
        bsz, d = x0.shape
        m = self.m
        X = torch.zeros(bsz, m, d, dtype=x0.dtype)
        G = torch.zeros(bsz, m, d, dtype=x0.dtype)
        X[:, 0], G[:, 0] = x0, f(x0)
        X[:, 1], G[:, 1] = G[:, 0], f(G[:, 0])
        H = torch.zeros(bsz, m + 1, m + 1, dtype=x0.dtype)
        H[:, 0, 1:] = H[:, 1:, 0] = 1
        y = torch.zeros(bsz, m + 1, 1, dtype=x0.dtype)
        y[:, 0] = 1
        trace = []
        lowest, lowest_step, lowest_x = 1e8, 0, x0
        for k in range(2, self.threshold):
            n = min(k, m)
            R = G[:, :n] - X[:, :n]
            H[:, 1 : n + 1, 1 : n + 1] = torch.bmm(R, R.transpose(1, 2)) + self.lam * torch.eye(n, dtype=x0.dtype)[None]
            alpha = torch.linalg.solve(H[:, : n + 1, : n + 1], y[:, : n + 1])[:, 1 : n + 1, 0]
            X[:, k % m] = (alpha[:, None] @ G[:, :n])[:, 0]
            G[:, k % m] = f(X[:, k % m])
            diff = (G[:, k % m] - X[:, k % m]).norm().item() / (1e-5 + G[:, k % m].norm().item())
            trace.append(diff)
            if diff < lowest:
                lowest, lowest_step, lowest_x = diff, k, X[:, k % m].clone()
            if trace[-1] < self.eps:
                break
        return lowest_x, {"nstep": lowest_step, "steps": len(trace)}

    def forward(self, x):
        inject = self.u(x)
        f = lambda z: torch.tanh(self.w(z) + inject)
        with torch.no_grad():
            z, info = self.solve(f, torch.zeros_like(x))
        return f(z), info


class SinkhornMatch(nn.Module):
    def __init__(self, reg=0.5):
        super().__init__()
        self.q = nn.Linear(8, 8)
        self.k = nn.Linear(8, 8)
        self.reg = reg

    def sinkhorn(self, K, u, v):
        r = torch.ones_like(u)
        c = torch.ones_like(v)
        thresh = 1e-2
        for _ in range(20):
            r0 = r
            r = u / torch.matmul(K, c.unsqueeze(-1)).squeeze(-1)
            c = v / torch.matmul(K.permute(0, 2, 1).contiguous(), r.unsqueeze(-1)).squeeze(-1)
            err = (r - r0).abs().mean()
            if err.item() < thresh:
                break
        return torch.matmul(r.unsqueeze(-1), c.unsqueeze(-2)) * K

    def forward(self, a, b):
        a = F.normalize(self.q(a), dim=-1)
        b = F.normalize(self.k(b), dim=-1)
        sim = torch.einsum("bnd,bmd->bnm", a, b)
        u = torch.full(sim.shape[:2], 1.0 / sim.size(1))
        v = torch.full((sim.size(0), sim.size(2)), 1.0 / sim.size(2))
        with torch.no_grad():
            T = self.sinkhorn(torch.exp(-(1.0 - sim) / self.reg), u, v)
        if torch.isnan(T).any():
            return sim.mean(dim=(1, 2)), T
        return (T * sim).sum(dim=(1, 2)), T


class KMeansTokens(nn.Module):
    def __init__(self, num_clusters=3, tol=1e-4, iter_limit=8):
        super().__init__()
        self.proj = nn.Linear(8, 8)
        self.num_clusters, self.tol, self.iter_limit = num_clusters, tol, iter_limit

    @torch.no_grad()
    def kmeans(self, X):
        indices = np.random.choice(len(X), self.num_clusters, replace=False)
        centers = X[indices]
        iteration = 0
        while True:
            dis = ((X.unsqueeze(1) - centers.unsqueeze(0)) ** 2.0).sum(dim=-1)
            choice = torch.argmin(dis, dim=1)
            previous = centers.clone()
            for index in range(self.num_clusters):
                selected = torch.nonzero(choice == index).squeeze(1)
                selected = torch.index_select(X, 0, selected)
                if selected.shape[0] == 0:
                    selected = X[torch.randint(len(X), (1,))]
                centers[index] = selected.mean(dim=0)
            center_shift = torch.sum(torch.sqrt(torch.sum((centers - previous) ** 2, dim=1)))
            iteration = iteration + 1
            if center_shift**2 < self.tol:
                break
            if self.iter_limit != 0 and iteration >= self.iter_limit:
                break
        return choice, centers, iteration

    def forward(self, x):
        h = self.proj(x)
        choice, centers, iteration = self.kmeans(h.detach())
        return h - centers[choice], choice, iteration


class HaltingLayers(nn.Module):
    """Adaptive computation time: one layer again and again until each position has halted."""

    def __init__(self, max_hop=5):
        super().__init__()
        self.fn = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.p = nn.Linear(8, 1)
        self.p.bias.data.fill_(0.2)
        self.threshold = 1 - 0.1
        self.max_hop = max_hop
        self.register_buffer("pos", torch.randn(1, max_hop, 8) * 0.1)

    def forward(self, inputs):
        state = inputs
        halting = torch.zeros(inputs.shape[0], inputs.shape[1])
        remainders = torch.zeros(inputs.shape[0], inputs.shape[1])
        n_updates = torch.zeros(inputs.shape[0], inputs.shape[1])
        previous = torch.zeros_like(inputs)
        step = 0
        while ((halting < self.threshold) & (n_updates < self.max_hop)).byte().any():
            state = state + self.pos[:, step, :].unsqueeze(1).repeat(1, inputs.shape[1], 1).type_as(inputs.data)
            p = torch.sigmoid(self.p(state)).squeeze(-1)
            running = (halting < 1.0).float()
            new_halted = (halting + p * running > self.threshold).float() * running
            running = (halting + p * running <= self.threshold).float() * running
            halting = halting + p * running
            remainders = remainders + new_halted * (1 - halting)
            halting = halting + new_halted * remainders
            n_updates = n_updates + running + new_halted
            weights = (p * running + new_halted * remainders).unsqueeze(-1)
            state = self.fn(state)
            previous = state * weights + previous * (1 - weights)
            step += 1
        return previous, (remainders, n_updates)


# --- decoding -----------------------------------------------------------------------------------------------------


class CaptionSampler(nn.Module):
    """Greedy sampling until every sequence has met the end token."""

    def __init__(self, vocab=6, seq_length=7):
        super().__init__()
        self.embed = nn.Embedding(vocab + 1, 8)
        self.core = nn.LSTMCell(16, 8)
        self.logit = nn.Linear(8, vocab + 1)
        self.img = nn.Linear(8, 8)
        self.vocab_size, self.seq_length = vocab, seq_length
        self.bos_idx = self.eos_idx = self.pad_idx = 0
        self.logit.bias.data[self.eos_idx] += 0.6

    def forward(self, fc_feats):
        batch_size = fc_feats.size(0)
        state = (fc_feats.new_zeros(batch_size, 8), fc_feats.new_zeros(batch_size, 8))
        feats = self.img(fc_feats)
        seq = fc_feats.new_full((batch_size, self.seq_length), self.pad_idx, dtype=torch.long)
        seq_logprobs = fc_feats.new_zeros(batch_size, self.seq_length, self.vocab_size + 1)
        for t in range(self.seq_length + 1):
            if t == 0:
                it = fc_feats.new_full([batch_size], self.bos_idx, dtype=torch.long)
            state = self.core(torch.cat([self.embed(it), feats], 1), state)
            logprobs = F.log_softmax(self.logit(state[0]), dim=1)
            if t == self.seq_length:
                break
            _, it = torch.max(logprobs.data, 1)
            if t == 0:
                unfinished = it != self.eos_idx
            else:
                it[~unfinished] = self.pad_idx
                logprobs = logprobs * unfinished.unsqueeze(1).float()
                unfinished = unfinished & (it != self.eos_idx)
            seq[:, t] = it
            seq_logprobs[:, t] = logprobs
            if unfinished.sum() == 0:
                break
        return seq, seq_logprobs


class ScheduledCaptioner(nn.Module):
    """Training with scheduled sampling: some inputs are drawn from the model's own last prediction."""

    def __init__(self, vocab=6, ss_prob=0.25):
        super().__init__()
        self.embed = nn.Embedding(vocab + 1, 8)
        self.core = nn.GRUCell(8, 8)
        self.logit = nn.Linear(8, vocab + 1)
        self.vocab_size, self.ss_prob = vocab, ss_prob

    def forward(self, fc_feats, seq):
        batch_size = fc_feats.size(0)
        outputs = []
        h = fc_feats
        for i in range(seq.size(1)):
            if self.training and i >= 1 and self.ss_prob > 0.0:
                sample_prob = fc_feats.new(batch_size).uniform_(0, 1)
                sample_mask = sample_prob < self.ss_prob
                if sample_mask.sum() == 0:
                    it = seq[:, i].clone()
                else:
                    sample_ind = sample_mask.nonzero().view(-1)
                    it = seq[:, i].data.clone()
                    prob_prev = torch.exp(outputs[-1].detach())
                    it.index_copy_(0, sample_ind, torch.multinomial(prob_prev, 1).view(-1).index_select(0, sample_ind))
            else:
                it = seq[:, i].clone()
            if i >= 1 and seq[:, i].sum() == 0:
                break
            h = self.core(self.embed(it), h)
            outputs.append(F.log_softmax(self.logit(h), dim=1))
        return torch.stack(outputs, 1)


class DecoderGRU(nn.Module):
    """Teacher forcing for a whole call or not at all; lengths kept in a numpy array."""

    def __init__(self, vocab=7, eos_id=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, vocab)
        self.eos_id = eos_id

    def forward_step(self, tokens, hidden):
        output, hidden = self.rnn(self.embedding(tokens), hidden)
        return F.log_softmax(self.out(output), dim=-1), hidden

    def forward(self, inputs, hidden, teacher_forcing_ratio=0.5):
        use_teacher_forcing = True if random.random() < teacher_forcing_ratio else False
        batch_size, max_length = inputs.size(0), inputs.size(1) - 1
        decoder_outputs, sequence_symbols = [], []
        lengths = np.array([max_length] * batch_size)

        def decode(step, step_output):
            decoder_outputs.append(step_output)
            symbols = decoder_outputs[-1].topk(1)[1]
            sequence_symbols.append(symbols)
            eos_batches = symbols.data.eq(self.eos_id)
            if eos_batches.dim() > 0:
                eos_batches = eos_batches.cpu().view(-1).numpy()
                update_idx = ((lengths > step) & eos_batches) != 0
                lengths[update_idx] = len(sequence_symbols)
            return symbols

        if use_teacher_forcing:
            output, hidden = self.forward_step(inputs[:, :-1], hidden)
            for di in range(output.size(1)):
                decode(di, output[:, di, :])
        else:
            step_input = inputs[:, 0].unsqueeze(1)
            for di in range(max_length):
                output, hidden = self.forward_step(step_input, hidden)
                step_input = decode(di, output.squeeze(1))
        return torch.stack(decoder_outputs, 1), hidden, {"length": lengths.tolist(), "forced": use_teacher_forcing}


# --- sampling and solving -----------------------------------------------------------------------------------------


class SphereSampler(nn.Module):
    """von Mises-Fisher latent: the radial part by rejection until all are accepted, then a reflection."""

    def __init__(self, m=8):
        super().__init__()
        self.mean = nn.Linear(m, m)
        self.var = nn.Linear(m, 1)
        self.m = m

    def sample_w(self, scale):
        m = self.m
        c = torch.sqrt(4 * scale**2 + (m - 1) ** 2)
        b = (-2 * scale + c) / (m - 1)
        a = (m - 1 + 2 * scale + c) / 4
        d = (4 * a * b) / (1 + b) - (m - 1) * math.log(m - 1)
        w, mask = torch.zeros_like(b), torch.ones_like(b) == 1
        while mask.sum() != 0:
            e_ = torch.distributions.Beta((m - 1) / 2, (m - 1) / 2).sample(b.shape).type(torch.float64)
            u = torch.distributions.Uniform(0, 1).sample(b.shape).type(torch.float64)
            w_ = (1 - (1 + b) * e_) / (1 - (1 - b) * e_)
            t = (2 * a * b) / (1 - (1 - b) * e_)
            accept = ((m - 1) * t.log() - t + d) > torch.log(u)
            reject = ~accept
            w[mask * accept] = w_[mask * accept]
            mask[mask * accept] = reject[mask * accept]
        return w

    def forward(self, x):
        loc = F.normalize(self.mean(x), dim=-1)
        scale = F.softplus(self.var(x)) + 1
        w = self.sample_w(scale.type(torch.float64))
        v = F.normalize(torch.randn(x.size(0), self.m - 1, dtype=torch.float64), dim=-1)
        z = torch.cat((w, torch.sqrt(1 - w**2) * v), -1).type(x.dtype)
        e1 = torch.zeros_like(loc)
        e1[:, 0] = 1.0
        u = e1 - loc
        u = u / (u.norm(dim=-1, keepdim=True) + 1e-5)
        return z - 2 * (z * u).sum(-1, keepdim=True) * u


class AdaptiveSolver(nn.Module):
    """Embedded Heun/Euler steps; a step is accepted or redone by its error ratio."""

    def __init__(self, rtol=1e-2, atol=1e-2, max_num_steps=40):
        super().__init__()
        self.func = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8))
        self.rtol, self.atol, self.max_num_steps = rtol, atol, max_num_steps

    def adaptive_step(self, y0, f0, t0, dt):
        assert t0 + dt > t0, "underflow in dt {}".format(dt.item())
        assert torch.isfinite(y0).all(), "non-finite values in state `y`"
        y_euler = y0 + dt * f0
        f1 = self.func(y_euler)
        y1 = y0 + dt * 0.5 * (f0 + f1)
        with torch.no_grad():
            tol = self.atol + self.rtol * torch.max(y0.abs(), y1.abs())
            error_ratio = ((y1 - y_euler) / tol).pow(2).mean().sqrt()
        accept_step = error_ratio <= 1
        if accept_step:
            t_next, y_next, f_next = t0 + dt, y1, self.func(y1)
        else:
            t_next, y_next, f_next = t0, y0, f0
        factor = torch.clamp(0.9 * error_ratio.clamp(min=1e-6) ** -0.5, 0.2, 5.0)
        return y_next, f_next, t_next, dt * factor

    def forward(self, y, t_end):
        t, dt = torch.zeros(()), torch.tensor(0.25)
        f = self.func(y)
        n_steps = 0
        while t_end > t:
            assert n_steps < self.max_num_steps, "max_num_steps exceeded ({}>={})".format(n_steps, self.max_num_steps)
            y, f, t, dt = self.adaptive_step(y, f, t, torch.min(dt, t_end - t))
            n_steps += 1
        return y, n_steps


class NonMaximum(nn.Module):
    def __init__(self, overlap=0.3, top_k=8):
        super().__init__()
        self.overlap, self.top_k = overlap, top_k

    def forward(self, boxes, scores):
        keep = scores.new(scores.size(0)).zero_().long()
        if boxes.numel() == 0:
            return keep, 0
        x1, y1, x2, y2 = boxes[:, 0], boxes[:, 1], boxes[:, 2], boxes[:, 3]
        area = torch.mul(x2 - x1, y2 - y1)
        v, idx = scores.sort(0)
        idx = idx[-self.top_k :]
        count = 0
        while idx.numel() > 0:
            i = idx[-1]
            keep[count] = i
            count += 1
            if idx.size(0) == 1:
                break
            idx = idx[:-1]
            w = torch.clamp(
                torch.clamp(torch.index_select(x2, 0, idx), max=x2[i])
                - torch.clamp(torch.index_select(x1, 0, idx), min=x1[i]),
                min=0.0,
            )
            h = torch.clamp(
                torch.clamp(torch.index_select(y2, 0, idx), max=y2[i])
                - torch.clamp(torch.index_select(y1, 0, idx), min=y1[i]),
                min=0.0,
            )
            inter = w * h
            union = (torch.index_select(area, 0, idx) - inter) + area[i]
            idx = idx[(inter / union).le(self.overlap)]
        return keep, count


# --- experts ------------------------------------------------------------------------------------------------------


class SwitchLayer(nn.Module):
    """Top-1 routing; what is over the capacity of an expert is dropped at random and passed through."""

    def __init__(self, n_experts=3, capacity_factor=1.2, drop_tokens=True):
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(n_experts)
        )
        self.switch = nn.Linear(8, n_experts)
        self.softmax = nn.Softmax(dim=-1)
        self.n_experts, self.capacity_factor, self.drop_tokens = n_experts, capacity_factor, drop_tokens

    def forward(self, x):
        seq_len, batch_size, d_model = x.shape
        x = x.view(-1, d_model)
        route_prob = self.softmax(self.switch(x))
        route_prob_max, routes = torch.max(route_prob, dim=-1)
        indexes = [torch.eq(routes, i).nonzero(as_tuple=True)[0] for i in range(self.n_experts)]
        final_output = x.new_zeros(x.shape)
        capacity = int(self.capacity_factor * len(x) / self.n_experts)
        counts = x.new_tensor([len(indexes[i]) for i in range(self.n_experts)])
        dropped = []
        if self.drop_tokens:
            for i in range(self.n_experts):
                if len(indexes[i]) <= capacity:
                    continue
                indexes[i] = indexes[i][torch.randperm(len(indexes[i]))]
                dropped.append(indexes[i][capacity:])
                indexes[i] = indexes[i][:capacity]
        expert_output = [self.experts[i](x[indexes[i], :]) for i in range(self.n_experts)]
        for i in range(self.n_experts):
            final_output[indexes[i], :] = expert_output[i]
        if dropped:
            dropped = torch.cat(dropped)
            final_output[dropped, :] = x[dropped, :]
        final_output = final_output * route_prob_max.view(-1, 1)
        return final_output.view(seq_len, batch_size, d_model), counts, route_prob.sum(0), len(dropped)


class SharedAndRouted(nn.Module):
    """Two ways: in training a mask for each expert, in evaluation tokens sorted by expert with counts in numpy."""

    def __init__(self, n=4, k=2):
        super().__init__()
        self.num_experts_per_tok = k
        self.gate = nn.Linear(8, n, bias=False)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
        self.shared_experts = nn.Linear(8, 8)

    def forward(self, hidden_states):
        identity = hidden_states
        orig_shape = hidden_states.shape
        x = hidden_states.view(-1, orig_shape[-1])
        topk_weight, topk_idx = torch.topk(
            self.gate(x).softmax(dim=-1), k=self.num_experts_per_tok, dim=-1, sorted=False
        )
        flat_idx = topk_idx.view(-1)
        if self.training:
            x = x.repeat_interleave(self.num_experts_per_tok, dim=0)
            y = torch.empty_like(x)
            for i, expert in enumerate(self.experts):
                y[flat_idx == i] = expert(x[flat_idx == i])
            y = (y.view(*topk_weight.shape, -1) * topk_weight.unsqueeze(-1)).sum(dim=1).view(*orig_shape)
        else:
            y = self.moe_infer(x, flat_idx, topk_weight.view(-1, 1)).view(*orig_shape)
        return y + self.shared_experts(identity)

    @torch.no_grad()
    def moe_infer(self, x, flat_idx, flat_weights):
        cache = torch.zeros_like(x)
        idxs = flat_idx.argsort()
        tokens_per_expert = flat_idx.bincount().cpu().numpy().cumsum(0)
        token_idxs = idxs // self.num_experts_per_tok
        for i, end_idx in enumerate(tokens_per_expert):
            start_idx = 0 if i == 0 else tokens_per_expert[i - 1]
            if start_idx == end_idx:
                continue
            rows = token_idxs[start_idx:end_idx]
            expert_out = self.experts[i](x[rows])
            expert_out.mul_(flat_weights[idxs[start_idx:end_idx]])
            cache.scatter_reduce_(0, rows.view(-1, 1).repeat(1, x.shape[-1]), expert_out, reduce="sum")
        return cache


class GroupedExperts(nn.Module):
    """Weights of all experts in one parameter; tokens are split by the counts, read with tolist()."""

    def __init__(self, n=4, dim=8, hidden=8, top_k=1):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(n, hidden, dim) * 0.3)
        self.w2 = nn.Parameter(torch.randn(n, dim, hidden) * 0.3)
        self.router = nn.Linear(dim, n, bias=False)
        self.top_k, self.num_experts = top_k, n
        self.register_buffer("expert_bias", torch.zeros(n))
        self.register_buffer("tokens_per_expert", torch.zeros(n), persistent=False)

    def run_experts(self, x, num_tokens_per_expert):
        counts = num_tokens_per_expert.tolist()
        num_padding = x.shape[0] - sum(counts)
        splits = torch.split(x[: sum(counts)], split_size_or_sections=counts, dim=0)
        outs = []
        for e, x_expert in enumerate(splits):
            h = F.silu(torch.matmul(x_expert, self.w1[e].transpose(-2, -1)))
            outs.append(torch.matmul(h, self.w2[e].transpose(-2, -1)))
        out = torch.cat(outs, dim=0)
        return torch.vstack((out, out.new_zeros((num_padding, out.shape[-1]))))

    def forward(self, x):
        scores = torch.sigmoid(self.router(x).to(torch.float32))
        _, chosen = torch.topk(scores + self.expert_bias, k=self.top_k, dim=1)
        top_scores = scores.gather(dim=1, index=chosen)
        num_tokens = torch.bincount(chosen.view(-1), minlength=self.num_experts)
        with torch.no_grad():
            self.tokens_per_expert.add_(num_tokens)
        order = torch.argsort(chosen.view(-1), stable=True)
        token_order = order // self.top_k
        routed = self.run_experts(x[token_order] * top_scores.view(-1)[order].unsqueeze(-1), num_tokens)
        return torch.zeros_like(x).scatter_add(0, token_order.unsqueeze(-1).expand(-1, x.size(-1)), routed)


class WhereExperts(nn.Module):
    def __init__(self, experts=4, num_experts_per_tok=2):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8)) for _ in range(experts))
        self.gate = nn.Linear(8, experts, bias=False)
        self.num_experts_per_tok = num_experts_per_tok

    def forward(self, inputs):
        gate_logits = self.gate(inputs)
        weights, selected_experts = torch.topk(gate_logits, self.num_experts_per_tok)
        weights = F.softmax(weights, dim=1, dtype=torch.float).to(inputs.dtype)
        results = torch.zeros_like(inputs)
        for i, expert in enumerate(self.experts):
            batch_idx, nth_expert = torch.where(selected_experts == i)
            results[batch_idx] += weights[batch_idx, nth_expert, None] * expert(inputs[batch_idx])
        return results


# --- dropped layers, augmentation ---------------------------------------------------------------------------------


class DroppingList(nn.ModuleList):
    """Draws anew at each iteration which layers it gives."""

    def __init__(self, p, modules=None):
        super().__init__(modules)
        self.p = p

    def __iter__(self):
        probs = torch.empty(len(self)).uniform_()
        for i, m in enumerate(super().__iter__()):
            if not self.training or (probs[i] > self.p):
                yield m


class DroppingEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = DroppingList(p=0.4)
        self.layers.extend([nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(4)])
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        states = []
        for layer in self.layers:
            x = x + layer(x)
            states.append(x)
        return self.norm(x), len(states)


class StoDepthBlock(nn.Module):
    """A residual branch drawn with a Bernoulli object; a dropped one has its weights frozen for the call."""

    def __init__(self, prob, mult_flag=True):
        super().__init__()
        self.conv1, self.bn1 = nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8)
        self.conv2, self.bn2 = nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8)
        self.relu = nn.ReLU(inplace=True)
        self.prob = prob
        self.m = torch.distributions.bernoulli.Bernoulli(torch.Tensor([self.prob]))
        self.mult_flag = mult_flag

    def branch(self, x):
        return self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))

    def forward(self, x):
        identity = x.clone()
        if self.training:
            if torch.equal(self.m.sample(), torch.ones(1)):
                self.conv1.weight.requires_grad = True
                self.conv2.weight.requires_grad = True
                out = self.branch(x)
                out += identity
            else:
                self.conv1.weight.requires_grad = False
                self.conv2.weight.requires_grad = False
                out = identity
        else:
            out = self.branch(x)
            out = self.prob * out + identity if self.mult_flag else out + identity
        return self.relu(out)


class StoDepthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 8)
        prob_now, prob_end, layers = 1.0, 0.4, 3
        blocks = []
        for _ in range(layers):
            blocks.append(StoDepthBlock(prob_now))
            prob_now = prob_now - (1.0 - prob_end) / (layers - 1)
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)))


def mixup_data(x, y, alpha):
    lam = np.random.beta(alpha, alpha) if alpha > 0 else 1.0
    index = torch.randperm(x.size(0))
    return lam * x + (1 - lam) * x[index, :], y, y[index], lam


class ManifoldMixup(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(8, 8)
        self.layer2 = nn.Linear(8, 8)
        self.linear = nn.Linear(8, 4)

    def forward(self, x, target=None, mixup_hidden=False, mixup_alpha=0.4, layer_mix=None):
        if mixup_hidden == True:
            if layer_mix == None:
                layer_mix = random.randint(0, 2)
            out = x
            if layer_mix == 0:
                out, y_a, y_b, lam = mixup_data(out, target, mixup_alpha)
            out = F.relu(self.layer1(out))
            if layer_mix == 1:
                out, y_a, y_b, lam = mixup_data(out, target, mixup_alpha)
            out = F.relu(self.layer2(out))
            if layer_mix == 2:
                out, y_a, y_b, lam = mixup_data(out, target, mixup_alpha)
            out = self.linear(out)
            lam = torch.tensor(lam)
            lam = lam.repeat(y_a.size())
            return out, y_a, y_b, lam
        return self.linear(F.relu(self.layer2(F.relu(self.layer1(x)))))


class SpecMasking(nn.Module):
    """Blocks of frames and of bands set to zero in place, widths by numpy and places by random."""

    def __init__(self, T=5, F=3, time_mask_num=2, freq_mask_num=2):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.T, self.F, self.time_mask_num, self.freq_mask_num = T, F, time_mask_num, freq_mask_num

    def augment(self, feat):
        feat_size = feat.size(1)
        seq_len = feat.size(0)
        for _ in range(self.time_mask_num):
            t = np.random.uniform(low=0.0, high=self.T)
            t = int(t)
            t0 = random.randint(0, seq_len - t)
            feat[t0 : t0 + t, :] = 0
        for _ in range(self.freq_mask_num):
            f = np.random.uniform(low=0.0, high=self.F)
            f = int(f)
            f0 = random.randint(0, feat_size - f)
            feat[:, f0 : f0 + f] = 0
        return feat

    def forward(self, feat):
        if self.training:
            feat = self.augment(feat)
        return self.fc(feat)


# --- recurrent layers ---------------------------------------------------------------------------------------------


class PolicyGRU(nn.Module):
    """A rollout cut where an episode ended, each piece through nn.GRU with the state masked at its start."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 8)
        self.critic = nn.Linear(8, 1)

    def forward(self, x, hxs, masks):
        if x.size(0) == hxs.size(0):
            x, hxs = self.gru(x.unsqueeze(0), (hxs * masks).unsqueeze(0))
            x, hxs = x.squeeze(0), hxs.squeeze(0)
        else:
            N = hxs.size(0)
            T = int(x.size(0) / N)
            x = x.view(T, N, x.size(1))
            masks = masks.view(T, N)
            has_zeros = (masks[1:] == 0.0).any(dim=-1).nonzero().squeeze().cpu()
            if has_zeros.dim() == 0:
                has_zeros = [has_zeros.item() + 1]
            else:
                has_zeros = (has_zeros + 1).numpy().tolist()
            has_zeros = [0] + has_zeros + [T]
            hxs = hxs.unsqueeze(0)
            outputs = []
            for i in range(len(has_zeros) - 1):
                start_idx, end_idx = has_zeros[i], has_zeros[i + 1]
                scores, hxs = self.gru(x[start_idx:end_idx], hxs * masks[start_idx].view(1, -1, 1))
                outputs.append(scores)
            x = torch.cat(outputs, dim=0).view(T * N, -1)
            hxs = hxs.squeeze(0)
        return self.critic(x), x, hxs


class PackedTextEncoder(nn.Module):
    """Sorted by length, packed, unsorted; then a maximum over each text's own words."""

    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True)

    def forward(self, tokens, lengths):
        sorted_lengths, idx = lengths.sort(0, descending=True)
        _, un_idx = torch.sort(idx, dim=0)
        packed = pack_padded_sequence(self.emb(tokens[idx]), sorted_lengths.cpu(), batch_first=True)
        out, _ = self.lstm(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        out = torch.index_select(out, 0, un_idx)
        b, t, d = out.shape
        out = out.view(b, t, 2, d // 2).mean(-2)
        return torch.stack([w[:l].max(0)[0] for w, l in zip(out, lengths)], dim=0)


# --- trying again -------------------------------------------------------------------------------------------------


class CorrelatedNoise(nn.Module):
    """A correlation matrix estimated pair by pair need not be positive definite: more jitter until it is."""

    def __init__(self, max_tries=6):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.max_tries = max_tries

    def factor(self, k):
        tries = 0
        jitter = k.diag().mean() * 1e-3
        k = k.clone()
        while tries < self.max_tries:
            try:
                L = torch.linalg.cholesky(k)
                return L, tries
            except RuntimeError:
                jitter *= 10
                k += jitter * torch.eye(k.shape[0])
                tries += 1
        raise ValueError("Not PD, even with jitter.")

    def forward(self, x, corr):
        L, tries = self.factor(corr)
        return L @ self.fc(x), tries


# --- losses -------------------------------------------------------------------------------------------------------


def mean_of(values, empty=0):
    values = iter(values)
    try:
        n = 1
        acc = next(values)
    except StopIteration:
        if empty == "raise":
            raise ValueError("Empty mean")
        return empty
    for n, v in enumerate(values, 2):
        acc += v
    if n == 1:
        return acc
    return acc / n


class LovaszLoss(nn.Module):
    """Over the classes which are present, on the pixels which are not ignored."""

    def __init__(self, ignore=255):
        super().__init__()
        self.head = nn.Conv2d(8, 3, 1)
        self.ignore = ignore

    def grad(self, gt_sorted):
        p = len(gt_sorted)
        gts = gt_sorted.sum()
        intersection = gts - gt_sorted.cumsum(0)
        union = gts + (1 - gt_sorted).cumsum(0)
        jaccard = 1.0 - intersection / union
        if p > 1:
            jaccard[1:p] = jaccard[1:p] - jaccard[0:-1]
        return jaccard

    def forward(self, x, labels):
        probas = self.head(x).softmax(1)
        C = probas.size(1)
        probas = probas.permute(0, 2, 3, 1).contiguous().view(-1, C)
        labels = labels.view(-1)
        valid = labels != self.ignore
        probas, labels = probas[valid.nonzero().squeeze()], labels[valid]
        if probas.numel() == 0:
            return probas * 0.0
        losses = []
        for c in range(C):
            fg = (labels == c).float()
            if fg.sum() == 0:
                continue
            errors = (fg - probas[:, c]).abs()
            errors_sorted, perm = torch.sort(errors, 0, descending=True)
            losses.append(torch.dot(errors_sorted, self.grad(fg[perm.data])))
        return mean_of(losses)


class BalancedBCE(nn.Module):
    """All positives and three times as many of the hardest negatives."""

    def __init__(self, negative_ratio=3.0, eps=1e-6):
        super().__init__()
        self.head = nn.Linear(8, 8)
        self.negative_ratio, self.eps = negative_ratio, eps

    def forward(self, x, gt, mask=None):
        pred_logits = self.head(x)
        if mask is None:
            mask = torch.ones_like(gt, device=gt.device, dtype=gt.dtype)
        positive = (gt * mask) > 0
        negative = ((1 - gt) * mask) > 0
        positive_count = int(positive.sum().item())
        negative_count = min(int(negative.sum().item()), int(positive_count * self.negative_ratio))
        loss = F.binary_cross_entropy_with_logits(pred_logits, gt, reduction="none")
        positive_loss = loss * positive.float()
        negative_loss = loss * negative.float()
        if negative_count > 0:
            negative_loss, _ = torch.topk(negative_loss.view(-1), negative_count)
            negative_sum = negative_loss.sum()
        else:
            negative_sum = torch.zeros((), device=loss.device, dtype=loss.dtype)
        return (positive_loss.sum() + negative_sum) / (positive_count + negative_count + self.eps)


# --- the calls ----------------------------------------------------------------------------------------------------


def xs(*shape, scale=3.0, n=12):
    return lambda: [(torch.randn(*shape) * (1 + scale * (i % 2)),) for i in range(n)]


def caption_calls():
    calls = []
    for i in range(12):
        seq = torch.randint(1, 7, (4, 6))
        seq[:, 0] = 0
        if i % 3:
            seq[:, 6 - i % 3 * 2 :] = 0
        calls.append((torch.randn(4, 8), seq))
    return calls


def box_calls():
    calls = []
    for i in range(12):
        n = 0 if i % 5 == 4 else 7
        xy = torch.rand(n, 2) * (2 if i % 2 else 12)
        calls.append((torch.cat([xy, xy + 1 + torch.rand(n, 2) * 3], 1), torch.rand(n)))
    return calls


def rollout_calls():
    calls = []
    for i in range(12):
        if i % 4 == 3:
            calls.append((torch.randn(2, 8), torch.randn(2, 8), torch.ones(2, 1)))
            continue
        masks = torch.ones(6, 2)
        if i % 4 == 1:
            masks[3, 1] = 0.0
        if i % 4 == 2:
            masks = (torch.rand(6, 2) > 0.3).float()
        calls.append((torch.randn(12, 8), torch.randn(2, 8), masks.view(12, 1)))
    return calls


def text_calls():
    calls = []
    for i in range(12):
        lengths = torch.randint(1, 4 + 3 * (i % 2), (4,))
        tokens = torch.randint(1, 20, (4, 6)) * (torch.arange(6)[None] < lengths[:, None])
        calls.append((tokens, lengths))
    return calls


def correlation_calls():
    calls = []
    for i in range(12):
        a = torch.triu((torch.rand(4, 4) * 2 - 1).sign() * (0.9 if i % 2 else 0.2), 1)
        calls.append((torch.randn(4, 8), a + a.t() + torch.eye(4)))
    return calls


def pixel_calls():
    calls = []
    for i in range(12):
        labels = torch.randint(0, 1 + i % 3, (2, 3, 3))
        if i % 4 == 3:
            labels[:] = 255
        else:
            labels[:, 0] = 255
        calls.append((torch.randn(2, 8, 3, 3), labels))
    return calls


CASES = {
    "highway_exception": {
        "build": lambda: HighwayClassifier().eval(),
        "calls": xs(1, 8),
        "source": "huggingface/transformers examples/research_projects/deebert/src/modeling_highway_bert.py",
    },
    "anderson_deq": {"build": AndersonLayer, "calls": xs(4, 8), "source": "locuslab/deq lib/solvers.py"},
    "sinkhorn_mean_err": {
        "build": SinkhornMatch,
        "calls": lambda: [
            (torch.randn(4, 5, 8), torch.randn(4, 5, 8) if i % 2 else torch.randn(4, 1, 8).repeat(1, 5, 1))
            for i in range(12)
        ],
        "source": "wl-zhao/DIML utilities/diml.py",
    },
    "kmeans_center_shift": {
        "build": KMeansTokens,
        "calls": xs(10, 8),
        "source": "subhadarship/kmeans_pytorch kmeans_pytorch/__init__.py",
    },
    "act_halting": {
        "build": HaltingLayers,
        "calls": xs(4, 3, 8),
        "source": "andreamad8/Universal-Transformer-Pytorch models/UTransformer.py",
    },
    "caption_greedy": {
        "build": CaptionSampler,
        "calls": xs(4, 8),
        "source": "ruotianluo/ImageCaptioning.pytorch captioning/models/AttModel.py (_sample)",
    },
    "scheduled_sampling": {
        "build": ScheduledCaptioner,
        "calls": caption_calls,
        "source": "ruotianluo/ImageCaptioning.pytorch captioning/models/AttModel.py (_forward)",
    },
    "seq2seq_teacher_forcing": {
        "build": DecoderGRU,
        "calls": lambda: [(torch.randint(0, 7, (4, 6)), torch.randn(1, 4, 8)) for i in range(12)],
        "source": "IBM/pytorch-seq2seq seq2seq/models/DecoderRNN.py",
    },
    "vmf_rejection": {
        "build": SphereSampler,
        "calls": xs(4, 8),
        "source": "nicola-decao/s-vae-pytorch hyperspherical_vae/distributions/von_mises_fisher.py",
    },
    "adaptive_rk": {
        "build": AdaptiveSolver,
        "calls": lambda: [(torch.randn(4, 8) * (1 + i % 2), torch.tensor(0.5 + 0.5 * (i % 4))) for i in range(12)],
        "source": "rtqichen/torchdiffeq torchdiffeq/_impl/rk_common.py",
    },
    "nms_while": {"build": NonMaximum, "calls": box_calls, "source": "amdegroot/ssd.pytorch layers/box_utils.py"},
    "switch_capacity": {
        "build": SwitchLayer,
        "calls": xs(3, 4, 8),
        "source": "labmlai/annotated_deep_learning_paper_implementations labml_nn/transformers/switch/__init__.py",
    },
    "deepseek_moe_infer": {
        "build": lambda: SharedAndRouted().eval(),
        "calls": xs(2, 3, 8),
        "source": "BZX667/CMoE modeling_deepseek.py",
    },
    "grouped_experts_tolist": {
        "build": GroupedExperts,
        "calls": xs(6, 8),
        "source": "PrimeIntellect-ai/prime-rl src/prime_rl/trainer/custom_models/layers/moe.py (and issue #996)",
    },
    "experts_torch_where": {
        "build": WhereExperts,
        "calls": xs(4, 8),
        "source": "edadaltocg/research research/nn/layers/moe.py",
    },
    "layerdrop_iterator": {
        "build": DroppingEncoder,
        "calls": xs(4, 8),
        "source": "facebookresearch/fairseq fairseq/modules/layer_drop.py",
    },
    "stodepth_bernoulli": {
        "build": StoDepthNet,
        "calls": xs(4, 8),
        "source": "shamangary/Pytorch-Stochastic-Depth-Resnet TYY_stodepth_lineardecay.py",
    },
    "manifold_mixup": {
        "build": ManifoldMixup,
        "calls": lambda: [(torch.randn(4, 8), torch.randint(0, 4, (4,)), i % 3 != 2) for i in range(12)],
        "source": "vikasverma1077/manifold_mixup supervised/models/resnet.py",
    },
    "spec_augment": {
        "build": SpecMasking,
        "calls": xs(12, 8),
        "source": "sooftware/kospeech docs/Spec-Augmentation.md",
    },
    "a2c_gru_segments": {
        "build": PolicyGRU,
        "calls": rollout_calls,
        "source": "ikostrikov/pytorch-a2c-ppo-acktr-gail a2c_ppo_acktr/model.py",
    },
    "packed_lstm_max_pool": {
        "build": PackedTextEncoder,
        "calls": text_calls,
        "source": "yuyunfeng666/deep-utils LSTM_PAD_PACK_LAYER_new.py; Glovo/foodi-ml-dataset benchmarks/adapt/retrieval/model/imgenc/pooling.py",
    },
    "cholesky_jitter": {
        "build": CorrelatedNoise,
        "calls": correlation_calls,
        "source": "danielkelshaw/GPyBO gpybo/utils/lab.py",
    },
    "lovasz_present": {
        "build": LovaszLoss,
        "calls": pixel_calls,
        "source": "bermanmaxim/LovaszSoftmax pytorch/lovasz_losses.py",
    },
    "hard_negative_topk": {
        "build": BalancedBCE,
        "calls": lambda: [(torch.randn(4, 8), (torch.rand(4, 8) > (0.85, 1.0, 0.3)[i % 3]).float()) for i in range(12)],
        "source": "AIBootcamp13/upstageailab-ocr-recsys-competition-ocr-2 ocr/models/loss/bce_loss.py",
    },
}
