"""Places that tensors give, random parameters of transforms, guards in helpers, and loops in sides.

After routers and mixtures in public repositories, `torchvision.transforms.v2` and what validates its arguments.
"""

import contextlib
import logging
import math
import numbers
import re
import sys
from io import StringIO

import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("everyday.places")
CASES = {}


def xs(n=8):
    return lambda: [(torch.randn(4, 8),) for _ in range(n)]


def positive(n=8):
    """Of which the fifth is negative, which the guards refuse."""
    return lambda: [(torch.randn(4, 8).abs() if i != 4 else -torch.ones(4, 8),) for i in range(n)]


def placed(*places):
    return lambda: [(torch.randn(4, 8), torch.tensor(place)) for place in places]


def case(source, calls=None):
    def add(kind):
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()
        CASES[name] = {"build": kind, "calls": calls or xs(), "source": source}
        return kind

    return add


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.functions = [F.relu, torch.tanh, F.gelu]
        self.counts = [0, 0, 0]
        self.depth = 0


# --- places that tensors give -----------------------------------------------------------------------------------------


@case("a router that takes one expert")
class RoutesByArgmax(Base):
    def forward(self, x):
        chosen = self.fc(x).mean(0)[:3].argmax()
        return self.layers[chosen](x)


@case("a router that takes two experts, and weighs them")
class RoutesByTopk(Base):
    def forward(self, x):
        weights, chosen = self.fc(x).mean(0)[:3].softmax(-1).topk(2)
        out = 0
        for weight, expert in zip(weights, chosen):
            out = out + weight * self.layers[expert](x)
        return out


@case("activations chosen by data")
class ChoosesActivation(Base):
    def forward(self, x):
        return self.functions[x.mean(0)[:3].argmax()](self.fc(x))


@case("a scale looked up, and a name that is shown")
class LooksUpAndShows(Base):
    names, scales = ("low", "middle", "high"), [0.5, 1.0, 2.0]

    def forward(self, x):
        level = x.mean(0)[:3].argmax()
        print(self.names[level])
        return self.fc(x) * self.scales[level]


@case("loads of experts, counted")
class CountsExperts(Base):
    def forward(self, x):
        chosen = x.mean(0)[:3].argmax()
        self.counts[chosen] += 1
        return self.layers[chosen](x)


@case("layers in random order")
class ShufflesLayers(Base):
    def forward(self, x):
        for place in torch.randperm(3):
            x = self.layers[place](x).tanh()
        return x


@case("RandomOrder of torchvision")
class RandomOrderOfFlips(Base):
    def forward(self, x):
        flips = [lambda y: y.flip(0), lambda y: y.flip(1)]
        for place in torch.randperm(len(flips)):
            x = flips[place](x)
        return self.fc(x)


@case("a task that the batch names", placed(0, 1, 2, 1, -1, -3, 3, 0))
class TaskOfTheBatch(Base):
    """-1 is the last one; 3 is none."""

    def forward(self, x, task):
        return self.layers[task](x) + self.functions[task](x)


@case("a place of one dimension", placed([0], [1], [2], [1], [0], [2]))
class PlaceOfOneDimension(Base):
    def forward(self, x, place):
        return self.functions[place](self.fc(x))


@case("a place that is written to afterwards")
class PlaceIsWrittenTo(Base):
    def forward(self, x):
        place = x.mean(0)[:3].argmax()
        layer = self.layers[place]
        place.fill_(0)
        return layer(x) + self.layers[place](x)


@case("statistics of the one that is chosen")
class NormsOfDomains(Base):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(8) for _ in range(3))

    def forward(self, x):
        return self.norms[x.mean(0)[:3].argmax()](x)


@case("a float is no place", placed(0.0, 1.0, 2.0, 0.0, 1.0, 2.0))
class FloatIsNoPlace(Base):
    def forward(self, x, place):
        return self.functions[place](x)


@case("a tensor is no key", placed(0, 1, 0, 1, 0, 1))
class TensorIsNoKey(Base):
    def forward(self, x, key):
        return self.fc(x) * {0: 1.0, 1: 2.0}[key]


@case("functions that the frame makes")
class MakesFunctions(Base):
    def forward(self, x):
        flips = [lambda y: y.flip(0), lambda y: y.flip(1)]
        return flips[int(x.mean(0)[:2].argmax())](x) + flips[x.std(0)[:2].argmax()](x)


# --- random parameters ------------------------------------------------------------------------------------------------


def uniform(low, high):
    return torch.empty(1).uniform_(low, high).item()


