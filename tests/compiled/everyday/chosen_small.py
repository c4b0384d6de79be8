"""Small modules of one feature each: constants, tables, modules and parameters that data chooses."""

import logging
import re
from collections import Counter, defaultdict

import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("everyday.chosen_small")
CASES = {}


def xs(n=12, d=8, scale=3.0):
    return lambda: [(torch.randn(4, d) * (1 + scale * (i % 2)),) for i in range(n)]


def case(calls=None):
    def add(kind):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()
        CASES[name] = {"build": kind, "calls": calls or xs(), "source": "tests"}
        return kind

    return add


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.scale = 8.0
        self.n = 0
        self.hist = []
        self.d = {}
        self.c = Counter()
        self.ema = None
        self.bad = 0
        self.register_buffer("buf", torch.zeros(8))
        self.register_buffer("steps", torch.zeros(4, dtype=torch.long))


@case()
class ReasonCounts(M):
    def __init__(self):
        super().__init__()
        self.exits = {"last": 0, "big": 0, "nan": 0}

    def forward(self, x):
        reason = "last"
        for _ in range(3):
            x = x + 0.5 * torch.tanh(self.fc(x))
            if torch.isnan(x).any():
                reason = "nan"
                break
            if x.abs().max() > 4:
                reason = "big"
                break
        self.exits[reason] += 1
        return x


@case()
class ReasonCounts2(M):
    def __init__(self):
        super().__init__()
        self.exits = {"last": 0, "big": 0}

    def forward(self, x):
        x = self.fc(x)
        reason = "big" if x.abs().max() > 2 else "last"
        self.exits[reason] = self.exits[reason] + 1
        log.info("exit %s (%d)", reason, self.exits[reason])
        return x


@case()
class InTuple(M):
    def forward(self, x):
        x = self.fc(x)
        state = "ok"
        if x.abs().max() > 2:
            state = "large"
        elif x.abs().max() > 1:
            state = "medium"
        if state in ("large", "medium"):
            x = x / 2
        self.last = state
        return x, state


@case()
class MethodOfText(M):
    def forward(self, x):
        x = self.fc(x)
        state = "train_ok"
        if x.abs().max() > 2:
            state = "train_large"
        if state.endswith("large"):
            x = x / 2
        log.info("%s", state.upper())
        return x


@case()
class TableOfFloats(M):
    def __init__(self):
        super().__init__()
        self.w = {"small": 0.5, "large": 2.0}

    def forward(self, x):
        x = self.fc(x)
        kind = "large" if x.abs().max() > 2 else "small"
        return x * self.w[kind]


@case()
class LevelInt(M):
    def forward(self, x):
        x = self.fc(x)
        level = 0
        if x.abs().max() > 1:
            level = 1
        if x.abs().max() > 2:
            level = 2
        if level >= 2:
            x = x / 2
        elif level == 1:
            x = x / 1.5
        self.n += level
        return x


@case()
class LevelMod(M):
    def forward(self, x):
        x = self.fc(x)
        level = 3 if x.abs().max() > 1 else 4
        if level % 2:
            x = x / 2
        return x


@case()
class LevelTable(M):
    def __init__(self):
        super().__init__()
        self.scales = [1.0, 0.5, 0.25]

    def forward(self, x):
        x = self.fc(x)
        level = 0
        if x.abs().max() > 1:
            level = 1
        if x.abs().max() > 2:
            level = 2
        return x * self.scales[level]


@case()
class NoneOrText(M):
    def forward(self, x):
        x = self.fc(x)
        err = None
        if x.abs().max() > 2:
            err = "too large"
        if err is not None:
            log.warning("problem: %s", err)
            x = x.clamp(-2, 2)
        return x


@case()
class StatusOfHelper(M):
    def status(self, h):
        if torch.isnan(h).any():
            return "nan"
        if h.abs().max() > 3:
            return "explode"
        return "ok"

    def forward(self, x):
        x = self.fc(x)
        s = self.status(x)
        if s != "ok":
            log.warning("status %s", s)
            self.bad += 1
            x = x * 0
        return x


@case()
class DefltCounts(M):
    def __init__(self):
        super().__init__()
        self.exits = defaultdict(int)

    def forward(self, x):
        x = self.fc(x)
        reason = "big" if x.abs().max() > 2 else "last"
        self.exits[reason] += 1
        return x


