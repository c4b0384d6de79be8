"""Numbers that leave the graph, and effects: meters, logs, histories, counters, guards - shapes taken from public code."""

import logging
import math
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger(__name__)


def xs(scale=3.0):
    return lambda: [(torch.randn(4, 8) * (1 + scale * (i % 2)),) for i in range(12)]


def labelled(classes=5, scale=3.0):
    return lambda: [(torch.randn(4, 8) * (1 + scale * (i % 2)), torch.randint(0, classes, (4,))) for i in range(12)]


def spoiled(bad=float("nan"), every=4):
    def make():
        out = []
        for i in range(12):
            x = torch.randn(4, 8) * (1 + i % 3)
            if i % every == every - 1:
                x[i % 4, 0] = bad
            out.append((x,))
        return out

    return make


# ---- a multi-task speech loss that reports numbers, or complains about them


class Reporter:
    def __init__(self, rows):
        self.rows = rows

    def report(self, ctc, att, acc, loss):
        self.rows.append({"ctc": ctc, "att": att, "acc": acc, "loss": loss})


class HybridSpeechLoss(nn.Module):
    LIMIT = 2.5

    def __init__(self, alpha=0.3):
        super().__init__()
        self.alpha = alpha
        self.att, self.ctc = nn.Linear(8, 5), nn.Linear(8, 5)
        self.rows = []
        self.reporter = Reporter(self.rows)

    def forward(self, x, y):
        pred = self.att(x)
        loss_att = F.cross_entropy(pred, y)
        self.acc = float((pred.argmax(1) == y).sum()) / float(y.numel())
        loss_ctc = F.cross_entropy(self.ctc(x), y)
        self.loss = self.alpha * loss_ctc + (1 - self.alpha) * loss_att
        loss_att_data, loss_ctc_data = float(loss_att), float(loss_ctc)
        loss_data = float(self.loss)
        if loss_data < self.LIMIT and not math.isnan(loss_data):
            self.reporter.report(loss_ctc_data, loss_att_data, self.acc, loss_data)
        else:
            log.warning("loss (=%.4f) is not correct", loss_data)
        return self.loss


# ---- a loss that returns a statistics object beside it, and adds it to a running one


@dataclass
class Statistics:
    loss: float = 0.0
    n_words: int = 0
    n_correct: int = 0

    def update(self, other):
        self.loss += other.loss
        self.n_words += other.n_words
        self.n_correct += other.n_correct

    def accuracy(self):
        return 100 * (self.n_correct / self.n_words)

    def ppl(self):
        return math.exp(min(self.loss / self.n_words, 100))


class TranslationLoss(nn.Module):
    def __init__(self, pad=0):
        super().__init__()
        self.generator = nn.Linear(8, 5)
        self.pad = pad
        self.total = Statistics()

    def _stats(self, loss, scores, target):
        pred = scores.max(1)[1]
        non_padding = target.ne(self.pad)
        num_correct = pred.eq(target).masked_select(non_padding).sum().item()
        return Statistics(loss, non_padding.sum().item(), num_correct)

    def forward(self, x, target):
        scores = F.log_softmax(self.generator(x), -1)
        loss = F.nll_loss(scores, target, ignore_index=self.pad, reduction="sum")
        stats = self._stats(loss.item(), scores, target)
        self.total.update(stats)
        log.info("acc: %6.2f; ppl: %5.2f", self.total.accuracy(), self.total.ppl())
        return loss / float(max(stats.n_words, 1)), stats


# ---- a detection layer: loss plus a dict of a dozen numbers, recall and precision in Python


class DetectionLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.box, self.conf = nn.Linear(8, 2), nn.Linear(8, 1)
        self.metrics = {}

    def forward(self, x, targets=None):
        box, conf = self.box(x).sigmoid(), self.conf(x).sigmoid().squeeze(-1)
        if targets is None:
            return torch.cat((box, conf[:, None]), -1)
        obj = targets > 0
        num_targets = int(obj.sum())
        num_correct = int(((conf > 0.5) & obj).sum())
        num_proposals = (conf > 0.5).sum().item()
        recall = num_correct / num_targets if num_targets else 1
        precision = num_correct / num_proposals if num_proposals else 0
        loss_xy = ((box - 0.5) ** 2 * obj[:, None]).sum()
        loss_conf = F.binary_cross_entropy(conf, obj.float())
        loss = loss_xy + loss_conf
        self.metrics = {
            "loss": loss.item(),
            "xy": loss_xy.item(),
            "conf": loss_conf.item(),
            "conf_obj": conf[obj].mean().item(),
            "recall": recall,
            "precision": precision,
        }
        return loss, self.metrics


# ---- a policy-gradient update over minibatches: lists of numbers, numpy means, early stop