def kernel(size, sigma, dtype):
    for s in sigma:
        if s <= 0.0:
            raise ValueError(f"sigma should have positive values. Got {sigma}")
    x = torch.linspace(-size, size, steps=2 * size + 1, dtype=dtype)
    rows = [torch.softmax(x.div(s).pow(2).neg(), dim=0) for s in sigma]
    return rows[0].unsqueeze(-1) * rows[1]


@case("GaussianBlur of torchvision")
class BlursAtRandom(Base):
    def forward(self, x):
        sigma = uniform(0.1, 2.0)
        weight = kernel(1, [sigma, sigma], x.dtype)
        return F.conv2d(x[None, None], weight[None, None], padding=1)[0, 0]


def inverse_matrix(angle, translate, scale, shear):
    rot, sx, sy = math.radians(angle), math.radians(shear[0]), math.radians(shear[1])
    a = math.cos(rot - sy) / math.cos(sy)
    b = -(a * math.tan(sx) + math.sin(rot))
    c = math.sin(rot - sy) / math.cos(sy)
    d = math.cos(rot) - c * math.tan(sx)
    matrix = [d / scale, -b / scale, 0.0, -c / scale, a / scale, 0.0]
    matrix[2] += matrix[0] * -translate[0] + matrix[1] * -translate[1]
    matrix[5] += matrix[3] * -translate[0] + matrix[4] * -translate[1]
    return matrix


def warped(x, matrix):
    theta = torch.tensor(matrix, dtype=x.dtype).reshape(1, 2, 3)
    grid = torch.empty(1, 4, 8, 3, dtype=x.dtype)
    grid[..., 0].copy_(torch.linspace(-0.5, 0.5, steps=8))
    grid[..., 1].copy_(torch.linspace(-0.5, 0.5, steps=4).unsqueeze_(-1))
    grid[..., 2].fill_(1)
    places = grid.view(1, 32, 3).bmm(theta.transpose(1, 2)).view(1, 4, 8, 2)
    return F.grid_sample(x[None, None], places, align_corners=False)[0, 0]


@case("RandomAffine of torchvision")
class WarpsAtRandom(Base):
    def forward(self, x):
        angle, scale = uniform(-30.0, 30.0), uniform(0.8, 1.2)
        tx, ty = (int(round(float(uniform(-2.0, 2.0)))) for _ in range(2))  # noqa: RUF046
        shear = (float(uniform(-5.0, 5.0)), 0.0)
        if not isinstance(shear, (numbers.Number, (list, tuple))):
            raise TypeError("shear")
        return warped(x, inverse_matrix(angle, [float(t) for t in (tx, ty)], scale, shear))


@case("RandomRotation of torchvision")
class TurnsAtRandom(Base):
    def forward(self, x):
        angle = uniform(-30.0, 30.0) % 360
        if angle == 0:
            return x.clone()
        if angle == 180:
            return torch.rot90(x, k=2, dims=(-2, -1))
        return warped(x, inverse_matrix(-angle, [0.0, 0.0], 1.0, [0.0, 0.0]))


@case("ColorJitter of torchvision, by numbers")
class JittersInAnyOrder(Base):
    def forward(self, x):
        order, brightness, contrast = torch.randperm(3), uniform(0.8, 1.2), float(uniform(0.8, 1.2))
        for step in order:
            if step == 0:
                x = x * brightness
            elif step == 1:
                x = (x - x.mean()) * contrast + x.mean()
            elif step == 2:
                x = x.clamp(-1, 1)
        return x


@case("RandomApply of torchvision")
class AppliesAtRandom(Base):
    def forward(self, *inputs):
        needs_unpacking = len(inputs) > 1
        if torch.rand(1) >= 0.5:
            return inputs if needs_unpacking else inputs[0]
        for layer in self.layers:
            outputs = layer(*inputs)
            inputs = outputs if needs_unpacking else (outputs,)
        return outputs


@case("a loop of no steps binds nothing")
class AppliesNothing(Base):
    def forward(self, x):
        if x.sum() > 0:
            return x
        for layer in self.layers[:0]:
            out = layer(x)
        return out


@case("a turn by any angle")
class TurnsVectors(Base):
    def forward(self, x):
        angle = math.radians(torch.empty(1).uniform_(-180, 180).item())
        return self.fc(x) * math.cos(angle) + x * math.sin(angle)


@case("a draw that is always the same")
class DrawsOneNumber(Base):
    def forward(self, x):
        if uniform(0.25, 0.25) == 0.25:
            return self.fc(x)
        return x


@case("functions that fail on infinity", lambda: [(x * torch.inf if i == 4 else x,) for i, (x,) in enumerate(xs()())])
class FailsOnInfinity(Base):
    def forward(self, x):
        total = x.sum().item()
        return self.fc(x) * math.sin(total) + round(total)


# --- what a side makes of constants, and shapes that change in place -------------------------------------------------


