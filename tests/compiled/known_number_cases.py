"""What modules make of numbers that are known before the graph: of their state, and of arguments.

Each case is a function of a module's: of some rows `x`, and of a number `n`, which is 0 in the first call, and greater
by one in each.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import torch
import torch.nn.functional as F

log = logging.getLogger(__name__)


class Module(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.register_buffer("kept", torch.zeros(4, 4))
        self.function = function
        self.count, self.scale, self.best = 0, 1.0, math.inf
        self.state = {"step": 0, "beta": 0.5}
        self.counts = [0, 2.0]

    def forward(self, x, n):
        return self.function(self, x, n)


def decays_an_average(self, x, n):
    self.count += 1
    decay = 0.99 * (1 - math.exp(-self.count / 20))
    with torch.no_grad():
        self.kept.mul_(decay).add_(self.layer.weight, alpha=1 - decay)
    return self.layer(x)


def corrects_a_bias(self, x, n):
    self.state["step"] += 1
    return self.layer(x) / (1 - 0.9 ** self.state["step"])


def tunes_a_temperature(self, x, n):
    loss = math.exp(self.scale) * self.layer(x).mean()
    self.scale = max(self.scale + 0.1 * (loss.detach() - 0.3).item(), -4.0)
    return loss


def smooths_in_a_dict(self, x, n):
    h = self.layer(x)
    self.state["beta"] = 0.9 * self.state["beta"] + 0.1 * h.detach().abs().mean().item()
    return h * self.state["beta"]


def counts_in_a_list(self, x, n):
    self.counts[0] += 1
    self.counts[1] *= 0.9
    return self.layer(x) / math.sqrt(self.counts[0]) + self.counts[1] / self.counts[0]


def stops_early(self, x, n):
    loss = self.layer(x).pow(2).mean()
    if loss.item() < self.best:
        self.best = loss.item()
        self.counts[0] = 0
    else:
        self.counts[0] += 1
    if self.counts[0] >= 2:
        log.info("stale for %d", self.counts[0])
    return loss


def anneals_in_steps(self, x, n):
    h = (self.layer(x) / self.scale).softmax(-1)
    self.count += 1
    if self.count % 3 == 0:
        self.scale = max(math.exp(-0.05 * self.count), 0.5)
    return h


def of_an_argument(self, x, n):
    return x - math.log(n + 2) + math.log1p(n) * 0.1 + math.pow(0.9, n)


def diffuses(self, x, n):
    alpha = math.exp(-n / 4)
    return alpha * self.layer(x) + math.sqrt(1 - alpha * alpha) * x


def of_a_float(self, x, n):
    t = self.scale
    self.scale = t + 0.1
    return math.exp(-t) * self.layer(x) + t**2 * x + round(t, 1)


def rounds(self, x, n):
    t = self.state["beta"]
    self.state["beta"] = t + 0.13
    return x * round(t, 1) + x * math.trunc(t * 10)


def takes_remainders(self, x, n):
    t = self.state["beta"]
    self.state["beta"] = t + 0.13
    return x * (t // 0.25) + x * (t % 0.25) + x * divmod(t, 0.2)[1]


def is_given_to_operations(self, x, n):
    a = math.exp(-n / 3)
    y = x.clamp(max=a).add(x, alpha=a).masked_fill(x > a, a)
    return y, torch.full((2,), a), torch.where(x > a, x, a), x.new_full((2,), a), torch.tensor(a)


def of_a_size(self, x, n):
    return x / math.log(len(x)) + round(len(x) ** -0.5, 3)


of_a_size.grows = True  # its rows are as many as the calls, and three


def has_two_powers(self, x, n):
    number = (5, 6, 7, 94906266)[n % 4]
    self.count = number
    exact, rounded = self.counts[0] ** 2 > 9007199515875288, math.pow(self.counts[0], 2) > 9007199515875288
    self.counts[0] = number
    return x * (1 + exact) + rounded, exact, rounded


def doubles_in_a_loop(self, x, n):
    t = self.scale
    self.scale = t + 0.01
    for _ in range(24):
        t = t + t * 0.1
    return x * round(t, 2), t


def interpolates(self, x, n):
    return x.lerp(x + 1, math.exp(-n / 3)), torch.quantile(x, math.exp(-n))


def meets_other_types(self, x, n):
    a = math.exp(-n / 3)
    total = x.sum()
    return x.half() * a, x.bfloat16() + a, x.double() - a, x.long() * a, (x > 0) * a, total * a, a / total, total < a


def in_a_side(self, x, n):
    self.count += 1
    if x.sum() > 0:
        x = x * math.exp(-self.count / 5)
        self.scale = self.scale * 0.9
    return x * self.scale


def is_compared_with_the_data(self, x, n):
    if x.mean() > math.exp(-n / 3) - 0.6:
        x = x * 2
    return x


def is_shown(self, x, n):
    a = math.exp(-n / 3)
    log.info("a is %.3f", a)
    print(f"{a} {a:.2f} {round(a, 2)}")
    return x * a, {"a": a, "all": [a, a * 2]}


def is_stored_between(self, x, n):
    self.count += 1
    one = math.exp(-self.count)
    self.count = self.count * 2 if self.count < 9 else 0
    return x * one + math.exp(-self.count)


def trains(self, x, n):
    a, h = math.exp(-n / 3), self.layer(x)
    return (h * a).sum() + (a / h.exp()).sum() + h.pow(2).mul(a).sum() + (h * (a * 0)).sum()


def in_a_loop(self, x, n):
    for step in range(3):
        x = x * math.exp(-step * n / 10) + math.fabs(n - step - 0.5)
    return x


def has_a_signed_zero(self, x, n):
    found = x * math.copysign(1.0, self.scale)
    self.scale = (0.0, -0.0, -1.0, 2.0)[n % 4]
    return found


def is_not_finite(self, x, n):
    found = x * math.tanh(self.scale)
    self.scale = (1.0, math.nan, math.inf, -math.inf)[n % 4]
    return found, self.scale


def fails_in_the_end(self, x, n):
    self.count += 1
    return x * math.log(5 - self.count)


def fails_at_once(self, x, n):
    return x * math.log(n - 2)


def divides_by_zero(self, x, n):
    self.count += 1
    return x * (1.0 / (self.count - 3) + math.exp(-self.count))


def catches_a_division(self, x, n):
    self.count += 1
    try:
        factor = 1.0 / (self.count - 3)
    except ZeroDivisionError:
        factor = -1.0
    return x * factor


def changes_its_type(self, x, n):
    found = x * math.exp(-self.scale)
    self.scale = n if n % 2 else n * 0.5
    return found


def is_complex(self, x, n):
    t = self.scale
    self.scale = 1.0 - n * 0.5
    root = t**0.5
    return x * (root.real if isinstance(root, complex) else root)


def is_great(self, x, n):
    found = x * (math.log(self.count + 10) / 3)
    self.count = 10 ** (40 * n)
    return found


def is_a_size(self, x, n):
    return x[:, : math.floor(math.log2(n + 2))], torch.zeros(math.isqrt(n) + 1)


def is_a_count(self, x, n):
    for _ in range(math.ceil(math.sqrt(n))):
        x = x + 1
    return x


def is_an_index(self, x, n):
    return x * (0.1, 0.2, 0.3)[math.floor(math.fmod(n, 3))]


def drops(self, x, n):
    self.scale = self.scale * 0.8
    return F.dropout(x, self.scale * 0.5), self.scale


def multiplies_by_whole_numbers(self, x, n):
    self.state["step"] += 3
    return x * self.state["step"] + self.state["step"], x < self.state["step"]


CASES = {
    name: value
    for name, value in dict(globals()).items()
    if getattr(value, "__module__", "") == __name__ and callable(value) and not name.startswith(("_", "Module"))
}