class PolicyUpdate(nn.Module):
    def __init__(self, clip_range=0.2, target_kl=0.1):
        super().__init__()
        self.pi, self.vf = nn.Linear(8, 3), nn.Linear(8, 1)
        self.clip_range, self.target_kl = clip_range, target_kl
        self.n_updates, self.n_stopped = 0, 0

    def forward(self, obs, actions, old_log_prob, advantages, returns):
        pg_losses, value_losses, clip_fractions, approx_kl_divs, total = [], [], [], [], 0.0
        for part in (slice(0, 2), slice(2, 4)):
            dist = torch.log_softmax(self.pi(obs[part]), -1)
            log_prob = dist.gather(1, actions[part, None]).squeeze(1)
            ratio = torch.exp(log_prob - old_log_prob[part])
            adv = advantages[part]
            policy_loss = -torch.min(
                adv * ratio, adv * torch.clamp(ratio, 1 - self.clip_range, 1 + self.clip_range)
            ).mean()
            pg_losses.append(policy_loss.item())
            clip_fractions.append(torch.mean((torch.abs(ratio - 1) > self.clip_range).float()).item())
            value_loss = F.mse_loss(returns[part], self.vf(obs[part]).squeeze(-1))
            value_losses.append(value_loss.item())
            total = total + policy_loss + 0.5 * value_loss
            approx_kl_divs.append(torch.mean(old_log_prob[part] - log_prob).detach().cpu().numpy())
        if self.target_kl is not None and np.mean(approx_kl_divs) > 1.5 * self.target_kl:
            print(f"Early stopping at step {self.n_updates} due to reaching max kl: {np.mean(approx_kl_divs):.2f}")
            self.n_stopped += 1
        self.n_updates += 1
        return total, float(np.mean(pg_losses)), float(np.mean(value_losses)), float(np.mean(clip_fractions))


def policy_calls():
    return [
        (
            torch.randn(4, 8) * (1 + i % 2),
            torch.randint(0, 3, (4,)),
            torch.randn(4) * 0.3 - 1.1 + 0.5 * (i % 3 == 0),
            torch.randn(4),
            torch.randn(4),
        )
        for i in range(12)
    ]


# ---- a tracker of sums that adds and scales itself, decayed every step, best kept


class MetricsTracker(dict):
    def __add__(self, other):
        out = MetricsTracker(self)
        for k, v in other.items():
            out[k] = out.get(k, 0) + v
        return out

    def __mul__(self, alpha):
        return MetricsTracker({k: v * alpha for k, v in self.items()})

    def __str__(self):
        frames = self.get("frames", 1)
        return ", ".join(f"{k}={v / frames:.4g}" for k, v in sorted(self.items()) if k != "frames")


class TransducerStep(nn.Module):
    def __init__(self, reset_interval=5, log_interval=3):
        super().__init__()
        self.simple, self.pruned = nn.Linear(8, 5), nn.Linear(8, 5)
        self.reset_interval, self.log_interval = reset_interval, log_interval
        self.tot_loss = MetricsTracker()
        self.batch_idx_train, self.best_train_loss = 0, float("inf")

    def forward(self, x, y):
        self.batch_idx_train += 1
        simple_loss = F.cross_entropy(self.simple(x), y, reduction="sum")
        pruned_loss = F.cross_entropy(self.pruned(x), y, reduction="sum")
        loss = 0.5 * simple_loss + pruned_loss
        info = MetricsTracker()
        info["frames"] = (y + 1).sum().item()
        info["loss"] = loss.detach().cpu().item()
        info["simple_loss"] = simple_loss.detach().cpu().item()
        info["pruned_loss"] = pruned_loss.detach().cpu().item()
        self.tot_loss = (self.tot_loss * (1 - 1 / self.reset_interval)) + info
        if self.batch_idx_train % self.log_interval == 0:
            log.info(f"batch {self.batch_idx_train}, loss[{info}], tot_loss[{self.tot_loss}]")
        value = self.tot_loss["loss"] / self.tot_loss["frames"]
        if value < self.best_train_loss:
            self.best_train_loss = value
        return loss, info


# ---- a loss divided by a Python running mean of the number of positives


