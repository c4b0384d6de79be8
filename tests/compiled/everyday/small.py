"""Small modules of one feature each: what is kept and counted, and what data chooses."""

import contextlib
import logging
import re
import time
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("everyday.small")
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
class BoolResult(M):
    def check(self, norm):
        if norm > 10.0:
            self.scale = max(self.scale / 2, 1.0)
            return True
        return False

    def forward(self, x):
        h = self.fc(x)
        norm = h.norm().item()
        if self.check(norm):
            self.bad += 1
            log.info("skipped, scale %s", self.scale)
            return h * 0
        self.n += 1
        return h * 2


@case()
class BoolResultExpr(M):
    def is_bad(self, h):
        return bool((h.abs() > 5).any()) or bool(torch.isnan(h).any())

    def forward(self, x):
        h = self.fc(x)
        if self.is_bad(h):
            self.bad += 1
            h = h.clamp(-5, 5)
        return h


@case()
class FlagName(M):
    def forward(self, x):
        h = self.fc(x)
        big = False
        if h.abs().max() > 5:
            big = True
            h = h / 2
        if big:
            self.bad += 1
        return h


@case()
class FlagName2(M):
    def forward(self, x):
        h = self.fc(x)
        state = "ok"
        if h.abs().max() > 5:
            state = "big"
        if state == "big":
            h = h / 2
            log.info("state %s", state)
        return h


@case()
class StringKey(M):
    def choose(self, x):
        return "large" if x.std().item() > 2.0 else "small"

    def forward(self, x):
        name = self.choose(x)
        self.d[name] = self.d.get(name, 0) + 1
        return self.fc(x)


@case()
class CounterOfNames(M):
    def forward(self, x):
        self.d["a"] = self.d.get("a", 0) + 1
        return self.fc(x)


@case()
class CounterUpdate(M):
    def forward(self, x):
        y = self.fc(x)
        self.c.update(y.argmax(-1).tolist())
        return y


@case()
class CounterItem(M):
    def forward(self, x):
        y = self.fc(x)
        self.c["seen"] += 1
        self.c["big"] += int((y > 1).sum())
        return y


@case()
class ListIadd(M):
    def forward(self, x):
        y = self.fc(x)
        self.hist += [y.mean().item()]
        return y


@case()
class ListOfDicts(M):
    def forward(self, x):
        y = self.fc(x)
        self.hist.append({"mean": y.mean().item(), "n": len(x)})
        return y


@dataclass
class Stats:
    mean: float
    std: float
    big: bool = False


@case()
class ListOfDataclasses(M):
    def forward(self, x):
        y = self.fc(x)
        self.hist.append(Stats(y.mean().item(), y.std().item()))
        return y


@case()
class ListOfDataclassesSide(M):
    def forward(self, x):
        y = self.fc(x)
        s = Stats(y.mean().item(), y.std().item())
        if y.max() > 3:
            s.big = True
        self.hist.append(s)
        return y


@case()
class ListOfTuples(M):
    def forward(self, x):
        y = self.fc(x)
        self.hist.append((self.n, y.mean().item()))
        self.n += 1
        return y


@case()
class ListOfTensors(M):
    def forward(self, x):
        y = self.fc(x)
        self.hist.append(y.mean().detach())
        return y


@case()
class OutlierEma(M):
    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        value = loss.item()
        if self.ema is not None and value > 1.3 * self.ema:
            self.bad += 1
            log.warning("skipping %.3f %.3f", value, self.ema)
            return loss * 0.0
        self.ema = value if self.ema is None else 0.9 * self.ema + 0.1 * value
        return loss


@case()
class OutlierEmaWrite(M):
    def forward(self, x):
        h = self.fc(x)
        loss = h.pow(2).mean()
        value = loss.item()
        if self.ema is not None and value > 1.3 * self.ema:
            self.bad += 1
            return loss * 0.0
        self.ema = value if self.ema is None else 0.9 * self.ema + 0.1 * value
        with torch.no_grad():
            self.buf.mul_(0.9).add_(h.mean(0), alpha=0.1)
        return loss


