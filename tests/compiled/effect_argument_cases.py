"""Modules whose effects show what changes from call to call.  Imported twice: as they are, and mended.

``SHOWN`` gives, for each, how often it is compiled at most.
"""

from __future__ import annotations

import collections
import logging
import warnings
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

logger = logging.getLogger("effect_argument_cases")
silent = logging.getLogger("effect_argument_cases.silent")
silent.setLevel(logging.ERROR)

SHOWN: dict[str, int] = {}
STEP, NAMES = 0, {"k": ""}


def shown(compilations: int = 1) -> Any:
    def register(kind: type) -> type:
        SHOWN[kind.__name__] = compilations
        return kind

    return register


class Changing(nn.Module):
    """`change` is called before each call."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[int] = []
        self.tensors, self.ends = [torch.ones(1)], collections.deque([0], maxlen=3)
        self.meta, self.other = {"name": "", "size": 1}, self.history
        self.change(0)

    def change(self, i: int) -> None:
        global STEP
        STEP, NAMES["k"] = i, f"k{i}"
        self.name, self.step, self.rate, self.total = f"n{i}", 3 * i, i / 7, 10 + i
        self.flag, self.pair, self.names = i % 2 == 0, (i, f"p{i}"), [f"a{i}", "b"]
        self.mixed, self.last = [1, 2.5, "s"][i % 3], f"l{i}" if i % 2 else None
        self.config = SimpleNamespace(name=f"c{i}", inner=SimpleNamespace(tag=f"t{i}"))
        self.history.append(i)
        self.tensors.append(torch.ones(1))
        self.ends.append(i)
        self.meta["name"], self.meta[f"m{i}"] = f"m{i}", i


@shown()
class Guard(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.isfinite(x).all():
            raise FloatingPointError(f"{self.name!r} at {self.step:04d} of {self.total}: {self.rate:.3f} {self.flag}")
        return x * 2


@shown()
class GuardOfNestedNames(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.isfinite(x).all():
            raise ValueError("%s %s in %s" % (self.config.name, self.config.inner.tag, type(self).__name__))
        assert x.max() < 99, self.name + " is large"
        return x * 2


@shown()
class GuardOfContainers(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.isfinite(x).all():
            raise ValueError(
                f"{len(self.history)} {self.history[-1]} {self.names[0]} {self.meta['name']} {self.pair[1]}"
            )
        return x * 2


@shown()
class GuardOfVariables(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.isfinite(x).all():
            raise ValueError(f"{STEP} {STEP + 1} {NAMES['k']}")
        return x * 2


@shown()
class GuardWithoutGradients(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            if not torch.isfinite(x).all():
                raise ValueError(f"{self.name} {self.step}")
        return x * 2


@shown()
class LogOfASide(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 5:
            logger.warning("%s at %d of %s", self.name, self.step, self.total)
        else:
            logger.info(f"{self.config.name}: {self.rate} {self.flag}")
        return x * 2


@shown()
class LogOfANestedSide(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 5:
            x = x / 2
            if x.min() > 1:
                logger.warning("deep %s %s", self.name, len(self.history))
            else:
                logger.warning("flat %s %s", self.step + 1, STEP)
        return x * 2


@shown()
class PrintAndWarning(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 5:
            print("large", self.name, self.step, self.meta["name"], sep="-")
            warnings.warn(f"{self.name}: large at {self.step}")
        return x * 2


@shown()
class Arithmetic(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.info(f"{self.step + 1} of {self.total}: {100 * self.step / self.total:.1f}%")
        if x.max() > 5:
            logger.info("%s %s", round(self.rate, 2), -self.step // 2)
        return x * 2


@shown()
class Texts(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.info("%s %s", ", ".join(self.names), self.name.upper())
        if x.max() > 5:
            logger.info(self.name + ": " + str(self.step))
            logger.info("%s", "on" if self.flag else "off")
        return x * 2


@shown()
class Containers(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.info("%d %d %d", len(self.history), len(self.tensors), len(self.ends))
        logger.info("%s %s %s", sum(self.history) / len(self.history), self.history[-2:], max(self.history))
        if x.max() > 5:
            logger.info("%s %s", self.history[-1], self.meta.get("none", "?"))
        return x * 2


def say(*given: Any) -> None:
    print(*given)


@shown()
class InContainers(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        say("x", self.step, self.name)
        logger.info("%(a)s %(b)s", {"a": self.step, "b": [self.name, (self.rate, x.detach().max())]})
        if x.max() > 5:
            logger.info("%s", (self.name, self.step + 1))
        assert torch.isfinite(x).all(), (self.name, [self.step])
        return x * 2


@shown(99)
class NotDeferrable(Changing):
    """The text of an object may change; so the call breaks the graph, and shows what it computes all the same."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        print(self.step + 1, len(self.history), self.config)
        return x + 1


@shown(2)
class SeveralTypes(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 5:
            logger.info("%s %s %s", self.mixed, self.last, self.last or "none")
        return x * 2


@shown()
class Stored(Changing):
    """What is stored behind the effect, through whatever name."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["me"] = self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.info("%s %s %d", self.name, self.step + 1, len(self.names))
        self.me.name, self.step, self.names = "stored", -1, []
        return x * 2


@shown(9)
class ContainerChangedBehind(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 5:
            logger.info("%d %d", len(self.history), self.history[-1])
        self.other.append(100)
        return x * 2


@shown(9)
class ContainerChangedBefore(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.other.append(100)
        if x.max() > 5:
            logger.info("%d %d", len(self.history), self.history[-1])
        return x * 2


@shown()
class DividesByZero(Changing):
    def change(self, i: int) -> None:
        super().change(i)
        self.total = i % 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.max() > 5:
            logger.info("%s", self.step / self.total)
        return x * 2


@shown(9)
class FailsOnTheWay(Changing):
    """What stands behind a text that cannot be made is not reached."""

    def change(self, i: int) -> None:
        super().change(i)
        self.total = i % 4

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logger.info("behind: %s", self.meta["size"])
        logger.info("%s", self.step / self.total)
        self.meta["size"] = self.other[-1]
        return x * 2


@shown()
class SilentLogger(Changing):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        silent.info("%d %s", self.step, self.name)
        if x.max() > 5:
            silent.info("%d %s", self.step + 1, len(self.history))
        return x * 2


@shown()
class Checkpointed(Changing):
    def body(self, x: torch.Tensor) -> torch.Tensor:
        logger.info("%s at %d, %d", self.name, self.step, self.step * 2)
        return x * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = checkpoint(self.body, x, use_reentrant=False)
        return found


@shown()
class NamedChildren(Changing):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({"a": Guard(), "b": LogOfASide()})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, (name, block) in enumerate(self.blocks.named_children()):
            x = block(x)
            if x.max() > 9:
                logger.info("%s %d of %s: %s", name, i, self.name, block.step)
        return x


@shown(7)
class InVain(Changing):
    """The branch is left, since its sides differ; what they read is not guarded in the frame of the graph."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2
        if x.max() > 9:
            self.name = "large"
        else:
            self.name = self.name + "x"
        return x


class Peak(nn.Module):
    """Its branch stores what it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("peak", torch.tensor(9.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 1.5
        if x.max() > self.peak:
            self.peak = x.max()
        return x