class DenseDetectorLoss(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.classes = classes
        self.head = nn.Linear(8, classes)
        self.loss_normalizer, self.loss_normalizer_momentum = 3.0, 0.9
        self.storage = {}

    def forward(self, x, gt):
        num_images = len(gt)
        pos_mask = (gt >= 0) & (gt != self.classes)
        num_pos = pos_mask.sum().item()
        self.storage["num_pos_anchors"] = num_pos / num_images
        self.loss_normalizer = self.loss_normalizer_momentum * self.loss_normalizer + (
            1 - self.loss_normalizer_momentum
        ) * max(num_pos, 1)
        target = F.one_hot(gt, self.classes + 1)[:, :-1].float()
        loss = F.binary_cross_entropy_with_logits(self.head(x), target, reduction="sum")
        return {"loss_cls": loss / self.loss_normalizer}


# ---- accuracies put into an event storage, only where there is something to divide by


class EventStorage:
    def __init__(self):
        self.latest, self.history = {}, defaultdict(list)

    def put_scalar(self, name, value):
        value = float(value)
        self.latest[name] = value
        self.history[name].append(value)


class BoxHead(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.cls = nn.Linear(8, classes + 1)
        self.storage = EventStorage()
        self.boxes = [self.storage]

    def _log_accuracy(self, logits, gt):
        num_instances = gt.numel()
        pred = logits.argmax(dim=1)
        bg = logits.shape[1] - 1
        fg = (gt >= 0) & (gt < bg)
        num_fg = fg.nonzero().numel()
        num_accurate = (pred == gt).nonzero().numel()
        fg_num_accurate = (pred[fg] == gt[fg]).nonzero().numel()
        num_false_negative = (pred[fg] == bg).nonzero().numel()
        if num_instances > 0:
            self.storage.put_scalar("box/cls_accuracy", num_accurate / num_instances)
            if num_fg > 0:
                self.storage.put_scalar("box/fg_cls_accuracy", fg_num_accurate / num_fg)
                self.storage.put_scalar("box/false_negative", num_false_negative / num_fg)

    def forward(self, x, gt):
        logits = self.cls(x)
        self._log_accuracy(logits, gt)
        return F.cross_entropy(logits, gt, reduction="mean")


def box_calls():
    return [(torch.randn(4, 8), torch.full((4,), 4) if i % 3 == 2 else torch.randint(0, 5, (4,))) for i in range(12)]


# ---- a miner that leaves its distances in attributes


class TripletMiner(nn.Module):
    def __init__(self, margin=0.4):
        super().__init__()
        self.embed = nn.Linear(8, 6)
        self.margin = margin
        self.pos_pair_dist = self.neg_pair_dist = self.avg_triplet_margin = 0.0

    def forward(self, anchor, positive, negative):
        a, p, n = self.embed(anchor), self.embed(positive), self.embed(negative)
        ap, an = F.pairwise_distance(a, p), F.pairwise_distance(a, n)
        triplet_margin = an - ap
        self.pos_pair_dist = torch.mean(ap).item()
        self.neg_pair_dist = torch.mean(an).item()
        self.avg_triplet_margin = torch.mean(triplet_margin).item()
        keep = triplet_margin <= self.margin
        self.num_triplets = int(keep.sum())
        if self.num_triplets == 0:
            return (ap * 0).sum()
        return (F.relu(self.margin - triplet_margin) * keep).sum() / self.num_triplets


def triplet_calls():
    return [
        (a, a + (1.0 if i % 3 else 0.05) * torch.randn(4, 8), torch.randn(4, 8) * (1 + 8 * (i % 2)))
        for i in range(12)
        for a in [torch.randn(4, 8)]
    ]


# ---- losses logged by quartile of the timestep they were drawn at


class TimestepLosses(nn.Module):
    def __init__(self, steps=100):
        super().__init__()
        self.steps = steps
        self.net = nn.Linear(8, 8)
        self.sums, self.counts = defaultdict(float), defaultdict(int)

    def logkv_mean(self, key, value):
        old, n = self.sums[key], self.counts[key]
        self.sums[key] = old * n / (n + 1) + float(value) / (n + 1)
        self.counts[key] = n + 1

    def forward(self, x, t):
        err = (self.net(x) * (1 - t[:, None] / self.steps) - x) ** 2
        losses = {"mse": err.mean(1), "vb": err.amax(1) * 0.1}
        for key, values in losses.items():
            self.logkv_mean(key, values.mean().item())
            for sub_t, sub_loss in zip(t.cpu().numpy(), values.detach().cpu().numpy()):
                quartile = int(4 * sub_t / self.steps)
                self.logkv_mean(f"{key}_q{quartile}", sub_loss)
        return (losses["mse"] + losses["vb"]).mean()


# ---- preference training: metrics into a dict of dicts of lists, averaged into a log line


class PreferenceStep(nn.Module):
    def __init__(self, beta=0.5, logging_steps=4):
        super().__init__()
        self.score = nn.Linear(8, 1)
        self.beta, self.logging_steps, self.global_step = beta, logging_steps, 0
        self.stored_metrics = defaultdict(lambda: defaultdict(list))

    def store_metrics(self, metrics, train_eval="train"):
        for key, value in metrics.items():
            self.stored_metrics[train_eval][key].append(value)

    def forward(self, chosen, rejected):
        prefix = "" if self.training else "eval_"
        up, down = self.beta * self.score(chosen).squeeze(-1), self.beta * self.score(rejected).squeeze(-1)
        losses = -F.logsigmoid(up - down)
        accuracies = (up > down).float()
        metrics = {
            f"{prefix}rewards/chosen": up.mean().item(),
            f"{prefix}rewards/rejected": down.mean().item(),
            f"{prefix}rewards/accuracies": accuracies.mean().item(),
            f"{prefix}rewards/margins": (up - down).mean().item(),
        }
        self.store_metrics(metrics, train_eval="train" if self.training else "eval")
        self.global_step += 1
        if self.global_step % self.logging_steps == 0:
            logs = {k: torch.tensor(v).mean().item() for k, v in self.stored_metrics["train"].items()}
            log.info("step %d: %s", self.global_step, {k: round(v, 4) for k, v in logs.items()})
            del self.stored_metrics["train"]
        return losses.mean(), metrics


def pair_calls():
    return [(torch.randn(4, 8) * (1 + i % 3), torch.randn(4, 8)) for i in range(12)]


# ---- nested statistics, tensors and numbers mixed, flattened with slashes


def flatten_dict(d, parent="", sep="/"):
    items = []
    for k, v in d.items():
        name = parent + sep + k if parent else k
        if isinstance(v, dict):
            items.extend(flatten_dict(v, name, sep).items())
        else:
            items.append((name, v))
    return dict(items)


def tensor_stats(xs, mask, n):
    mean = (xs * mask).sum() / n
    return dict(
        mean=mean.item(),
        min=torch.where(mask.bool(), xs, np.inf).min().item(),
        max=torch.where(mask.bool(), xs, -np.inf).max().item(),
        std=torch.sqrt((((xs - mean) * mask) ** 2).sum() / n),
    )


class ValueLoss(nn.Module):
    def __init__(self, cliprange=0.2):
        super().__init__()
        self.v_head = nn.Linear(8, 1)
        self.cliprange = cliprange

    def forward(self, x, old_values, returns, mask):
        values = self.v_head(x).squeeze(-1)
        clipped = torch.clamp(values, old_values - self.cliprange, old_values + self.cliprange)
        n = mask.sum()
        l1, l2 = (values - returns) ** 2, (clipped - returns) ** 2
        loss = 0.5 * torch.sum(torch.max(l1, l2) * mask) / n
        stats = dict(
            losses=dict(total_loss=loss.item()),
            values=dict(
                tensor_stats(values.detach(), mask, n), clipfrac=(torch.sum((l2 > l1).float() * mask) / n).item()
            ),
            returns=tensor_stats(returns, mask, n),
            padding_percentage=float(1 - n / mask.numel()),
        )
        return loss, flatten_dict(stats)


def value_calls():
    return [
        (
            torch.randn(4, 8) * (1 + i % 2),
            torch.randn(4),
            torch.randn(4),
            torch.tensor([1.0, 1.0, float(i % 2), float(i % 3 > 0)]),
        )
        for i in range(12)
    ]


# ---- the progress-bar postfix dictionary, printed now and then


class PretrainIteration(nn.Module):
    def __init__(self, log_freq=5):
        super().__init__()
        self.next_sent, self.mask_lm = nn.Linear(8, 2), nn.Linear(8, 5)
        self.log_freq = log_freq
        self.i, self.avg_loss, self.total_correct, self.total_element = 0, 0.0, 0, 0

    def write(self, message):
        print(message)

    def forward(self, x, is_next, label):
        next_output = self.next_sent(x)
        next_loss = F.cross_entropy(next_output, is_next)
        mask_loss = F.cross_entropy(self.mask_lm(x), label, ignore_index=0)
        loss = next_loss + mask_loss
        correct = next_output.argmax(dim=-1).eq(is_next).sum().item()
        self.avg_loss += loss.item()
        self.total_correct += correct
        self.total_element += is_next.nelement()
        post_fix = {
            "iter": "[%d/%d]" % (self.i, 12),
            "avg_loss": round(self.avg_loss / (self.i + 1), 3),
            "avg_acc": self.total_correct / self.total_element * 100,
            "loss": round(loss.item(), 3),
        }
        if self.i % self.log_freq == 0:
            self.write(str(post_fix))
        self.i += 1
        return loss


def pretrain_calls():
    return [(torch.randn(4, 8), torch.randint(0, 2, (4,)), torch.randint(1, 5, (4,))) for _ in range(12)]


# ---- smoothed values in deques, updated by keyword, tensors or numbers


class SmoothedValue:
    def __init__(self, window_size=4, fmt="{median:.4f} ({global_avg:.4f})"):
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


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **kwargs):
        for k, v in kwargs.items():
            if isinstance(v, torch.Tensor):
                v = v.item()
            assert isinstance(v, (float, int))
            self.meters[k].update(v)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter}" for name, meter in self.meters.items())