@case()
class ResetsSteps(M):
    @torch.no_grad()
    def forward(self, x):
        h = torch.tanh(self.fc(x))
        self.steps += 1
        done = (h.abs().max(-1).values > 0.95) | (self.steps >= 4)
        if done.any():
            self.n += int(done.sum())
            self.steps[done] = 0
            h[done] = 0.0
        return h


@case()
class ExitWithReason(M):
    def forward(self, x):
        reason, k = "last", 0
        for _ in range(4):
            k += 1
            x = x + 0.5 * torch.tanh(self.fc(x))
            if x.abs().max() > 4:
                reason = "big"
                break
        self.d[reason] = self.d.get(reason, 0) + 1
        self.n += k
        return x


@case()
class Patience(M):
    def forward(self, x):
        patient, last = 0, None
        for i in range(5):
            x = x + 0.5 * torch.tanh(self.fc(x))
            labels = x.argmax(-1)
            if last is not None and torch.all(labels.eq(last)):
                patient += 1
            else:
                patient = 0
            last = labels
            if patient == 2:
                break
        return x


@case()
class Residuals(M):
    def forward(self, x):
        res, best, lowest = [], x, 1e8
        with torch.no_grad():
            for k in range(6):
                z = torch.tanh(self.fc(x))
                res.append((z - x).norm().item() / (1e-5 + z.norm().item()))
                x = z
                if res[-1] < lowest:
                    lowest, best = res[-1], z
                if res[-1] < 0.2:
                    break
        self.hist = res
        return best


@case()
class FixedPointCount(M):
    def forward(self, x):
        self.n = 0
        u = torch.zeros_like(x)
        for i in range(20):
            u1 = u
            u = torch.tanh(self.fc(u) + x)
            err = (u - u1).abs().sum(-1).mean()
            self.n += 1
            if err.item() < 1e-1:
                break
        else:
            log.info("did not converge, err %.3f", err.item())
        return u


@case()
class PowerIteration(M):
    def forward(self, x):
        with torch.no_grad():
            for _ in range(5):
                v = F.normalize(self.fc.weight.t() @ (self.buf + 1), dim=0)
                new_u = F.normalize(self.fc.weight @ v, dim=0)
                delta = (new_u - self.buf).norm()
                self.buf.copy_(new_u)
                if delta < 1e-1:
                    break
        return self.fc(x) * self.buf


@case()
class SolveInSide(M):
    def forward(self, x):
        s = x.T @ x + torch.eye(8)
        b = self.fc(x).mean(0)
        m = b @ torch.linalg.solve(s, b)
        if m > 0.05:
            k = torch.linalg.solve(s, b.unsqueeze(-1)).squeeze(-1)
            b = b + k
        return b


@case()
class NoisyPasses(M):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 4))

    def forward(self, x):
        probs = self.net(x).softmax(-1)
        if probs.max(-1).values.mean() >= 0.42:
            return probs, torch.zeros(())
        samples = torch.stack([self.net(x).softmax(-1) for _ in range(3)])
        return samples.mean(0), samples.var(0).sum()


@case()
class ExplainedVariance(M):
    def forward(self, x):
        y = self.fc(x)
        a, b = y.detach().mean(-1).cpu().numpy(), x.mean(-1).cpu().numpy()
        var = np.var(b)
        self.ev = float("nan") if var == 0 else float(1 - np.var(b - a) / var)
        return y


@case()
class LogsDict(M):
    def log(self, name, value, on_step=True):
        if isinstance(value, torch.Tensor):
            value = value.detach()
        if name not in self.d:
            self.d[name] = {"sum": 0.0, "n": 0}
        self.d[name]["sum"] += value
        self.d[name]["n"] += 1

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        self.log("loss", loss)
        self.log("step", float(self.n))
        self.n += 1
        return loss


@case()
class MetricsOfLists(M):
    def __init__(self):
        super().__init__()
        self.m = defaultdict(list)

    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        self.m["loss"].append(loss.item())
        self.m["big"].append(bool(loss > 1))
        if self.n % 4 == 3:
            log.info("mean %.3f", sum(self.m["loss"]) / len(self.m["loss"]))
            self.m.clear()
        self.n += 1
        return loss