@case("windows in a side")
class WindowsInSide(Base):
    def forward(self, x):
        if x.sum() > 0:
            first, rest = torch.tensor_split(x, (3,), dim=1)
            x = torch.cat([rest, first], 1) * torch.hann_window(8) + torch.linspace(-1, 1, steps=8)
        return self.fc(x)


@case("a shape that changes in place")
class ShapeInPlace(Base):
    def forward(self, x):
        h = self.fc(x)
        v = h.detach().clone()
        v.unsqueeze_(0)
        if h.sum() > 0:
            h = h * v.dim()
        return h, v.dim(), v.shape, v.t_().stride() if v.squeeze_(0).dim() == 2 else None


# --- guards of helpers ------------------------------------------------------------------------------------------------


@case("statistics that are checked one by one", positive())
class ChecksStatistics(Base):
    def forward(self, x):
        stats = {"mean": x.mean().item(), "max": x.max().item()}
        for name, value in stats.items():
            if value < 0:
                raise ValueError(f"{name} is negative: {value:.4f}")
        return self.fc(x), stats


@case("a parameter with a default", positive())
class ChecksDefault(Base):
    def scaled(self, x, scale=1.0):
        if scale <= 0:
            raise ValueError("scale")
        return x / scale

    def forward(self, x):
        return self.scaled(self.fc(x), x.mean().item())


@case("a guard behind what the call has stored", positive())
class ChecksBehindStores(Base):
    def scaled(self, x, scale=1.0):
        if not 0 < scale < 100:
            raise ValueError("scale")
        return x / scale

    def forward(self, x):
        self.depth += 1
        noisy = x + torch.rand_like(x)
        out = self.scaled(self.fc(noisy), x.mean().item())
        self.depth -= 1
        return out + torch.rand(())


@case("an assertion of a helper", positive())
class AssertsInHelper(Base):
    def scaled(self, x, scale=1.0):
        assert scale > 0, f"scale {scale:.3f}"
        return x * scale

    def forward(self, x):
        return self.scaled(self.fc(x), x.mean().item())


@case("a handler around the guard", positive())
class HandlesTheGuard(Base):
    def scaled(self, x, scale=1.0):
        if scale <= 0:
            raise ValueError("scale")
        return x / scale

    def forward(self, x):
        try:
            return self.scaled(self.fc(x), x.mean().item())
        except ValueError:
            return x * 0


# --- contexts of the program's ----------------------------------------------------------------------------------------


@case("a depth that is counted around a block")
class CountsDepth(Base):
    @contextlib.contextmanager
    def nested(self):
        self.depth += 1
        try:
            yield self.depth
        finally:
            self.depth -= 1

    def forward(self, x):
        with self.nested() as outer:
            h = self.fc(x)
            log.info("depth %d, mean %.3f", outer, h.mean().item())
            with self.nested() as inner:
                print("inner", inner)
        return h


@case("a mode that is set around a block")
class SetsMode(Base):
    mode = "plain"

    @contextlib.contextmanager
    def as_mode(self, mode):
        before, self.mode = self.mode, mode
        yield
        self.mode = before

    def forward(self, x):
        with self.as_mode("scaled"):
            h = self.fc(x)
            log.info("mode %s: %.3f", self.mode, h.sum().item())
        log.info("mode %s", self.mode)
        return h


@case("a region of the profiler")
class RecordsFunction(Base):
    def forward(self, x):
        with torch.profiler.record_function("fc"):
            h = self.fc(x)
            log.info("mean %.3f", h.mean().item())
        return h


class Swallowing:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return kind is ValueError


class SwallowingPerhaps(Swallowing):
    swallows = True

    def __exit__(self, *_error):
        return self.swallows or None


class Capturing:
    def __enter__(self):
        self.before, sys.stdout = sys.stdout, StringIO()
        return self

    def __exit__(self, *_error):
        self.text = sys.stdout.getvalue()
        sys.stdout = self.before


@case("a block whose exception is swallowed")
class SwallowsGuards(Base):
    def forward(self, x):
        h = self.fc(x)
        with Swallowing():
            log.info("mean %.3f", h.mean().item())
            if h.mean() > 0:
                raise ValueError("above")
        return h


@case("a block whose exception is swallowed, or not")
class SwallowsGuardsPerhaps(Base):
    def forward(self, x):
        h = self.fc(x)
        with SwallowingPerhaps():
            log.info("mean %.3f", h.mean().item())
            if h.mean() > 0:
                raise ValueError("above")
        return h


@case("a block whose prints are captured")
class CapturesPrints(Base):
    def forward(self, x):
        h = self.fc(x)
        with Capturing() as captured:
            print(f"mean {h.mean().item():.3f}")
        return h, captured.text