class SetCriterionStep(nn.Module):
    def __init__(self, print_freq=3):
        super().__init__()
        self.head = nn.Linear(8, 5)
        self.weight_dict = {"loss_ce": 1.0, "loss_l1": 0.5}
        self.metric_logger = MetricLogger()
        self.print_freq, self.i = print_freq, 0

    def forward(self, x, y):
        out = self.head(x)
        loss_dict = {
            "loss_ce": F.cross_entropy(out, y),
            "loss_l1": out.abs().mean(),
            "class_error": 100 - (out.argmax(-1) == y).float().mean() * 100,
        }
        losses = sum(loss_dict[k] * self.weight_dict[k] for k in loss_dict if k in self.weight_dict)
        loss_value = losses.item()
        if not math.isfinite(loss_value):
            raise RuntimeError(f"Loss is {loss_value}, stopping training")
        self.metric_logger.update(loss=loss_value, **loss_dict)
        self.metric_logger.update(lr=0.1)
        if self.i % self.print_freq == 0:
            print(f"[{self.i}] {self.metric_logger}")
        self.i += 1
        return losses


# ---- a confusion matrix made on the first call, and its per-class lists in a log line


class ConfusionMatrix:
    def __init__(self, num_classes):
        self.num_classes, self.mat = num_classes, None

    def update(self, a, b):
        n = self.num_classes
        if self.mat is None:
            self.mat = torch.zeros((n, n), dtype=torch.int64, device=a.device)
        with torch.no_grad():
            k = (a >= 0) & (a < n)
            inds = n * a[k].to(torch.int64) + b[k]
            self.mat += torch.bincount(inds, minlength=n**2).reshape(n, n)

    def compute(self):
        h = self.mat.float()
        return torch.diag(h).sum() / h.sum(), torch.diag(h) / h.sum(1)

    def __str__(self):
        acc_global, acc = self.compute()
        return "global correct: {:.1f}\naverage row correct: {}".format(
            acc_global.item() * 100, ["{:.1f}".format(i) for i in (acc * 100).tolist()]
        )