@case()
class ReadsClock(M):
    def __init__(self):
        super().__init__()
        self.spent = defaultdict(float)

    def forward(self, x):
        t = time.perf_counter()
        y = self.fc(x)
        self.n += (time.perf_counter() - t) > 1e6
        return y


class Elapsed:
    def __enter__(self):
        self.start = time.time()
        return self

    def __exit__(self, *exc):
        self.elapsed = time.time() - self.start


@case()
class WatchWith(M):
    def forward(self, x):
        with Elapsed() as w:
            y = self.fc(x)
        if w.elapsed > 1e6:
            log.info("slow")
        return y


@case()
class IntSize(M):
    def forward(self, x):
        n = int((x[0] > 0).sum())
        if n > 4:
            n = 4
        return self.fc(x)[:, :n].sum()


@case()
class ACount(M):
    def forward(self, x):
        self.n = 0
        u = torch.zeros_like(x)
        for i in range(6):
            u1 = u
            u = torch.tanh(self.fc(u) + x)
            err = (u - u1).abs().sum(-1).mean()
            self.n += 1
            if err.item() < 1e-1:
                break
        return u


@case()
class AElse(M):
    def forward(self, x):
        u = torch.zeros_like(x)
        for i in range(6):
            u1 = u
            u = torch.tanh(self.fc(u) + x)
            err = (u - u1).abs().sum(-1).mean()
            if err.item() < 1e-1:
                break
        else:
            log.info("did not converge, err %.3f", err.item())
        return u


@case()
class APlain(M):
    def forward(self, x):
        u = torch.zeros_like(x)
        for i in range(6):
            u1 = u
            u = torch.tanh(self.fc(u) + x)
            err = (u - u1).abs().sum(-1).mean()
            if err.item() < 1e-1:
                break
        return u


@case()
class APlain20(M):
    def forward(self, x):
        u = torch.zeros_like(x)
        for i in range(20):
            u1 = u
            u = torch.tanh(self.fc(u) + x)
            err = (u - u1).abs().sum(-1).mean()
            if err.item() < 1e-1:
                break
        return u


@case()
class APlain30Nograd(M):
    @torch.no_grad()
    def forward(self, x):
        u = torch.zeros_like(x)
        for i in range(30):
            u1 = u
            u = torch.tanh(self.fc(u) + x)
            err = (u - u1).abs().sum(-1).mean()
            if err.item() < 1e-1:
                break
        return u


@case()
class AReason(M):
    def forward(self, x):
        reason = "last"
        for _ in range(4):
            x = x + 0.5 * torch.tanh(self.fc(x))
            if x.abs().max() > 4:
                reason = "big"
                break
        self.last = reason
        return x


@case()
class AReasonNone(M):
    def forward(self, x):
        k = 0
        for _ in range(4):
            k += 1
            x = x + 0.5 * torch.tanh(self.fc(x))
            if x.abs().max() > 4:
                break
        self.n += k
        return x


@case()
class BList(M):
    def forward(self, x):
        res = []
        with torch.no_grad():
            for k in range(6):
                z = torch.tanh(self.fc(x))
                res.append((z - x).norm().item())
                x = z
                if res[-1] < 0.2:
                    break
        self.hist = res
        return x


@case()
class BListNoexit(M):
    def forward(self, x):
        res, lowest, best = [], 1e8, x
        with torch.no_grad():
            for k in range(4):
                z = torch.tanh(self.fc(x))
                res.append((z - x).norm().item())
                x = z
                if res[-1] < lowest:
                    lowest, best = res[-1], z
        self.hist = res
        return best


@case()
class BExitValue(M):
    def forward(self, x):
        lowest, best = 1e8, x
        with torch.no_grad():
            for k in range(4):
                z = torch.tanh(self.fc(x))
                r = (z - x).norm().item() / (1e-5 + z.norm().item())
                x = z
                if r < lowest:
                    lowest, best = r, z
                if r < 0.2:
                    break
        return best


@case()
class CWriteItem(M):
    @torch.no_grad()
    def forward(self, x):
        h = torch.tanh(self.fc(x))
        done = h.abs().max(-1).values > 0.95
        if done.any():
            h[done] = 0.0
        return h


