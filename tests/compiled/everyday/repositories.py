"""Everyday code after public repositories, shrunk: queues, samplers, meters, guards, schedules, quantisers, decoders.

Each case says under "source" which public code its spelling follows (shortened, renamed, on the CPU; no file is copied).
"""

import functools
import logging
import math
import random
from collections import defaultdict, deque

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger(__name__)


# -- 1. MoCo: a ring buffer whose pointer is a tensor read back by int() (facebookresearch/moco, moco/builder.py)
class MoCo(nn.Module):
    def __init__(self, dim=8, K=12, m=0.9, T=0.2):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = nn.Linear(8, dim)
        self.encoder_k = nn.Linear(8, dim)
        for pq, pk in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            pk.data.copy_(pq.data)
            pk.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

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
            for pq, pk in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
                pk.mul_(self.m).add_(pq.mul(1.0 - self.m))
            k = F.normalize(self.encoder_k(im_k), dim=1)
        pos = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        neg = torch.einsum("nc,ck->nk", q, self.queue.clone().detach())
        logits = torch.cat([pos, neg], dim=1) / self.T
        self._enqueue(k)
        return logits, torch.zeros(logits.shape[0], dtype=torch.long)


# -- 2. Glow: parameters set from the first batch, flag a uint8 buffer (rosinality/glow-pytorch, model.py)
class ActNorm(nn.Module):
    def __init__(self, channels=3):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.scale = nn.Parameter(torch.ones(1, channels, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def initialize(self, x):
        with torch.no_grad():
            flat = x.permute(1, 0, 2, 3).reshape(x.shape[1], -1)
            self.loc.data.copy_(-flat.mean(1).view(1, -1, 1, 1))
            self.scale.data.copy_(1 / (flat.std(1).view(1, -1, 1, 1) + 1e-6))

    def forward(self, x):
        _, _, height, width = x.shape
        if self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        logdet = height * width * torch.sum(torch.log(torch.abs(self.scale)))
        return self.scale * (x + self.loc), logdet


# -- 3. detectron2: a dict of losses to a dict of numbers, finite or raise
#       (facebookresearch/detectron2, detectron2/engine/train_loop.py, write_metrics)
class LossDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.cls, self.box = nn.Linear(8, 5), nn.Linear(8, 4)
        self.iter = 0
        self.history = defaultdict(list)

    def write_metrics(self, loss_dict):
        metrics = {k: v.detach().cpu().item() for k, v in loss_dict.items()}
        total = sum(metrics.values())
        if not np.isfinite(total):
            raise FloatingPointError(f"Loss became infinite or NaN at iteration={self.iter}!")
        self.history["total_loss"].append(total)
        if len(metrics) > 1:
            for k, v in metrics.items():
                self.history[k].append(v)

    def forward(self, feats, labels, boxes):
        losses = {
            "loss_cls": F.cross_entropy(self.cls(feats), labels),
            "loss_box_reg": F.smooth_l1_loss(self.box(feats), boxes, reduction="sum") / max(labels.numel(), 1),
        }
        self.iter += 1
        self.write_metrics(losses)
        return sum(losses.values())


# -- 4. detectron2: classification statistics of a batch of proposals into an event storage
#       (facebookresearch/detectron2, modeling/roi_heads/fast_rcnn.py, _log_classification_stats)
class EventStorage:
    def __init__(self):
        self._latest = {}

    def put_scalar(self, name, value):
        self._latest[name] = float(value)

    def latest(self):
        return dict(self._latest)


_STORAGES = [EventStorage()]


def get_event_storage():
    assert len(_STORAGES), "get_event_storage() has to be called inside a 'with EventStorage(...)' context!"
    return _STORAGES[-1]


class BoxHead(nn.Module):
    def __init__(self, num_classes=3):
        super().__init__()
        self.cls_score = nn.Linear(8, num_classes + 1)

    def log_stats(self, logits, gt, prefix="fast_rcnn"):
        n = gt.numel()
        if n == 0:
            return
        pred = logits.argmax(dim=1)
        bg = logits.shape[1] - 1
        fg_inds = (gt >= 0) & (gt < bg)
        num_fg = fg_inds.nonzero().numel()
        fg_pred = pred[fg_inds]
        num_false_negative = (fg_pred == bg).nonzero().numel()
        num_accurate = (pred == gt).nonzero().numel()
        storage = get_event_storage()
        storage.put_scalar(f"{prefix}/cls_accuracy", num_accurate / n)
        if num_fg > 0:
            storage.put_scalar(f"{prefix}/fg_cls_accuracy", (fg_pred == gt[fg_inds]).nonzero().numel() / num_fg)
            storage.put_scalar(f"{prefix}/false_negative", num_false_negative / num_fg)

    def forward(self, x, gt):
        logits = self.cls_score(x)
        self.log_stats(logits, gt)
        return F.cross_entropy(logits, gt), get_event_storage().latest()


# -- 5. transformers: pad token among the first or last ids and no mask: warn once through a cached logger method
#       (huggingface/transformers, modeling_utils.py warn_if_padding_and_no_attention_mask; utils/logging.py warning_once)
@functools.lru_cache(None)
def warning_once(*args):
    logger.warning(*args)


class TextEncoder(nn.Module):
    def __init__(self, pad_token_id=0):
        super().__init__()
        self.pad_token_id = pad_token_id
        self.embeddings = nn.Embedding(20, 8, padding_idx=pad_token_id)
        self.dense = nn.Linear(8, 8)

    def warn_if_padding_and_no_attention_mask(self, input_ids, attention_mask):
        if attention_mask is not None or self.pad_token_id is None:
            return
        if self.pad_token_id in input_ids[:, [-1, 0]]:
            warning_once("We strongly recommend passing in an `attention_mask` since your input_ids may be padded.")

    def forward(self, input_ids, attention_mask=None):
        self.warn_if_padding_and_no_attention_mask(input_ids, attention_mask)
        h = torch.tanh(self.dense(self.embeddings(input_ids)))
        if attention_mask is None:
            return h.mean(1)
        return (h * attention_mask[..., None]).sum(1) / attention_mask.sum(1, keepdim=True).clamp(min=1)


# -- 6. transformers: greedy search, ids grow by cat, stop when no sentence is unfinished
#       (huggingface/transformers, generation/utils.py, greedy_search)
class GreedyLM(nn.Module):
    def __init__(self, vocab=7, eos=2, pad=0, max_length=9):
        super().__init__()
        self.eos, self.pad, self.max_length = eos, pad, max_length
        self.wte = nn.Embedding(vocab, 8)
        self.head = nn.Linear(8, vocab)

    @torch.no_grad()
    def forward(self, input_ids, bias):
        unfinished = input_ids.new_ones(input_ids.shape[0])
        scores = ()
        while True:
            logits = self.head(self.wte(input_ids).mean(1)) + bias
            next_tokens = torch.argmax(logits, dim=-1)
            next_tokens = next_tokens * unfinished + self.pad * (1 - unfinished)
            input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)
            scores += (logits.max(-1).values,)
            unfinished = unfinished.mul((next_tokens != self.eos).long())
            if unfinished.max() == 0 or input_ids.shape[-1] >= self.max_length:
                break
        return {"sequences": input_ids, "scores": scores}


# -- 7. Universal Transformer: adaptive computation time, while some position has not halted
#       (andreamad8/Universal-Transformer-Pytorch, models/UTransformer.py, ACT_basic)
class ACT(nn.Module):
    def __init__(self, hidden=8, max_hop=5):
        super().__init__()
        self.p = nn.Linear(hidden, 1)
        self.fn = nn.Linear(hidden, hidden)
        self.threshold, self.max_hop = 0.9, max_hop
        self.register_buffer("pos", torch.randn(max_hop, hidden) * 0.1, persistent=False)

    def forward(self, state):
        halting = torch.zeros(state.shape[:2])
        remainders, n_updates, previous = torch.zeros_like(halting), torch.zeros_like(halting), torch.zeros_like(state)
        step = 0
        while ((halting < self.threshold) & (n_updates < self.max_hop)).byte().any():
            state = state + self.pos[step]
            p = torch.sigmoid(self.p(state)).squeeze(-1)
            running = (halting < 1.0).float()
            new_halted = (halting + p * running > self.threshold).float() * running
            running = (halting + p * running <= self.threshold).float() * running
            halting = halting + p * running
            remainders = remainders + new_halted * (1 - halting)
            halting = halting + new_halted * remainders
            n_updates = n_updates + running + new_halted
            weight = (p * running + new_halted * remainders).unsqueeze(-1)
            state = torch.tanh(self.fn(state))
            previous = state * weight + previous * (1 - weight)
            step += 1
        return previous, (remainders, n_updates)


# -- 8. DETR: smoothed values in deques, fed by keywords, shown every few steps (facebookresearch/detr, util/misc.py)
class SmoothedValue:
    def __init__(self, window_size=5, fmt="{median:.4f} ({global_avg:.4f})"):
        self.deque = deque(maxlen=window_size)
        self.total, self.count, self.fmt = 0.0, 0, fmt

    def update(self, value, n=1):
        self.deque.append(value)
        self.count += n
        self.total += value * n

    @property
    def median(self):
        return torch.tensor(list(self.deque)).median().item()

    @property
    def global_avg(self):
        return self.total / self.count

    def __str__(self):
        return self.fmt.format(median=self.median, global_avg=self.global_avg)


class LogsSmoothed(nn.Module):
    def __init__(self, print_freq=4):
        super().__init__()
        self.fc = nn.Linear(8, 3)
        self.meters = defaultdict(SmoothedValue)
        self.seen, self.print_freq = 0, print_freq

    def update(self, **kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            assert isinstance(v, (float, int))
            self.meters[k].update(v)

    def forward(self, x, y):
        out = self.fc(x)
        loss = F.cross_entropy(out, y)
        self.update(loss=loss, class_error=100 - (out.argmax(-1) == y).float().mean() * 100, lr=0.1)
        if self.seen % self.print_freq == 0:
            print(f"[{self.seen}]", "  ".join(f"{name}: {meter}" for name, meter in self.meters.items()))
        self.seen += 1
        return loss


# -- 9. StyleGAN2: adaptive augmentation probability tuned by the sign of the discriminator
#       (rosinality/stylegan2-pytorch, non_leaking.py, AdaptiveAugment)
class AdaDiscriminator(nn.Module):
    def __init__(self, target=0.2, length=40, update_every=8):
        super().__init__()
        self.net = nn.Linear(8, 1)
        self.target, self.length, self.update_every = target, length, update_every
        self.ada_buf = torch.tensor([0.0, 0.0])
        self.r_t_stat, self.ada_p = 0, 0

    @torch.no_grad()
    def tune(self, real_pred):
        self.ada_buf += torch.tensor((torch.sign(real_pred).sum().item(), real_pred.shape[0]))
        if self.ada_buf[1] > self.update_every - 1:
            signs, n = self.ada_buf.tolist()
            self.r_t_stat = signs / n
            if self.r_t_stat > self.target:
                sign = 1
            else:
                sign = -1
            self.ada_p += sign * n / self.length
            self.ada_p = min(1, max(0, self.ada_p))
            self.ada_buf.mul_(0)
        return self.ada_p

    def forward(self, real):
        flip = torch.empty(real.shape[0], 1).bernoulli_(self.ada_p)
        pred = self.net(torch.where(flip > 0, real.flip(-1), real))
        self.tune(pred)
        return F.softplus(-pred).mean()


# -- 10. CycleGAN: a pool of earlier fakes, swapped by Python's random (junyanz/pytorch-CycleGAN-and-pix2pix, util/image_pool.py)
class ImagePool:
    def __init__(self, pool_size):
        self.pool_size, self.num_imgs, self.images = pool_size, 0, []

    def query(self, images):
        if self.pool_size == 0:
            return images
        chosen = []
        for image in images:
            image = torch.unsqueeze(image.data, 0)
            if self.num_imgs < self.pool_size:
                self.num_imgs = self.num_imgs + 1
                self.images.append(image)
                chosen.append(image)
            elif random.uniform(0, 1) > 0.5:
                where = random.randint(0, self.pool_size - 1)
                old = self.images[where].clone()
                self.images[where] = image
                chosen.append(old)
            else:
                chosen.append(image)
        return torch.cat(chosen, 0)


class PooledDiscriminator(nn.Module):
    def __init__(self, pool_size=5):
        super().__init__()
        self.G, self.D = nn.Linear(8, 8), nn.Linear(8, 1)
        self.pools = {"fake_B": ImagePool(pool_size)}

    def forward(self, real_A, real_B):
        fake_B = self.pools["fake_B"].query(self.G(real_A))
        loss_real = F.mse_loss(self.D(real_B), torch.ones(real_B.shape[0], 1))
        pred = self.D(fake_B.detach())
        return (loss_real + F.mse_loss(pred, torch.zeros_like(pred))) * 0.5


# -- 11. CutMix: numpy draws the share and the box (clovaai/CutMix-PyTorch, train.py, rand_bbox)
def rand_bbox(size, lam):
    W, H = size[2], size[3]
    cut = np.sqrt(1.0 - lam)
    cut_w, cut_h = int(W * cut), int(H * cut)
    cx, cy = np.random.randint(W), np.random.randint(H)
    x1, x2 = np.clip(cx - cut_w // 2, 0, W), np.clip(cx + cut_w // 2, 0, W)
    y1, y2 = np.clip(cy - cut_h // 2, 0, H), np.clip(cy + cut_h // 2, 0, H)
    return x1, y1, x2, y2


class CutMixLoss(nn.Module):
    def __init__(self, beta=1.0, prob=0.5):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 2, 3), nn.Linear(2, 3)
        self.beta, self.prob = beta, prob

    def net(self, x):
        return self.fc(self.conv(x).relu().mean((2, 3)))

    def forward(self, x, target):
        r = np.random.rand(1)
        if self.beta > 0 and r < self.prob:
            lam = np.random.beta(self.beta, self.beta)
            index = torch.randperm(x.size()[0])
            x1, y1, x2, y2 = rand_bbox(x.size(), lam)
            x = x.clone()
            x[:, :, x1:x2, y1:y2] = x[index, :, x1:x2, y1:y2]
            lam = 1 - ((x2 - x1) * (y2 - y1) / (x.size()[-1] * x.size()[-2]))
            out = self.net(x)
            return F.cross_entropy(out, target) * lam + F.cross_entropy(out, target[index]) * (1.0 - lam)
        return F.cross_entropy(self.net(x), target)


# -- 12. fairseq: a loss scaler that raises OverflowError, caught by the trainer, which logs and goes on
#        (facebookresearch/fairseq, optim/dynamic_loss_scaler.py and trainer.py, train_step)
class DynamicLossScaler:
    def __init__(self, scale=16.0, window=3, min_scale=0.5):
        self.loss_scale, self.window, self.min_scale = scale, window, min_scale
        self._iter, self._last_overflow = 0, -1

    def update(self):
        if (self._iter - self._last_overflow) % self.window == 0:
            self.loss_scale *= 2.0
        self._iter += 1

    def check_overflow(self, grad_norm):
        if grad_norm == float("inf") or grad_norm != grad_norm:
            self._last_overflow = self._iter
            self.loss_scale /= 2.0
            if self.loss_scale <= self.min_scale:
                raise FloatingPointError("Minimum loss scale reached. Your loss is probably exploding.")
            self._iter += 1
            raise OverflowError("setting loss scale to: " + str(self.loss_scale))


class ScaledStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.optim = {"scaler": DynamicLossScaler()}
        self.num_updates = 0

    def forward(self, x):
        scaler = self.optim["scaler"]
        loss = self.fc(x).pow(2).mean() * scaler.loss_scale
        grad_norm = loss.detach().sqrt() / scaler.loss_scale
        try:
            scaler.check_overflow(grad_norm)
            scaler.update()
            self.num_updates += 1
        except FloatingPointError:
            raise
        except OverflowError as e:
            logger.info(f"NOTE: gradient overflow detected, ignoring gradient, {e!s}")
            grad_norm = torch.tensor(0.0)
            loss = loss.detach()
        return loss, grad_norm


# -- 13. apex: layer-wise adaptive rates, norms compared with zero inside the step (NVIDIA/apex, apex/parallel/LARC.py)
def larc_step(params, grads, lr=0.1, trust=0.02, weight_decay=1e-3, eps=1e-8, clip=True):
    rates = []
    with torch.no_grad():
        for p, g in zip(params, grads):
            param_norm = torch.norm(p)
            grad_norm = torch.norm(g)
            if param_norm != 0 and grad_norm != 0:
                adaptive = trust * param_norm / (grad_norm + param_norm * weight_decay + eps)
                if clip:
                    adaptive = min(adaptive / lr, 1)
                g = (g + weight_decay * p) * adaptive
                rates.append(float(adaptive))
            p.add_(g, alpha=-lr)
    return params, rates


# -- 14. Early stopping with patience, telling each step (Bjarten/early-stopping-pytorch)
class EarlyStopping:
    def __init__(self, patience=2, delta=0.0, verbose=True, trace_func=print):
        self.patience, self.delta, self.verbose, self.trace_func = patience, delta, verbose, trace_func
        self.counter, self.best_score, self.early_stop, self.val_loss_min = 0, None, False, np.inf

    def __call__(self, val_loss):
        if np.isnan(val_loss):
            self.trace_func("Validation loss is NaN. Ignoring this epoch.")
            return
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
            self.save_checkpoint(val_loss)
        elif score < self.best_score + self.delta:
            self.counter += 1
            self.trace_func(f"EarlyStopping counter: {self.counter} out of {self.patience}")
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.save_checkpoint(val_loss)
            self.counter = 0

    def save_checkpoint(self, val_loss):
        if self.verbose:
            self.trace_func(
                f"Validation loss decreased ({self.val_loss_min:.3f} --> {val_loss:.3f}).  Saving model ..."
            )
        self.val_loss_min = val_loss


class Validates(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.callbacks = [EarlyStopping()]

    def forward(self, x, y):
        loss = F.mse_loss(self.fc(x).squeeze(-1), y)
        for callback in self.callbacks:
            callback(loss.item())
        stop = any(c.early_stop for c in self.callbacks)
        return loss, stop


# -- 15. latent diffusion: EMA with the count in a buffer, decay the smaller of a tensor and a tensor
#        (CompVis/latent-diffusion, ldm/modules/ema.py, LitEma)
class LitEma(nn.Module):
    def __init__(self, model, decay=0.3, use_num_updates=True):
        super().__init__()
        self.names = {}
        self.register_buffer("decay", torch.tensor(decay))
        self.register_buffer("num_updates", torch.tensor(0 if use_num_updates else -1, dtype=torch.int))
        for name, p in model.named_parameters():
            if p.requires_grad:
                self.names[name] = name.replace(".", "")
                self.register_buffer(self.names[name], p.clone().detach().data * 0.5)

    def forward(self, model):
        decay = self.decay
        if self.num_updates >= 0:
            self.num_updates += 1
            decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        with torch.no_grad():
            live, shadow = dict(model.named_parameters()), dict(self.named_buffers())
            for key in live:
                name = self.names[key]
                shadow[name].sub_((1.0 - decay) * (shadow[name] - live[key]))


class MeanTeacher(nn.Module):
    def __init__(self, use_num_updates):
        super().__init__()
        self.student = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
        self.ema = LitEma(self.student, use_num_updates=use_num_updates)

    def forward(self, x):
        out = self.student(x)
        self.ema(self.student)
        target = torch.tanh(F.linear(x, self.ema.get_buffer("0weight"), self.ema.get_buffer("0bias")))
        return F.mse_loss(out, target)


# -- 16. DQN: epsilon-greedy with a global step counter (pytorch/tutorials, reinforcement_q_learning.py, select_action)
EPS_START, EPS_END, EPS_DECAY = 0.9, 0.05, 4
steps_done = 0


class SelectsAction(nn.Module):
    def __init__(self, n_actions=3):
        super().__init__()
        self.n_actions = n_actions
        self.policy_net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, n_actions))

    def forward(self, state):
        global steps_done
        sample = random.random()
        eps_threshold = EPS_END + (EPS_START - EPS_END) * math.exp(-1.0 * steps_done / EPS_DECAY)
        steps_done += 1
        if sample > eps_threshold:
            with torch.no_grad():
                return self.policy_net(state).max(1).indices.view(1, 1), steps_done
        else:
            return torch.tensor([[random.randrange(self.n_actions)]], dtype=torch.long), steps_done


# -- 17. PPO: minibatches of an epoch until the approximate KL is too large (DLR-RM/stable-baselines3, ppo/ppo.py, train)
class PPOEpoch(nn.Module):
    def __init__(self, clip_range=0.2, target_kl=0.04, verbose=1):
        super().__init__()
        self.pi, self.vf = nn.Linear(6, 3), nn.Linear(6, 1)
        self.clip_range, self.target_kl, self.verbose = clip_range, target_kl, verbose

    def forward(self, obs, actions, old_log_prob, advantages, returns):
        continue_training, total = True, 0.0
        clip_fractions, approx_kl_divs = [], []
        for step, idx in enumerate(torch.arange(obs.shape[0]).split(4)):
            log_prob = self.pi(obs[idx]).log_softmax(-1).gather(1, actions[idx, None]).squeeze(1)
            adv = advantages[idx]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            ratio = torch.exp(log_prob - old_log_prob[idx])
            policy_loss = -torch.min(
                adv * ratio, adv * torch.clamp(ratio, 1 - self.clip_range, 1 + self.clip_range)
            ).mean()
            clip_fractions.append(torch.mean((torch.abs(ratio - 1) > self.clip_range).float()).item())
            loss = policy_loss + 0.5 * F.mse_loss(returns[idx], self.vf(obs[idx]).flatten())
            with torch.no_grad():
                log_ratio = log_prob - old_log_prob[idx]
                kl = torch.mean((torch.exp(log_ratio) - 1) - log_ratio).cpu().numpy()
                approx_kl_divs.append(kl)
            if self.target_kl is not None and kl > 1.5 * self.target_kl:
                continue_training = False
                if self.verbose >= 1:
                    print(f"Early stopping at step {step} due to reaching max kl: {kl:.2f}")
                break
            total = total + loss
        return total, continue_training, float(np.mean(clip_fractions)), len(approx_kl_divs)


# -- 18. YOLOv8: flat targets to a padded batch, sizes by unique counts, walrus on a sum
#        (ultralytics/ultralytics, utils/loss.py, v8DetectionLoss.preprocess)
def pad_targets(targets, batch_size, scale):
    nl, ne = targets.shape
    if nl == 0:
        out = torch.zeros(batch_size, 0, ne - 1)
    else:
        i = targets[:, 0]
        _, counts = i.unique(return_counts=True)
        counts = counts.to(dtype=torch.int32)
        out = torch.zeros(batch_size, counts.max(), ne - 1)
        for j in range(batch_size):
            matches = i == j
            if n := matches.sum():
                out[j, :n] = targets[matches, 1:]
        out[..., 1:5] = out[..., 1:5].mul_(scale)
    return out, out.sum(2, keepdim=True).gt_(0.0)


# -- 19. k-diffusion: Euler steps, noise added when sigma lies in a window (crowsonkb/k-diffusion, sampling.py, sample_euler)
class EulerSampler(nn.Module):
    def __init__(self, s_churn=2.0, s_tmin=0.3, s_tmax=2.0, s_noise=1.0):
        super().__init__()
        self.model = nn.Linear(8, 8)
        self.s_churn, self.s_tmin, self.s_tmax, self.s_noise = s_churn, s_tmin, s_tmax, s_noise
        self.trace = []

    @torch.no_grad()
    def forward(self, x, sigmas, callback=True):
        s_in = x.new_ones([x.shape[0]])
        for i in range(len(sigmas) - 1):
            if self.s_churn > 0:
                gamma = (
                    min(self.s_churn / (len(sigmas) - 1), 2**0.5 - 1)
                    if self.s_tmin <= sigmas[i] <= self.s_tmax
                    else 0.0
                )
                sigma_hat = sigmas[i] * (gamma + 1)
            else:
                gamma = 0
                sigma_hat = sigmas[i]
            if gamma > 0:
                eps = torch.randn_like(x) * self.s_noise
                x = x + eps * (sigma_hat**2 - sigmas[i] ** 2) ** 0.5
            denoised = self.model(x) / (1 + (sigma_hat * s_in)[:, None])
            d = (x - denoised) / sigma_hat
            if callback:
                self.trace.append({"i": i, "sigma": sigmas[i].item(), "denoised": denoised.mean()})
            x = x + d * (sigmas[i + 1] - sigma_hat)
        return x


# -- 20. DeepSeek-V3: tokens sorted by expert, counts through numpy, empty experts skipped
#        (deepseek-ai/DeepSeek-V3 remote code, modeling_deepseek.py, DeepseekV3MoE.moe_infer)
class MoEInfer(nn.Module):
    def __init__(self, n=5, k=2):
        super().__init__()
        self.gate = nn.Linear(8, n, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.SiLU()) for _ in range(n))
        self.k = k

    @torch.no_grad()
    def forward(self, x):
        topk_weight, topk_ids = self.gate(x).sigmoid().topk(self.k, dim=-1)
        cnts = topk_ids.new_zeros((topk_ids.shape[0], len(self.experts)))
        cnts.scatter_(1, topk_ids, 1)
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
        new_x = torch.empty_like(outs)
        new_x[idxs] = outs
        return new_x.view(*topk_ids.shape, -1).mul(topk_weight.unsqueeze(-1)).sum(dim=1)


# -- 21. Rotary embedding with dynamic NTK: frequencies grow with the longest position seen, and go back
#        (huggingface/transformers, models/llama, LlamaRotaryEmbedding._dynamic_frequency_update)
class DynamicRope(nn.Module):
    def __init__(self, dim=8, max_position_embeddings=8, base=100.0, factor=2.0):
        super().__init__()
        self.dim, self.base, self.factor = dim, base, factor
        self.max_seq_len_cached = self.original_max_seq_len = max_position_embeddings
        inv_freq = self.rope_init_fn(max_position_embeddings)
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self.original_inv_freq = self.inv_freq

    def rope_init_fn(self, seq_len):
        scale = self.factor * seq_len / self.original_max_seq_len - (self.factor - 1)
        base = self.base * scale ** (self.dim / (self.dim - 2))
        return 1.0 / (base ** (torch.arange(0, self.dim, 2, dtype=torch.int64).float() / self.dim))

    def _dynamic_frequency_update(self, position_ids):
        seq_len = torch.max(position_ids) + 1
        if seq_len > self.max_seq_len_cached:
            self.register_buffer("inv_freq", self.rope_init_fn(seq_len), persistent=False)
            self.max_seq_len_cached = seq_len
        if seq_len < self.original_max_seq_len and self.max_seq_len_cached > self.original_max_seq_len:
            self.register_buffer("inv_freq", self.original_inv_freq, persistent=False)
            self.max_seq_len_cached = self.original_max_seq_len

    @torch.no_grad()
    def forward(self, x, position_ids):
        self._dynamic_frequency_update(position_ids)
        freqs = position_ids[:, :, None].float() * self.inv_freq[None, None, :]
        emb = torch.cat((freqs, freqs), dim=-1)
        a, b = x.chunk(2, -1)
        return x * emb.cos() + torch.cat((-b, a), -1) * emb.sin()


# -- 22. Vector quantiser: EMA code book whose dead codes are replaced by samples of the batch
#        (lucidrains/vector-quantize-pytorch, expire_codes_ / replace / sample_vectors)
class EuclideanCodebook(nn.Module):
    def __init__(self, dim=4, size=6, decay=0.5, threshold_ema_dead_code=0.15):
        super().__init__()
        self.decay, self.threshold = decay, threshold_ema_dead_code
        self.register_buffer("cluster_size", torch.ones(size))
        self.register_buffer("embed", torch.randn(size, dim))
        self.register_buffer("embed_avg", self.embed.clone())

    def replace(self, samples, mask):
        num = mask.sum().item()
        if samples.shape[0] >= num:
            indices = torch.randperm(samples.shape[0])[:num]
        else:
            indices = torch.randint(0, samples.shape[0], (num,))
        self.embed.data[mask] = samples[indices]
        self.cluster_size.data[mask] = self.threshold
        self.embed_avg.data[mask] = samples[indices] * self.threshold

    def expire_codes_(self, samples):
        if self.threshold == 0:
            return
        expired = self.cluster_size < self.threshold
        if not torch.any(expired):
            return
        self.replace(samples, mask=expired)

    def forward(self, x):
        ind = (-torch.cdist(x.detach(), self.embed)).argmax(dim=-1)
        onehot = F.one_hot(ind, self.embed.shape[0]).type(x.dtype)
        quantize = self.embed[ind]
        if self.training:
            self.cluster_size.data.lerp_(onehot.sum(0), 1 - self.decay)
            self.embed_avg.data.lerp_(onehot.t() @ x.detach(), 1 - self.decay)
            self.embed.data.copy_(self.embed_avg / (self.cluster_size + 1e-5).unsqueeze(1))
            self.expire_codes_(x.detach())
        return x + (quantize - x).detach(), ind


# -- 23. Speech: greedy CTC decoding to a string (pytorch/audio, tutorials, GreedyCTCDecoder)
class GreedyCTCDecoder(nn.Module):
    def __init__(self, labels="-|abcde", blank=0):
        super().__init__()
        self.labels, self.blank = labels, blank
        self.proj = nn.Linear(6, len(labels))

    def forward(self, feats):
        emission = self.proj(feats).log_softmax(-1)
        transcripts = []
        for one in emission:
            indices = torch.argmax(one, dim=-1)
            indices = torch.unique_consecutive(indices, dim=-1)
            indices = [i for i in indices.tolist() if i != self.blank]
            joined = "".join([self.labels[i] for i in indices])
            transcripts.append(joined.replace("|", " ").strip().split())
        return emission, transcripts


# -- 24. Quantisation: half-quadratic search of the zero point, until the error no longer falls
#        (mobiusml/hqq, hqq/core/optimize.py, optimize_weights_proximal)
def hqq_zero(W, nbits=2, p=0.7, beta=10.0, kappa=1.01, iters=6, verbose=False):
    lo, hi = W.min(1, keepdim=True).values, W.max(1, keepdim=True).values
    top = 2**nbits - 1
    scale = (top / (hi - lo)).clamp(max=2e4)
    zero = -lo * scale
    best_error = 1e4
    for i in range(iters):
        W_q = torch.round(W * scale + zero).clamp(0, top)
        W_r = (W_q - zero) / scale
        gap = W - W_r
        W_e = torch.sign(gap) * F.relu(gap.abs() - (1.0 / beta) * gap.abs().pow(p - 1))
        zero = torch.mean(W_q - (W - W_e) * scale, dim=1, keepdim=True)
        beta *= kappa
        current_error = float(torch.abs(W - W_r).mean())
        if verbose:
            print(i, np.round(current_error, 4))
        if current_error < best_error:
            best_error = current_error
        else:
            break
    return zero, scale, best_error


# -- the data of the 12 calls
def _pairs():
    return [(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(12)]


def _images():
    return [(torch.randn(2, 3, 4, 4) * (1 + i % 3) + i % 2,) for i in range(12)]


def _losses():
    out = []
    for i in range(12):
        boxes = torch.randn(4, 4)
        if i in (4, 9):
            boxes[0, 0] = float("inf") if i == 4 else float("nan")
        out.append((torch.randn(4, 8), torch.randint(0, 5, (4,)), boxes))
    return out


def _proposals():
    return [(torch.randn(6, 8), torch.full((6,), 3) if i % 4 == 2 else torch.randint(0, 4, (6,))) for i in range(12)]


def _ids():
    out = []
    for i in range(12):
        ids = torch.randint(1, 20, (3, 6))
        if i in (3, 4, 8):
            ids[1, 4:] = 0
        out.append((ids, (ids != 0).float()) if i in (8, 10) else (ids,))
    return out


def _prompts():
    return [
        (torch.randint(3, 7, (3, 3)), torch.randn(7) + (torch.arange(7) == 2) * (4.0 if i % 3 == 0 else -1.0 + i % 3))
        for i in range(12)
    ]


def _states():
    return [(torch.randn(2, 3, 8) * (0.3 if i % 2 else 4.0),) for i in range(12)]


def _labelled():
    return [(torch.randn(5, 8) * (1 + i % 2), torch.randint(0, 3, (5,))) for i in range(12)]


def _reals():
    return [(torch.randn(4, 8) + (2.0 if i < 6 else -2.0) * torch.randn(8).sign(),) for i in range(12)]


def _pictures():
    return [(torch.randn(4, 1, 6, 6), torch.randint(0, 3, (4,))) for _ in range(12)]


def _overflows():
    out = []
    for i in range(12):
        x = torch.randn(4, 8)
        if i in (2, 6, 7):
            x[1, 3] = float("inf") if i != 7 else float("nan")
        out.append((x,))
    return out


def _steps():
    out = []
    for i in range(12):
        params = [torch.randn(4, 4), torch.zeros(4) if i % 3 == 0 else torch.randn(4), torch.randn(3)]
        grads = [
            torch.randn(4, 4) * (10.0 if i % 2 else 0.01),
            torch.randn(4),
            torch.zeros(3) if i % 4 == 1 else torch.randn(3),
        ]
        out.append((params, grads))
    return out


def _epochs():
    scales = [3.0, 2.0, 1.0, 2.5, 0.5, float("nan"), 0.2, 2.0, 2.0, 3.0, 0.01, 1.0]
    return [(torch.randn(6, 8) * s, torch.randn(6) * s) for s in scales]


def _rows():
    return [(torch.randn(4, 8),) for _ in range(12)]


def _rollouts():
    out = []
    for i in range(12):
        off = 0.1 if i % 3 == 0 else (0.35 if i % 3 == 1 else 1.5)
        out.append(
            (
                torch.randn(12, 6) * 0.3,
                torch.randint(0, 3, (12,)),
                -1.1 + off * torch.randn(12),
                torch.randn(12),
                torch.randn(12),
            )
        )
    return out


def _targets():
    out = []
    for i in range(12):
        n = 0 if i in (3, 7) else 3 + i % 4
        owner = torch.randint(0, 3, (n, 1)).float()
        if i == 5:
            owner = owner.clamp(max=1)
        out.append(
            (
                torch.cat([owner, torch.randint(1, 5, (n, 1)).float(), torch.rand(n, 4)], 1),
                3,
                torch.tensor([6.0, 4.0, 6.0, 4.0]),
            )
        )
    return out


def _sigmas():
    return [
        (torch.randn(3, 8), torch.cat([torch.linspace(2.5 - 0.2 * (i % 5), 0.2, 4), torch.zeros(1)]), i % 4 != 3)
        for i in range(12)
    ]


def _tokens():
    return [(torch.randn(5, 8) * (0.2 if i % 2 else 1.0) + (torch.randn(8) if i % 2 else 0.0),) for i in range(12)]


def _positions():
    return [
        (torch.randn(2, 5, 8), torch.arange(5)[None] + s * torch.ones(2, 1).long())
        for s in (0, 2, 6, 4, 9, 1, 7, 12, 3, 0, 5, 13)
    ]


def _vectors():
    return [(torch.randn(1 if i % 5 == 4 else 8, 4) * (0.1 if i % 3 else 2.0) + (i % 3),) for i in range(12)]


def _speech():
    return [(torch.randn(2, 9, 6) * (1 + i % 3),) for i in range(12)]


def _weights():
    return [
        (torch.randn(4, 8) * (1 + i % 3) + (torch.randn(4, 8).pow(3) if i % 2 else 0.0), 2 + i % 2) for i in range(12)
    ]


def hqq(W, nbits):
    return hqq_zero(W, nbits, verbose=bool(nbits == 3))


CASES = {
    "moco_ring": {"build": MoCo, "calls": _pairs, "source": "facebookresearch/moco: moco/builder.py"},
    "glow_actnorm": {"build": ActNorm, "calls": _images, "source": "rosinality/glow-pytorch: model.py ActNorm"},
    "losses_must_be_finite": {
        "build": LossDict,
        "calls": _losses,
        "source": "facebookresearch/detectron2: engine/train_loop.py write_metrics",
    },
    "fastrcnn_stats": {
        "build": BoxHead,
        "calls": _proposals,
        "source": "facebookresearch/detectron2: modeling/roi_heads/fast_rcnn.py _log_classification_stats",
    },
    "warns_of_padding": {
        "build": TextEncoder,
        "calls": _ids,
        "source": "huggingface/transformers: modeling_utils.py warn_if_padding_and_no_attention_mask",
    },
    "greedy_search": {
        "build": GreedyLM,
        "calls": _prompts,
        "source": "huggingface/transformers: generation/utils.py greedy_search",
    },
    "adaptive_halting": {
        "build": ACT,
        "calls": _states,
        "source": "andreamad8/Universal-Transformer-Pytorch: models/UTransformer.py ACT_basic",
    },
    "logs_smoothed": {
        "build": LogsSmoothed,
        "calls": _labelled,
        "source": "facebookresearch/detr: util/misc.py SmoothedValue, MetricLogger",
    },
    "adaptive_augment": {
        "build": AdaDiscriminator,
        "calls": _reals,
        "source": "rosinality/stylegan2-pytorch: non_leaking.py AdaptiveAugment",
    },
    "image_pool": {
        "build": PooledDiscriminator,
        "calls": _pairs,
        "source": "junyanz/pytorch-CycleGAN-and-pix2pix: util/image_pool.py",
    },
    "cutmix": {"build": CutMixLoss, "calls": _pictures, "source": "clovaai/CutMix-PyTorch: train.py"},
    "overflow_caught": {
        "build": ScaledStep,
        "calls": _overflows,
        "source": "facebookresearch/fairseq: optim/dynamic_loss_scaler.py, trainer.py",
    },
    "larc_step": {"build": lambda: larc_step, "calls": _steps, "source": "NVIDIA/apex: apex/parallel/LARC.py"},
    "early_stopping_callback": {"build": Validates, "calls": _epochs, "source": "Bjarten/early-stopping-pytorch"},
    "lit_ema": {
        "build": lambda: MeanTeacher(True),
        "calls": _rows,
        "source": "CompVis/latent-diffusion: ldm/modules/ema.py",
    },
    "dqn_select_action": {
        "build": SelectsAction,
        "calls": lambda: [(torch.randn(1, 4),) for _ in range(12)],
        "source": "pytorch/tutorials: reinforcement_q_learning.py select_action",
    },
    "ppo_epoch": {"build": PPOEpoch, "calls": _rollouts, "source": "DLR-RM/stable-baselines3: ppo/ppo.py train"},
    "yolo_pad_targets": {
        "build": lambda: pad_targets,
        "calls": _targets,
        "source": "ultralytics/ultralytics: utils/loss.py v8DetectionLoss.preprocess",
    },
    "euler_sampler": {
        "build": EulerSampler,
        "calls": _sigmas,
        "source": "crowsonkb/k-diffusion: sampling.py sample_euler",
    },
    "moe_infer": {
        "build": MoEInfer,
        "calls": _tokens,
        "source": "deepseek-ai/DeepSeek-V3: modeling_deepseek.py moe_infer",
    },
    "dynamic_rope": {
        "build": DynamicRope,
        "calls": _positions,
        "source": "huggingface/transformers: LlamaRotaryEmbedding._dynamic_frequency_update",
    },
    "expires_codes": {
        "build": EuclideanCodebook,
        "calls": _vectors,
        "source": "lucidrains/vector-quantize-pytorch: expire_codes_",
    },
    "ctc_greedy": {
        "build": GreedyCTCDecoder,
        "calls": _speech,
        "source": "pytorch/audio: GreedyCTCDecoder of the tutorials",
    },
    "hqq_zero_point": {"build": lambda: hqq, "calls": _weights, "source": "mobiusml/hqq: hqq/core/optimize.py"},
}