class SegmentationEval(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.head = nn.Linear(8, classes)
        self.confmat = ConfusionMatrix(classes)
        self.seen = 0

    def forward(self, x, target):
        output = self.head(x)
        self.confmat.update(target.flatten(), output.argmax(1).flatten())
        self.seen += x.size(0)
        if self.seen >= 16:
            log.info(str(self.confmat))
            self.seen = 0
        return output, self.confmat.mat.sum().item()


def seg_calls():
    return [
        (torch.randn(4, 8), torch.where(torch.rand(4) < 0.2, torch.tensor(255), torch.randint(0, 3, (4,))))
        for _ in range(12)
    ]


# ---- a factorisation that warns of the jitter it added, and counts the NaNs it refuses


class SafeCholesky(nn.Module):
    def __init__(self, slack=5e-3, max_tries=3):
        super().__init__()
        self.embed = nn.Linear(8, 8)
        self.slack, self.jitter, self.max_tries = slack, 1e-4, max_tries

    def forward(self, x):
        h = self.embed(x)
        A = h @ h.T - self.slack * torch.eye(len(x))
        L, info = torch.linalg.cholesky_ex(A)
        if not torch.any(info):
            return L
        isnan = torch.isnan(A)
        if isnan.any():
            raise ValueError(
                f"cholesky: {isnan.sum().item()} of {A.numel()} elements of the {tuple(A.shape)} tensor are NaN."
            )
        previous = 0.0
        for i in range(self.max_tries):
            new = self.jitter * (10**i)
            A = A + (new - previous) * torch.eye(len(x))
            previous = new
            warnings.warn(f"A not p.d., added jitter of {new:.1e} to the diagonal", RuntimeWarning)
            L, info = torch.linalg.cholesky_ex(A)
            if not torch.any(info):
                return L
        raise ValueError(f"Matrix not positive definite after repeatedly adding jitter up to {new:.1e}.")


def cholesky_calls():
    out = []
    for i in range(12):
        x = torch.randn(4, 8)
        if i % 3 == 1:
            x[1] = x[0]
        if i in (6, 11):
            x[2, 3] = float("nan")
        out.append((x,))
    return out


# ---- a detector hung on every submodule as a forward hook, speaking once


class NanDetector:
    def __init__(self, model):
        self.has_printed = False
        self.found = model.found
        for name, mod in model.named_modules():
            if name:
                mod.probe_name = name
                mod.register_forward_hook(self.hook)

    def detect(self, tensor, name):
        err = None
        if torch.is_floating_point(tensor) and tensor.numel() >= 2:
            with torch.no_grad():
                if torch.isnan(tensor).any():
                    err = "NaN"
                elif torch.isinf(tensor).any():
                    err = "Inf"
        if err is not None:
            err = f"{err} detected in output of {name}, shape: {tuple(tensor.shape)}, forward"
        return err

    def hook(self, module, inp, output):
        if not self.has_printed:
            err = self.detect(output, module.probe_name)
            if err is not None:
                err += f" input max: {inp[0].max().item()}, input min: {inp[0].min().item()}"
                log.warning(err)
                self.found.append(module.probe_name)
                self.has_printed = True


class WatchedStack(nn.Module):
    def __init__(self):
        super().__init__()
        self.found = []
        self.first, self.act, self.last = nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)
        self.detector = NanDetector(self)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