@case()
class CWriteSteps(M):
    @torch.no_grad()
    def forward(self, x):
        h = torch.tanh(self.fc(x))
        self.steps += 1
        done = (h.abs().max(-1).values > 0.95) | (self.steps >= 4)
        if done.any():
            self.steps[done] = 0
        return h


@case()
class CWriteSteps2(M):
    @torch.no_grad()
    def forward(self, x):
        h = torch.tanh(self.fc(x))
        done = h.abs().max(-1).values > 0.95
        if done.any():
            self.n += int(done.sum())
            self.steps[done] = 0
        return h


@case()
class InvInSide(M):
    def forward(self, x):
        s = x.T @ self.fc(x) + torch.eye(8)
        if x.mean() > 0:
            s = torch.linalg.inv(s)
        return s.sum()


@case(lambda: [(torch.randn(4, 8) * (1 + i % 2) + (0.5 if i % 3 else -0.5), i % 3 == 0) for i in range(12)])
class SingularUntaken(M):
    def forward(self, x, bad):
        s = self.fc.weight @ self.fc.weight.T + torch.eye(8)
        s = s * (0.0 if bad else 1.0)
        if x.mean() > 0:
            s = torch.inverse(s)
        return s.sum() + self.fc(x).sum()


@case(lambda: [(torch.randn(4, 8) + (0.5 if i % 3 else -0.5), i > 8) for i in range(12)])
class SingularTaken(M):
    def forward(self, x, bad):
        s = self.fc.weight @ self.fc.weight.T + torch.eye(8)
        self.n += 1
        s = s * (0.0 if bad else 1.0)
        if x.mean() > 0:
            self.hist.append(x.mean().item())
            s = torch.inverse(s)
        return s.sum() + self.fc(x).sum()


@case()
class CholInSide(M):
    def forward(self, x):
        s = x.T @ x + torch.eye(8)
        if x.mean() > 0:
            low = torch.linalg.cholesky(s)
        else:
            low = s * 0.5
        return low.sum() + self.fc(x).mean()


@case()
class SolveTransposed(M):
    def forward(self, x):
        s = (x.T @ self.fc(x) + 3 * torch.eye(8)).T
        b = x.mean(0)
        if x.mean() > 0:
            b = torch.linalg.solve(s, b)
        return b


def ids():
    return [
        (
            (
                torch.randint(1, 12, (3, 8))
                * (
                    torch.arange(8)[None]
                    < (torch.randint(2, 9, (3,)) if i != 6 else torch.ones(3, dtype=torch.long))[:, None]
                )
            ),
        )
        for i in range(12)
    ]


class E(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.head = nn.Linear(8, 12)
        self.cap = 5
        self.k = 0


@case(ids)
class Trims(E):
    def forward(self, i):
        n = (i != 0).sum(-1).max().item()
        i = i[:, :n]
        return self.head(self.embed(i)).sum()


@case(ids)
class TrimsCapped(E):
    def forward(self, i):
        n = (i != 0).sum(-1).max().item()
        if n > self.cap:
            n = self.cap
        i = i[:, :n]
        return self.head(self.embed(i)).sum()


@case(ids)
class TrimsMin(E):
    def forward(self, i):
        n = min((i != 0).sum(-1).max().item(), self.cap)
        i = i[:, :n]
        return self.head(self.embed(i)).sum()


@case(ids)
class TrimsLoss(E):
    def forward(self, i):
        n = (i != 0).sum(-1).max().item()
        i = i[:, :n]
        logits, labels = self.head(self.embed(i))[:, :-1], i[:, 1:]
        return F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1), ignore_index=0, reduction="sum")


@case(ids)
class TrimsLossIf(E):
    def forward(self, i):
        n = (i != 0).sum(-1).max().item()
        i = i[:, :n]
        logits, labels = self.head(self.embed(i))[:, :-1], i[:, 1:]
        m = (labels != 0).sum()
        if m == 0:
            return logits.sum() * 0.0
        return F.cross_entropy(logits.reshape(-1, 12), labels.reshape(-1), ignore_index=0, reduction="sum") / m


@case(ids)
class TrimsSchedule(E):
    def forward(self, i):
        n = (i != 0).sum(-1).max().item()
        cap = int(3 + self.k / 12 * 5)
        self.k += 1
        if n > cap:
            n = cap
        i = i[:, :n]
        return self.head(self.embed(i)).sum()


