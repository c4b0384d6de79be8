"""What libraries write: gates, anchors, boxes, steps that are tried, samplers that remember.

Written from memory, after what each names as its source, by somebody who did not know what this package can do.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict

import torch
import torch.nn.functional as F
from torch import nn

logger = log = logging.getLogger(__name__)


class Top1Gate(nn.Module):
    def __init__(self, dim=8, num_experts=3, capacity_factor=1.5, min_capacity=2):
        super().__init__()
        self.wg = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, dim)) for _ in range(num_experts)
        )
        self.capacity_factor, self.min_capacity = capacity_factor, min_capacity
        self.exp_counts = None
        self.dropped_tokens = 0

    def _capacity(self, gates):
        return max(math.ceil(gates.shape[0] / gates.shape[1] * self.capacity_factor), self.min_capacity)

    def forward(self, x):
        gates = F.softmax(self.wg(x), dim=1)
        capacity = self._capacity(gates)
        indices = torch.argmax(gates, dim=1)
        mask1 = F.one_hot(indices, num_classes=gates.shape[1])
        self.exp_counts = torch.sum(mask1, dim=0).detach().tolist()
        l_aux = torch.sum(gates.mean(0) * mask1.float().mean(0)) * gates.shape[1]
        locations = torch.cumsum(mask1, dim=0) - 1
        mask1 = mask1 * torch.lt(locations, capacity)
        dropped = x.shape[0] - int(mask1.sum())
        if dropped > 0:
            self.dropped_tokens += dropped
            logger.warning(f"dropping {dropped} of {x.shape[0]} tokens (capacity {capacity}, counts {self.exp_counts})")
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            idx = torch.where(mask1[:, e])[0]
            if idx.numel() == 0:
                continue
            out = out.index_add(0, idx, expert(x[idx]) * gates[idx, e].unsqueeze(-1))
        return out, l_aux


def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (rb - lt).clamp(min=0).prod(-1)
    area = lambda t: (t[:, 2:] - t[:, :2]).clamp(min=0).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter).clamp(min=1e-6)


class RetinaLoss(nn.Module):
    def __init__(self, dim=8, num_classes=3):
        super().__init__()
        self.cls_head, self.reg_head = nn.Linear(dim, num_classes), nn.Linear(dim, 4)
        grid = torch.stack(torch.meshgrid(torch.arange(3.0), torch.arange(3.0), indexing="ij"), -1).view(-1, 2)
        self.register_buffer("anchors", torch.cat([grid * 2, grid * 2 + 3], 1))
        self.loss_normalizer, self.momentum = 5.0, 0.9

    def label_anchors(self, gt):
        if gt["boxes"].numel() == 0:
            return torch.full((len(self.anchors),), -1)
        iou, idx = box_iou(gt["boxes"], self.anchors).max(dim=0)
        idx = idx.clone()
        idx[iou < 0.3] = -1
        idx[(iou >= 0.3) & (iou < 0.4)] = -2
        return idx

    def forward(self, feats, targets):
        cls_loss, reg_loss, total_fg = [], [], 0
        for f, gt in zip(feats, targets):
            matched = self.label_anchors(gt)
            fg = matched >= 0
            num_fg = fg.sum().item()
            total_fg += num_fg
            gt_cls = torch.zeros(len(self.anchors), self.cls_head.out_features)
            if num_fg > 0:
                gt_cls[fg, gt["labels"][matched[fg]]] = 1.0
                reg_loss.append(
                    F.smooth_l1_loss(self.reg_head(f[fg]), gt["boxes"][matched[fg]] - self.anchors[fg], reduction="sum")
                )
            valid = matched != -2
            p = torch.sigmoid(self.cls_head(f[valid]))
            pt = torch.where(gt_cls[valid] == 1, p, 1 - p)
            cls_loss.append((-((1 - pt) ** 2) * pt.clamp(min=1e-6).log()).sum())
        self.loss_normalizer = self.momentum * self.loss_normalizer + (1 - self.momentum) * max(total_fg, 1)
        reg = sum(reg_loss) / self.loss_normalizer if reg_loss else torch.zeros(())
        return {"classification": sum(cls_loss) / self.loss_normalizer, "bbox_regression": reg, "num_fg": total_fg}


class PostProcess(nn.Module):
    def __init__(self, score_thresh=0.6, iou_thresh=0.5, detections=4):
        super().__init__()
        self.score_thresh, self.iou_thresh, self.detections = score_thresh, iou_thresh, detections

    def nms(self, boxes, scores):
        order, keep = scores.argsort(descending=True), []
        while order.numel() > 0:
            i = order[0].item()
            keep.append(i)
            if order.numel() == 1:
                break
            iou = box_iou(boxes[i : i + 1], boxes[order[1:]])[0]
            order = order[1:][iou <= self.iou_thresh]
        return torch.tensor(keep)

    @torch.no_grad()
    def forward(self, boxes, logits):
        scores, labels = logits.sigmoid().max(-1)
        mask = scores > self.score_thresh
        if not mask.any():
            return {"boxes": boxes[:0], "scores": scores[:0], "labels": labels[:0]}
        boxes, scores, labels = boxes[mask], scores[mask], labels[mask]
        keep = []
        for c in labels.unique():
            idx = torch.where(labels == c)[0]
            keep.append(idx[self.nms(boxes[idx], scores[idx])])
        keep = torch.cat(keep)
        if len(keep) > self.detections:
            keep = keep[scores[keep].topk(self.detections)[1]]
        return {"boxes": boxes[keep], "scores": scores[keep], "labels": labels[keep]}


class NaturalStep(nn.Module):
    def __init__(self, dim=5, cg_iters=6, delta=3.0, backtrack_coeff=0.6, backtrack_iters=2):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(dim))
        self.cg_iters, self.delta = cg_iters, delta
        self.backtrack_coeff, self.backtrack_iters = backtrack_coeff, backtrack_iters

    def cg(self, Ax, b):
        x, r = torch.zeros_like(b), b.clone()
        p, r_dot_old = r.clone(), torch.dot(r, r)
        for _ in range(self.cg_iters):
            z = Ax(p)
            alpha = r_dot_old / (torch.dot(p, z) + 1e-8)
            x, r = x + alpha * p, r - alpha * z
            r_dot_new = torch.dot(r, r)
            if r_dot_new < 1e-6:
                break
            p, r_dot_old = r + (r_dot_new / r_dot_old) * p, r_dot_new
        return x

    @torch.no_grad()
    def forward(self, feats, target):
        H = feats.T @ feats / len(feats) + 0.1 * torch.eye(feats.shape[1])
        objective = lambda th: (torch.tanh(feats @ th) - target).pow(2).mean()
        old = objective(self.theta)
        g = feats.T @ (target - torch.tanh(feats @ self.theta))
        x = self.cg(lambda v: H @ v, g)
        step = torch.sqrt(2 * self.delta / (torch.dot(x, H @ x) + 1e-8)) * x
        for j in range(self.backtrack_iters):
            new_theta = self.theta + self.backtrack_coeff**j * step
            kl = 0.5 * torch.dot(new_theta - self.theta, H @ (new_theta - self.theta))
            if kl <= self.delta * 0.5 and objective(new_theta) < 0.95 * old:
                logger.info("Accepting new params at step %d of line search.", j)
                self.theta.copy_(new_theta)
                break
            if j == self.backtrack_iters - 1:
                logger.info("Line search failed! Keeping old params.")
        return objective(self.theta), step.norm().item()


class LossAwareSampler(nn.Module):
    def __init__(self, T=4, history_per_term=2, uniform_prob=0.01):
        super().__init__()
        self.T, self.history_per_term, self.uniform_prob = T, history_per_term, uniform_prob
        self.model = nn.Linear(7, 6)
        self.register_buffer("loss_history", torch.zeros(T, history_per_term))
        self.register_buffer("loss_counts", torch.zeros(T, dtype=torch.int))
        self.logged = defaultdict(list)

    def _warmed_up(self):
        return (self.loss_counts == self.history_per_term).all()

    def weights(self):
        if not self._warmed_up():
            return torch.ones(self.T)
        w = torch.sqrt(torch.mean(self.loss_history**2, dim=-1))
        w = w / w.sum()
        return w * (1 - self.uniform_prob) + self.uniform_prob / len(w)

    def update_with_all_losses(self, ts, losses):
        for t, loss in zip(ts, losses):
            if self.loss_counts[t] == self.history_per_term:
                self.loss_history[t, :-1] = self.loss_history[t, 1:].clone()
                self.loss_history[t, -1] = loss
            else:
                self.loss_history[t, self.loss_counts[t]] = loss
                self.loss_counts[t] += 1

    def forward(self, x0):
        p = self.weights() / self.weights().sum()
        t = torch.multinomial(p, len(x0), replacement=True)
        noise = torch.randn_like(x0)
        abar = torch.cos(t / self.T * math.pi / 2)[:, None] ** 2
        x_t = abar.sqrt() * x0 + (1 - abar).sqrt() * noise
        losses = (self.model(torch.cat([x_t, t[:, None] / self.T], 1)) - noise).pow(2).mean(1)
        self.update_with_all_losses(t, losses.detach())
        for sub_t, sub_loss in zip(t.tolist(), losses.tolist()):
            self.logged[f"loss_q{int(4 * sub_t / self.T)}"].append(sub_loss)
        return (losses / (len(p) * p[t])).mean()


def boxes(n, size=6.0):
    xy = torch.rand(n, 2) * size
    return torch.cat([xy, xy + 1 + torch.rand(n, 2) * 3], 1)


def targets(i, classes, scale=1.0):
    counts = ((2, 1), (0, 3), (0, 0))[i % 3]
    return [{"boxes": boxes(n) * scale, "labels": torch.randint(0, classes, (n,))} for n in counts]


CASES = {
    "top1_capacity": {
        "build": Top1Gate,
        "calls": lambda: [(torch.randn(6, 8) + (i % 3) * torch.ones(8) * (-1) ** i,) for i in range(12)],
        "source": "DeepSpeed, sharded_moe.py, top1gating",
    },
    "anchors_loss": {
        "build": RetinaLoss,
        "calls": lambda: [(torch.randn(2, 9, 8), targets(i, 3)) for i in range(12)],
        "source": "detectron2, retinanet.py, losses",
    },
    "suppressed_boxes": {
        "build": lambda: PostProcess().eval(),
        "calls": lambda: [(boxes(8), torch.randn(8, 2) * 2 - (6 if i % 4 == 3 else 0)) for i in range(12)],
        "source": "YOLO in PyTorch, general.py, non_max_suppression",
    },
    "line_search": {
        "build": NaturalStep,
        "calls": lambda: [
            (torch.randn(6, 5) * (0.3, 1.0, 4.0)[i % 3], torch.randn(6).sign() * (i % 4 != 3)) for i in range(12)
        ],
        "source": "Spinning Up, trpo.py, update",
    },
    "loss_aware_sampler": {
        "build": LossAwareSampler,
        "calls": lambda: [(torch.randn(3, 6) * (1 + i % 2),) for i in range(12)],
        "source": "guided-diffusion, resample.py, LossSecondMomentResampler",
    },
}