# ---- ranges checked before the loss; the tensors are written into the message as they are


def check_and_warn_range(tensor, low, high, name):
    actual_min, actual_max = tensor.min(), tensor.max()
    if actual_min < low or actual_max > high:
        warnings.warn(f"{name} must be in {low}..{high} range, but it ranges {actual_min:.4f}..{actual_max:.4f}")


class PerceptualLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.register_buffer("mean", torch.full((8,), 0.45))

    def forward(self, inputs, target):
        check_and_warn_range(inputs, 0, 1, "PerceptualLoss inputs")
        check_and_warn_range(target, 0, 1, "PerceptualLoss target")
        features = self.net(inputs - self.mean)
        features_target = self.net(target - self.mean)
        return F.mse_loss(features, features_target)


def range_calls():
    return [
        (torch.rand(4, 8) * (1.5 if i % 3 == 1 else 1), torch.rand(4, 8) - (0.5 if i % 4 == 2 else 0))
        for i in range(12)
    ]


# ---- experts run only where chosen, choices counted in Python and shown every interval


class CountedExperts(nn.Module):
    def __init__(self, n=4, top=2, log_interval=4):
        super().__init__()
        self.n, self.top, self.log_interval, self.count = n, top, log_interval, 0
        self.gate = nn.Linear(8, n, bias=False)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(n))
        self.shared = nn.Linear(8, 8)
        self.chosen = Counter()

    def forward(self, x):
        weights, indices = self.gate(x).softmax(-1).topk(self.top, dim=-1)
        y = torch.zeros_like(x)
        counts = torch.bincount(indices.flatten(), minlength=self.n).tolist()
        self.chosen.update(dict(enumerate(counts)))
        if self.count % self.log_interval == 0:
            print("counts:", counts, "most used:", self.chosen.most_common(1)[0][0])
        self.count += 1
        for i, expert in enumerate(self.experts):
            if counts[i] == 0:
                continue
            idx, top = torch.where(indices == i)
            y[idx] += expert(x[idx]) * weights[idx, top, None]
        return y + self.shared(x)


# ---- patience: best score None at first, counters and messages


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.counter = patience, 0
        self.best_score, self.early_stop, self.val_loss_min = None, False, np.inf

    def __call__(self, val_loss):
        score = -val_loss
        if self.best_score is None:
            self.best_score = score
            self.save(val_loss)
        elif score < self.best_score:
            self.counter += 1
            print(f"EarlyStopping counter: {self.counter} out of {self.patience}")
            if self.counter >= self.patience:
                self.early_stop = True
        else:
            self.best_score = score
            self.save(val_loss)
            self.counter = 0

    def save(self, val_loss):
        print(f"Validation loss decreased ({self.val_loss_min:.4f} --> {val_loss:.4f}).  Saving model ...")
        self.val_loss_min = val_loss


class ValidationStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 1)
        self.stopper = EarlyStopping(patience=3)

    def forward(self, x, y):
        loss = F.mse_loss(self.fc(x).squeeze(-1), y)
        self.stopper(loss.item())
        return loss, self.stopper.early_stop, self.stopper.counter


def validation_calls():
    return [(torch.randn(4, 8) * (2.0 - 0.15 * i if i < 7 else 2.0), torch.randn(4)) for i in range(12)]


# ---- a loss scaler in Python: overflow raised, caught, counted, scale halved


class DynamicLossScaler:
    def __init__(self, init_scale=16.0, window=3, minimum=1.0):
        self.loss_scale, self.window, self.minimum = init_scale, window, minimum
        self._iter, self._last_overflow = 0, -1

    def check_overflow(self, norm):
        if norm == float("inf") or norm != norm or norm > 400:
            self._last_overflow = self._iter
            previous = self.loss_scale
            self.loss_scale /= 2.0
            self._iter += 1
            if self.loss_scale <= self.minimum:
                self.loss_scale = previous
                raise FloatingPointError(
                    f"Minimum loss scale reached ({self.minimum}). Your loss is probably exploding."
                )
            raise OverflowError("setting loss scale to: " + str(self.loss_scale))

    def update(self):
        if (self._iter - self._last_overflow) % self.window == 0:
            self.loss_scale *= 2.0
        self._iter += 1


class ScaledStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.scaler = DynamicLossScaler()
        self.num_skipped = 0

    def forward(self, x):
        out = self.fc(x).relu() * self.scaler.loss_scale
        try:
            self.scaler.check_overflow(out.norm().item())
        except OverflowError as e:
            self.num_skipped += 1
            log.info(f"NOTE: overflow detected, {e}")
            return None
        scale = self.scaler.loss_scale
        self.scaler.update()
        return out.pow(2).mean() / scale**2, scale


def overflow_calls():
    return [(torch.randn(4, 8) * (12.0 if i in (2, 5, 6, 9, 10, 11) else 1.0),) for i in range(12)]


# ---- class names looked up by the predicted number, per-example losses kept one by one


class NamedClasses(nn.Module):
    def __init__(self):
        super().__init__()
        self.class_list = ["neg", "neutral", "pos"]
        self.fc = nn.Linear(8, 3)
        self.local_metrics = {}

    def record_local_metric(self, name, values):
        self.local_metrics.setdefault(name, []).extend(values)

    def forward(self, x, labels):
        scores = self.fc(x)
        loss = F.cross_entropy(scores, labels, reduction="none")
        self.record_local_metric("loss", loss.tolist())
        probs = F.softmax(scores, dim=1)
        prediction = torch.max(scores.cpu(), 1)[1].tolist()
        preds = [self.class_list[i] for i in prediction]
        truth = [self.class_list[int(i)] for i in labels]
        for name in self.class_list:
            hits = [float(p == t == name) for p, t in zip(preds, truth) if t == name]
            if hits:
                self.record_local_metric(f"class_{name}_recall", hits)
        shown = [f"{p} ({round(probs[i, j].item(), 2)})" for i, (p, j) in enumerate(zip(preds, prediction))]
        return loss.mean(), shown


# ---- a dict of losses, tensors or lists, summed by name and turned into numbers in place