class Sc:
    def __init__(self):
        self.scale, self.window, self.it, self.last = 64.0, 3, 0, -1

    def over(self, n):
        if n == float("inf") or n != n:
            self.scale = max(self.scale / 2.0, 1.0)
            self.last = self.it
            self.it += 1
            return True
        return False

    def update(self):
        if (self.it - self.last) % self.window == 0:
            self.scale *= 2.0
        self.it += 1


@case(lambda: [(torch.randn(4, 8) * (float("inf") if i in (3, 4, 9) else 0.5),) for i in range(12)])
class Scaler(M):
    def __init__(self):
        super().__init__()
        self.s = Sc()

    def forward(self, x):
        y = self.fc(x)
        if self.s.over(y.norm().item()):
            self.bad += 1
            return y * 0
        self.s.update()
        return y * 0.5


@case()
class GoodSteps(M):
    def forward(self, x):
        y = self.fc(x)
        if y.abs().max() > 2:
            self.n = 0
        else:
            self.n += 1
        if self.n % 3 == 0:
            self.scale *= 2
        return y


@case()
class GoodSteps2(M):
    def __init__(self):
        super().__init__()
        self.every = 3

    def forward(self, x):
        y = self.fc(x)
        if y.abs().max() > 2:
            self.n = 0
        else:
            self.n += 1
        if self.n > 0 and self.n % self.every == 0:
            log.info("good %d", self.n)
        return y


@case()
class GoodSteps3(M):
    def tick(self):
        if self.n // 2 > 1:
            self.scale = self.scale / 2

    def forward(self, x):
        y = self.fc(x)
        if y.abs().max() > 2:
            self.n = 0
        else:
            self.n += 1
        self.tick()
        return y


@contextlib.contextmanager
def evaluating(m):
    was = m.training
    m.eval()
    try:
        yield m
    finally:
        m.train(was)


@contextlib.contextmanager
def plain():
    yield 1


@case()
class CmPlain(M):
    def forward(self, x):
        with plain():
            y = self.fc(x)
        if y.mean() > 0:
            y = y * 2
        return y


@case()
class CmEval(M):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))

    def forward(self, x):
        with evaluating(self.net):
            y = self.net(x)
        if y.mean() > 0:
            y = y * 2
        return y


@case()
class CmEvalExit(M):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))

    def forward(self, x):
        with evaluating(self.net):
            y = self.net(x)
        if y.mean() > 0:
            return y
        return self.net(x)


@case()
class CmLogInside(M):
    def forward(self, x):
        with plain():
            y = self.fc(x)
            log.info("mean %.3f", y.mean().item())
            if y.mean() > 0:
                y = y * 2
        return y


@contextlib.contextmanager
def timed(d, name):
    t = time.perf_counter()
    yield
    d[name] = d.get(name, 0) + 1
    if time.perf_counter() - t > 100:
        print("slow")


@case()
class CmTimed(M):
    def forward(self, x):
        with timed(self.d, "fc"):
            y = self.fc(x)
        return y


class Watch:
    def __init__(self):
        self.spent, self.counts = defaultdict(float), defaultdict(int)

    def __call__(self, name):
        self.current = name
        return self

    def __enter__(self):
        self._start = time.time()

    def __exit__(self, *exc):
        self.counts[self.current] += 1
        self.dt = time.time() - self._start
        if self.dt > 100:
            print("slow")
        del self.dt, self._start


@case()
class Stages(M):
    def __init__(self):
        super().__init__()
        self._w = Watch()

    def forward(self, x):
        with self._w("a"):
            y = self.fc(x)
        with self._w("b"):
            y = F.relu(y)
        return y


class Timer:
    def start(self):
        self.t = time.perf_counter()

    def stop(self):
        return time.perf_counter() - self.t


@case()
class TimerMethods(M):
    def __init__(self):
        super().__init__()
        self.tm = Timer()

    def forward(self, x):
        self.tm.start()
        y = self.fc(x)
        if self.tm.stop() > 100:
            log.info("slow")
        del self.tm.t
        return y


@case()
class ElapsedAttr(M):
    def forward(self, x):
        t0 = time.time()
        y = self.fc(x)
        self.ok = (time.time() - t0) < 100
        return y


