"""Loops with an exit that data decides, deeper in their body."""

from __future__ import annotations

import logging

import torch
from torch import nn
from torch.nn import functional as F

log = logging.getLogger(__name__)


class Base(nn.Module):
    """Has layers."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))


class BreaksOnTheOtherSide(Base):
    def forward(self, x):
        for layer in self.layers:
            y = layer(x)
            if y.norm() > 1.0:
                x = torch.tanh(y)
            else:
                break
        return x


class BreaksWithAnElse(Base):
    def forward(self, x):
        for layer in self.layers:
            y = layer(x)
            if y.norm() < 1.0:
                x = x + 1
                break
            else:
                x = torch.tanh(y)
        return x


class ReturnsFromSomeLayers(Base):
    def __init__(self):
        super().__init__()
        self.exit_at = {1, 2}

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x))
            if not self.training or i in self.exit_at:
                logits = self.fc(x)
                conf = logits.softmax(-1).max(-1)[0].mean()
                if conf > 0.42:
                    return logits, i
        return self.fc(x), -1


class ContinuesInABlockWithMore(Base):
    def forward(self, x):
        n = 0
        for i, layer in enumerate(self.layers):
            if i % 2 == 0:
                x = x * 1.1
                if x.abs().max() > 3:
                    n += 1
                    continue
                x = x + self.fc(x)
            else:
                x = x - 0.1
            x = torch.tanh(layer(x)) + x
        return x


class BreaksTwiceInABlock(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i > 0:
                if x.abs().max() > 3:
                    break
                x = x * 1.2
                if x.mean() < -0.5:
                    break
                x = x + 0.1
            x = layer(x)
        return x


class BreaksInAWith(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            with torch.no_grad():
                d = (layer(x) - x).norm()
                if d < 1.5:
                    break
            x = layer(x)
        return x


class BreaksUnderATestOfData(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if x.mean() > -0.2:
                y = layer(x)
                if y.norm() < 1.2:
                    break
                x = x + y
            x = x * 0.9
        return x


class LogsAndBreaks(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i >= 1:
                if not torch.isfinite(x).all():
                    log.warning("step %d", i)
                    break
                if x.norm() < 1.0:
                    log.warning("small %d", i)
                    break
        else:
            x = x + 1
        return x


class ContinuesAndBreaks(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i > 0:
                if x.mean() > 1:
                    continue
            x = layer(x)
            if i > 1:
                if x.norm() < 0.9:
                    break
        return x


class CountsSteps(Base):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        for i in range(4):
            self.steps += 1
            if i:
                if x.norm() < 2.0:
                    break
            x = self.fc(x)
        return x


class RaisesBehindABreak(Base):
    def forward(self, x):
        for i in range(4):
            if i > 1:
                if x.norm() < 1.0:
                    break
                if i == 3:
                    raise ValueError("no convergence")
            x = self.fc(x)
        return x


class BreaksInAnElif(Base):
    def forward(self, x):
        for i in range(4):
            if i == 0:
                x = x + 1
            elif x.norm() < 1.5:
                break
            elif x.mean() > 2:
                x = x - 1
            else:
                x = self.fc(x)
        return x


class ReturnsInABlockWithMore(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i > 0:
                if x.norm() < 1.5:
                    return x * 2
                x = x + 1
            x = layer(x)
        return x


class ReturnsWhatOnlyThatBlockBinds(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x))
            if i in (1, 2):
                logits = self.fc(x)
                if logits.mean() > 0.1:
                    return logits
        return self.fc(x)


class BreaksFromTheSecondStepOn(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i > 0:
                delta = (x - self.fc(x)).norm()
                if delta < 1.0:
                    break
        return x


class HasPatience(Base):
    def __init__(self):
        super().__init__()
        self.patience = 2

    def forward(self, x):
        count, last = 0, None
        for layer, head in zip(self.layers, self.layers):
            x = torch.tanh(layer(x))
            logits = head(x)
            pred = logits.argmax(-1)
            if last is not None and torch.equal(pred, last):
                count += 1
            else:
                count = 0
            last = pred
            if count >= self.patience:
                break
        return logits


class BindsInAllStepsButTheFirst(Base):
    """As PABEE does: a name that the first step does not bind, and does not read."""

    def forward(self, x):
        found, count = None, 0
        for i, layer in enumerate(self.layers):
            x = layer(x)
            label = x.argmax(1)
            if found is not None:
                before = found.detach()
            if found is not None and torch.all(label == before):
                count += 1
            else:
                count = 0
            found = label
            if count == 2:
                break
        return x, i


class BindsUnderAFlag(Base):
    flag = False

    def forward(self, x):
        for layer in self.layers:
            y = layer(x)
            if self.flag:
                before = x * 2
            x = y
            if x.norm() < 1.0:
                break
            if self.flag:
                x = x + before
        return x


class ReadsWhatIsUnbound(Base):
    flag = False

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if self.flag:
                before = x * 2
            if x.norm() < 1.0:
                break
            if i == 2:
                x = x + before
        return x


class ContinuesOrBreaksInABlock(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i > 0:
                if x.mean() > 1:
                    continue
                if x.norm() < 0.9:
                    break
            x = layer(x)
        return x


class AppendsBehindABreak(Base):
    def forward(self, x):
        outs = []
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i % 2:
                if x.norm() < 1.0:
                    break
            outs.append(x)
        return torch.stack(outs).sum(0)


class DrawsBehindABreak(Base):
    def forward(self, x):
        for i, layer in enumerate(self.layers):
            if i > 0:
                if x.norm() < 1.5:
                    break
            x = F.dropout(layer(x), 0.5)
        return x


STAY = (BindsUnderAFlag, ReadsWhatIsUnbound, ContinuesOrBreaksInABlock, AppendsBehindABreak, DrawsBehindABreak)