class ParsesLosses(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.cls = nn.Linear(8, 3)

    def losses(self, x, y):
        per_stage = []
        for stage in self.stages:
            x = stage(x).relu()
            per_stage.append(x.pow(2).mean(1))
        logits = self.cls(x)
        return {
            "loss_stage": per_stage,
            "loss_cls": F.cross_entropy(logits, y, reduction="none"),
            "acc": (logits.argmax(1) == y).float() * 100,
        }

    def forward(self, x, y):
        log_vars = OrderedDict()
        for name, value in self.losses(x, y).items():
            if isinstance(value, torch.Tensor):
                log_vars[name] = value.mean()
            elif isinstance(value, list):
                log_vars[name] = sum(_loss.mean() for _loss in value)
            else:
                raise TypeError(f"{name} is not a tensor or list of tensors")
        loss = sum(v for k, v in log_vars.items() if "loss" in k)
        log_vars["loss"] = loss
        for name, value in log_vars.items():
            log_vars[name] = value.item()
        return dict(loss=loss, log_vars=log_vars, num_samples=len(y))


# ---- debug layers between the others, printing what passes through every few calls


class Debug(nn.Module):
    def __init__(self, name, every=3):
        super().__init__()
        self.name, self.every, self.calls = name, every, 0

    def forward(self, x):
        if self.calls % self.every == 0:
            print(
                "{} mean {:.2f} {:.2f} std {:.2f} norm {:.2f} zeros {:d}".format(
                    self.name,
                    x.mean(dim=0).abs().mean().item(),
                    x.mean().item(),
                    x.std().item(),
                    x.norm().item(),
                    int((x == 0).sum()),
                )
            )
        self.calls += 1
        return x


def debugged_stack():
    return nn.Sequential(nn.Linear(8, 8), Debug("fc1"), nn.ReLU(), Debug("relu", every=2), nn.Linear(8, 4))


# ---- a clip value from the percentile of every norm seen so far


class PercentileClip(nn.Module):
    def __init__(self, percentile=60):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.percentile, self.clipped = percentile, 0
        self.norm_history = []

    def forward(self, x):
        h = self.fc(x)
        total = 0.0
        for row in h.detach():
            total += row.norm(2).item() ** 2
        norm = total**0.5
        self.norm_history.append(norm)
        clip_value = float(np.percentile(self.norm_history, self.percentile))
        if norm > clip_value:
            self.clipped += 1
            h = h * (clip_value / (norm + 1e-6))
        return h


CASES = {
    "hybrid_speech_loss": {
        "build": HybridSpeechLoss,
        "calls": labelled(scale=9.0),
        "source": "espnet/espnet espnet/nets/pytorch_backend/e2e_asr_transformer.py",
    },
    "translation_statistics": {
        "build": TranslationLoss,
        "calls": labelled(),
        "source": "OpenNMT/OpenNMT-py onmt/utils/loss.py, onmt/utils/statistics.py",
    },
    "detection_metrics": {
        "build": DetectionLayer,
        "calls": lambda: [
            (torch.randn(4, 8) * (1 + i % 3), torch.randint(0, 2, (4,)) * (i % 4 != 3)) for i in range(12)
        ],
        "source": "eriklindernoren/PyTorch-YOLOv3 models.py",
    },
    "policy_update": {
        "build": PolicyUpdate,
        "calls": policy_calls,
        "source": "DLR-RM/stable-baselines3 stable_baselines3/ppo/ppo.py",
    },
    "metrics_tracker": {
        "build": TransducerStep,
        "calls": labelled(),
        "source": "k2-fsa/icefall egs/librispeech/ASR/pruned_transducer_stateless5/train.py",
    },
    "loss_normalizer": {
        "build": DenseDetectorLoss,
        "calls": labelled(),
        "source": "facebookresearch/detectron2 detectron2/modeling/meta_arch/retinanet.py",
    },
    "box_head_storage": {
        "build": BoxHead,
        "calls": box_calls,
        "source": "facebookresearch/detectron2 detectron2/modeling/roi_heads/fast_rcnn.py",
    },
    "triplet_miner": {
        "build": TripletMiner,
        "calls": triplet_calls,
        "source": "KevinMusgrave/pytorch-metric-learning src/pytorch_metric_learning/miners/triplet_margin_miner.py",
    },
    "timestep_quartiles": {
        "build": TimestepLosses,
        "calls": lambda: [(torch.randn(4, 8), torch.randint(0, 100, (4,))) for _ in range(12)],
        "source": "openai/guided-diffusion guided_diffusion/train_util.py",
    },
    "preference_metrics": {
        "build": PreferenceStep,
        "calls": pair_calls,
        "source": "huggingface/trl trl/trainer/cpo_trainer.py",
    },
    "nested_stats": {"build": ValueLoss, "calls": value_calls, "source": "CarperAI/trlx trlx/models/modeling_ppo.py"},
    "postfix_writer": {
        "build": PretrainIteration,
        "calls": pretrain_calls,
        "source": "codertimo/BERT-pytorch bert_pytorch/trainer/pretrain.py",
    },
    "smoothed_values": {"build": SetCriterionStep, "calls": labelled(), "source": "facebookresearch/detr util/misc.py"},
    "confusion_matrix": {
        "build": SegmentationEval,
        "calls": seg_calls,
        "source": "pytorch/vision references/segmentation/utils.py",
    },
    "safe_cholesky": {
        "build": SafeCholesky,
        "calls": cholesky_calls,
        "source": "cornellius-gp/linear_operator linear_operator/utils/cholesky.py",
    },
    "nan_detector_hooks": {
        "build": WatchedStack,
        "calls": spoiled(),
        "source": "facebookresearch/fairseq fairseq/nan_detector.py",
    },
    "range_warnings": {
        "build": PerceptualLoss,
        "calls": range_calls,
        "source": "advimman/lama saicinpainting/utils.py",
    },
    "counted_experts": {
        "build": CountedExperts,
        "calls": xs(),
        "source": "KappaBarbarosa/DeepSeekHPN src/modules/layer/deepseek_moe.py",
    },
    "early_stopping": {
        "build": ValidationStep,
        "calls": validation_calls,
        "source": "Bjarten/early-stopping-pytorch pytorchtools.py",
    },
    "loss_scaler": {
        "build": ScaledStep,
        "calls": overflow_calls,
        "source": "facebookresearch/fairseq fairseq/optim/dynamic_loss_scaler.py",
    },
    "named_classes": {
        "build": NamedClasses,
        "calls": labelled(classes=3),
        "source": "facebookresearch/ParlAI parlai/core/torch_classifier_agent.py",
    },
    "parse_losses": {
        "build": ParsesLosses,
        "calls": labelled(classes=3),
        "source": "open-mmlab/mmdetection mmdet/models/detectors/base.py",
    },
    "debug_layers": {"build": debugged_stack, "calls": xs(), "source": "Vermeille/Torchelie torchelie/nn/debug.py"},
    "percentile_clip": {"build": PercentileClip, "calls": xs(), "source": "pseeth/autoclip autoclip.py"},
}