@case()
class Fps(M):
    def __init__(self):
        super().__init__()
        self._last = None

    def forward(self, x):
        now = time.time()
        y = self.fc(x)
        if self._last is not None and now - self._last > 1000:
            log.info("slow step")
        self._last = None
        return y


@case()
class NoGradAndAutocast(M):
    def forward(self, x):
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            t = self.fc(x).softmax(-1)
            if t.max() > 0.9:
                t = t * 0.9
        return F.mse_loss(self.fc(x), t)


@case()
class Suppresses(M):
    def forward(self, x):
        y = self.fc(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if y.mean() > 0:
                y = y * 2
        return y


@case()
class SuppressKey(M):
    def forward(self, x):
        y = self.fc(x)
        with contextlib.suppress(KeyError):
            y = y + self.d["none"]
        if y.mean() > 0:
            y = y * 2
        return y


@case()
class Nullctx(M):
    def forward(self, x):
        ctx = torch.no_grad() if self.training else contextlib.nullcontext()
        with ctx:
            m = self.fc(x).mean().item()
        self.hist.append(m)
        return self.fc(x)


class Held:
    def __init__(self):
        self.depth, self.entered = 0, []

    def __enter__(self):
        self.depth += 1
        self.entered.append(self.depth)
        return self

    def __exit__(self, kind, *exc):
        self.depth -= 1
        return False


@case()
class HeldPlain(M):
    def __init__(self):
        super().__init__()
        self.h = Held()

    def forward(self, x):
        with self.h as h:
            y = self.fc(x) * h.depth
            with self.h:
                y = y + self.h.depth
        if y.mean() > 0:
            y = y * 2
        return y


class Swallows(Held):
    def __exit__(self, kind, *exc):
        self.depth -= 1
        return kind is ValueError


@case()
class HeldSwallows(M):
    def __init__(self):
        super().__init__()
        self.h = Swallows()

    def forward(self, x):
        y = x
        with self.h:
            y = self.fc(x)
            if self.h.depth == 1 and len(x) == 4:
                raise ValueError("a")
        return y


@case()
class HeldRaises(M):
    def __init__(self):
        super().__init__()
        self.h = Held()

    def forward(self, x):
        with self.h:
            y = self.fc(x)
            if y.abs().max() > 2:
                raise ValueError(f"too large {y.abs().max().item():.2f}")
        return y


@case()
class HeldBreak(M):
    def __init__(self):
        super().__init__()
        self.h = Held()

    def forward(self, x):
        y = self.fc(x)
        with self.h:
            print("depth", self.h.depth, y.mean() > 0)
            y = y * 2
        return y


@case()
class StoresAlias(M):
    def forward(self, x):
        y = self.fc(x)
        if y.mean() > 0:
            y = y * 2
            self.last = y.detach()
        else:
            self.last = y.detach()
        return y


@case()
class StepAlias(M):
    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            self.last = x.detach()
            if x.abs().max() < 0.9:
                break
        return x


@case()
class SomeSteps(M):
    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            if x.mean() > 0:
                self.n += 1
            if x.abs().max() > 0.9:
                self.flag = True
                break
        return x


@case()
class ReturnsCounted(M):
    def forward(self, x):
        for _ in range(3):
            x = torch.tanh(self.fc(x))
            if x.abs().max() > 0.9:
                self.n += 1
                return x
        return x * 2


@case()
class CountsTruths(M):
    def forward(self, x):
        y = self.fc(x)
        self.c.update((y.mean(-1) > 0).tolist())
        return y


@case()
class CountsFloats(M):
    def forward(self, x):
        y = self.fc(x)
        self.c.update(y.mean(-1).round().tolist())
        return y


@case()
class UpdatesSet(M):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def forward(self, x):
        y = self.fc(x)
        self.seen.update(y.argmax(-1).float().tolist())
        return y


@case()
class CounterThatFails(M):
    def __init__(self):
        super().__init__()
        self.c = Counter({1: "a", 2: 3})

    def forward(self, x):
        y = self.fc(x)
        self.n += 1
        self.c.update(y.argmax(-1).tolist())
        self.n += 1
        return y


class KindOfList(list):
    pass


@case()
class AddsToKindOfList(M):
    def __init__(self):
        super().__init__()
        self.hist = KindOfList()

    def forward(self, x):
        y = self.fc(x)
        self.hist += [y.mean().item()]
        return y


@dataclass(frozen=True)
class Record:
    step: int
    loss: float


@case()
class AppendsFrozen(M):
    def forward(self, x):
        y = self.fc(x)
        self.hist.append(Record(self.n, y.mean().item()))
        self.n += 1
        return y


@case()
class PowerThatWouldBeLarge(M):
    def forward(self, x):
        y = self.fc(x)
        k = 2
        if y.abs().max() > 50:
            k = 2**31
        self.last = 2**k
        return y


@case()
class HeldContextInTry(M):
    def __init__(self):
        super().__init__()
        self.h = Held()

    def forward(self, x):
        self.n += 1
        try:
            with self.h:
                y = self.fc(x)
                if self.n % 2:
                    raise KeyError("a")
        except KeyError as error:
            y = x * 2
            self.last = str(error)
        return y


def singular_now_and_then():
    full, none = torch.ones(4, 4), torch.zeros(4, 4)
    return [(full if i % 3 == 0 else none + torch.randn(4, 4), torch.randn(4, 4)) for i in range(12)]


@case(singular_now_and_then)
class InvertsInTry(M):
    def forward(self, a, b):
        y = b * 1
        try:
            if a.sum() < 17:
                y = torch.linalg.inv(a) @ b
        except RuntimeError:
            self.n += 1
        return y


@case(singular_now_and_then)
class CallerCatches(M):
    def inverted(self, a, b):
        y = b * 1
        if a.sum() < 17:
            y = torch.linalg.inv(a) @ b
        return y

    def forward(self, a, b):
        try:
            y = self.inverted(a, b)
        except RuntimeError:
            self.n += 1
            y = b * 2
        return y


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


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.used = [0, 0, 0]
        self.h = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.Sequential(nn.Linear(8, 8), nn.ReLU())})
        self.count = {"a": 0, "b": 0}