@case()
class BoolAndNum(M):
    def measure(self, x):
        m = x.abs().max().item()
        return m > 2, m

    def forward(self, x):
        x = self.fc(x)
        big, m = self.measure(x)
        if big:
            log.info("max %.2f", m)
        return x


@case()
class ChosenModules(M):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        head = self.a if x.mean() > 0 else self.b
        return head(x)


@case()
class ChosenFunctions(M):
    def forward(self, x):
        act = torch.tanh if x.mean() > 0 else F.relu
        return act(self.fc(x))


@case()
class PicksModule(M):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Linear(8, 8)})

    def forward(self, x):
        name = "a" if x.std().item() > 2.0 else "b"
        return self.h[name](x)


@case()
class PicksIndex(M):
    def __init__(self):
        super().__init__()
        self.h = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x):
        k = 1 if x.std().item() > 2.0 else 0
        return self.h[k](x)


@case()
class Sigma(M):
    def forward(self, x):
        s = self.fc.weight.abs().max()
        w = self.fc.weight / s if s > 0.1 else self.fc.weight
        return F.linear(x, w)


@case()
class ParamOr(M):
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        return F.linear(x, w)


@case()
class ParamGiven(M):
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        return w


@case()
class ParamAsked(M):
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        y = F.linear(x, w)
        return y * 2 if isinstance(w, nn.Parameter) else y


@case()
class ParamLeaf(M):
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        y = F.linear(x, w)
        return y * 2 if w.is_leaf else y


@case()
class TwoParams(M):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(8))
        self.b = nn.Parameter(torch.randn(8))

    def forward(self, x):
        w = self.a if x.mean() > 0 else self.b
        return x * w


@case()
class DropsConnections(M):
    def forward(self, x):
        w = self.fc.weight
        if self.training and torch.rand(()) < 0.5:
            w = F.dropout(w, 0.3)
        return F.linear(x, w, self.fc.bias)


@case()
class Alias(M):
    def forward(self, x):
        last = None
        y = self.fc(x)
        if y.mean() > 0:
            y = y * 2
            last = y.detach()
        else:
            last = y.detach()
        return y + last.mean()


@case()
class AliasGiven(M):
    def forward(self, x):
        y = self.fc(x)
        last = y
        if y.mean() > 0:
            y = y * 2
            last = y.detach()
        return y, last


@case()
class AliasWritten(M):
    @torch.no_grad()
    def forward(self, x):
        y = self.fc(x)
        last = y.clone()
        if y.mean() > 0:
            y = y * 2
            last = y.view(-1)
        else:
            last = last.view(-1)
        y.add_(1)
        return last.sum()


@case()
class ParamInplace(M):
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        y = F.linear(x, w)
        with torch.no_grad():
            self.fc.weight.mul_(0.99)
        return y


@case()
class ParamStored(M):
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        self.last = w
        return F.linear(x, w)


@case()
class ParamMul(M):
    @torch.no_grad()
    def forward(self, x):
        w = self.fc.weight
        if x.mean() > 0:
            w = w * 0.5
        w.mul_(0.9)
        return F.linear(x, w)


class E(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.used = [0, 0, 0]
        self.h = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Sequential(nn.Linear(8, 8), nn.ReLU())})
        self.count = {"a": 0, "b": 0}


@case()
class Router(E):
    def forward(self, x):
        k = int(self.gate(x.mean(0)).argmax())
        return self.experts[k](x)


@case()
class RouterItem(E):
    def forward(self, x):
        k = self.gate(x.mean(0)).argmax().item()
        self.used[k] += 1
        return self.experts[k](x)


@case()
class RouterRows(E):
    def forward(self, x):
        out = []
        for row in x:
            k = self.gate(row).argmax().item()
            out.append(self.experts[k](row))
        return torch.stack(out)


@case()
class BranchName(E):
    def forward(self, x):
        name = "a" if self.gate(x).std().item() > 0.8 else "b"
        self.count[name] += 1
        return self.h[name](x)


@case()
class BranchNameLog(E):
    def choose(self, x):
        return "a" if x.std() > 1.8 else "b"

    def forward(self, x):
        name = self.choose(self.gate(x))
        y = self.h[name](x)
        log.info("took %s", name)
        return y


@case()
class ActTable(E):
    def forward(self, x):
        name = "relu" if self.gate(x).mean() > 0 else "tanh"
        act = {"relu": F.relu, "tanh": torch.tanh}[name]
        return act(self.experts[0](x))