@case()
class Router(Experts):
    def forward(self, x):
        k = int(self.gate(x.mean(0)).argmax())
        return self.experts[k](x)


@case()
class RouterItem(Experts):
    def forward(self, x):
        k = self.gate(x.mean(0)).argmax().item()
        self.used[k] += 1
        return self.experts[k](x)


@case()
class RouterRows(Experts):
    def forward(self, x):
        out = []
        for row in x:
            k = self.gate(row).argmax().item()
            out.append(self.experts[k](row))
        return torch.stack(out)


@case()
class BranchName(Experts):
    def forward(self, x):
        name = "a" if self.gate(x).std().item() > 0.8 else "b"
        self.count[name] += 1
        return self.h[name](x)


@case()
class BranchNameLog(Experts):
    def choose(self, x):
        return "a" if x.std() > 1.8 else "b"

    def forward(self, x):
        name = self.choose(self.gate(x))
        y = self.h[name](x)
        log.info("took %s", name)
        return y


@case()
class ActTable(Experts):
    def forward(self, x):
        name = "relu" if self.gate(x).mean() > 0 else "tanh"
        act = {"relu": F.relu, "tanh": torch.tanh}[name]
        return act(self.experts[0](x))


@case()
class RouterTopk(Experts):
    def forward(self, x):
        w, idx = self.gate(x.mean(0)).softmax(-1).topk(2)
        return sum(wi * self.experts[i](x) for wi, i in zip(w, idx.tolist(), strict=True))


@case()
class PicksWeight(Experts):
    def forward(self, x):
        k = self.gate(x.mean(0)).argmax().item()
        return F.linear(x, self.experts[k].weight)


@case()
class OutOfRange(Experts):
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


class LE(Experts):
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
class DictMissing(Experts):
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


@case()
class SpikesOverAverage(M):
    def forward(self, x):
        loss = self.fc(x).pow(2).mean()
        self.ema = loss.item() if self.ema is None else 0.9 * self.ema + 0.1 * loss.item()
        if loss.item() > 2 * self.ema:
            log.warning("spike %.2f vs %.2f", loss.item(), self.ema)
        return loss