@case()
class RouterTopk(E):
    def forward(self, x):
        w, idx = self.gate(x.mean(0)).softmax(-1).topk(2)
        return sum(wi * self.experts[i](x) for wi, i in zip(w, idx.tolist(), strict=True))


@case()
class PicksWeight(E):
    def forward(self, x):
        k = self.gate(x.mean(0)).argmax().item()
        return F.linear(x, self.experts[k].weight)


@case()
class OutOfRange(E):
    def forward(self, x):
        k = int((x.mean() * 4).round().clamp(-3, 3))
        return self.experts[k](x)


class LoudExpert(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.i = i
        self.calls = 0
        self.seen = []

    def forward(self, x, scale=1.0):
        self.calls += 1
        log.info("expert %d mean %.3f", self.i, x.mean().item())
        self.seen.append(x.mean().item())
        return self.fc(x) * scale


class LE(E):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(LoudExpert(i) for i in range(3))

    def k(self, x):
        return int(self.gate(x.mean(0)).argmax())


@case()
class Loud(LE):
    def forward(self, x):
        return self.experts[self.k(x)](x)


@case()
class LoudKw(LE):
    def forward(self, x):
        k = self.k(x)
        return self.experts[k](x, scale=2.0) + k


@case()
class WithBn(LE):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)) for _ in range(3))

    def forward(self, x):
        return self.experts[self.k(x)](x)


@case()
class WithDropout(LE):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5)) for _ in range(3))

    def forward(self, x):
        return self.experts[self.k(x)](x) + torch.rand(8)


@case()
class WithGru(LE):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.GRU(8, 8) for _ in range(3))

    def forward(self, x):
        out, h = self.experts[self.k(x)](x)
        return out + h


@case()
class DifferentShapes(LE):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(8, 4 + i) for i in range(3))

    def forward(self, x):
        return self.experts[self.k(x)](x)


@case()
class ExpertNone(LE):
    def forward(self, x):
        fs = [lambda y: None, lambda y: y * 2, lambda y: y]
        r = fs[self.k(x)](x)
        return x if r is None else r


@case()
class InBranch(LE):
    def forward(self, x):
        y = x
        if x.mean() > 0:
            y = self.experts[self.k(x)](x)
        return y


@case()
class TwoUses(LE):
    def forward(self, x):
        e = self.experts[self.k(x)]
        return e(x) + e(x * 2)


@case()
class GivenAway(LE):
    def forward(self, x):
        e = self.experts[self.k(x)]
        self.last = e.i
        return e(x)


@case()
class Stored(LE):
    def forward(self, x):
        self.cur = [self.experts[self.k(x)]]
        return self.cur[0](x)


@case()
class ReturnedFn(LE):
    def forward(self, x):
        f = {0: torch.tanh, 1: torch.relu, 2: torch.sigmoid}[self.k(x)]
        return f(x)


@case()
class Compared(LE):
    def forward(self, x):
        e = self.experts[self.k(x)]
        y = e(x)
        return y * 2 if e is self.experts[0] else y


@case()
class NoGrad(LE):
    @torch.no_grad()
    def forward(self, x):
        return self.experts[self.k(x)](x)


@case()
class LoopAll(LE):
    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.experts[self.k(x)](x))
        return x


@case()
class DictMissing(E):
    def forward(self, x):
        name = "a" if self.gate(x).mean() > 0 else "zzz"
        return self.h[name](x)


@case()
class Raises(LE):
    def forward(self, x):
        def bad(y):
            raise ValueError("bad expert")

        fs = [lambda y: y, bad, lambda y: y + 1]
        return fs[self.k(x)](x)


@case()
class Hooks(LE):
    def __init__(self):
        super().__init__()
        self.n = 0
        self.experts[1].register_forward_hook(lambda m, i, o: o * 3)

    def forward(self, x):
        return self.experts[self.k(x)](x)


@case(lambda: [(torch.randn(4, 8), i % 5 - 1) for i in range(12)])
class TensorKey(LE):
    def forward(self, x, i):
        k = torch.tensor(i).item() if i < 3 else 1
        return self.experts[k](x)


@case(lambda: [(torch.randn(4, 8), torch.tensor(i % 5 - 1)) for i in range(12)])
class Outside(LE):
    def forward(self, x, i):
        self.n = i.item() + 0
        return self.experts[i.item()](x)
