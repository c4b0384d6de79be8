"""Functions that a side of a branch calls, and that print, log, warn, append and count; `print` by other names."""

import contextlib
import functools
import io
import logging
import warnings

import torch
from torch import nn

log = logging.getLogger(__name__)


class Says(nn.Module):
    """Its data decides in each other call."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.count, self.last, self.seen = 0, 0.0, []

    def is_large(self, x):
        return x.abs().max() > 3

    def say(self, value):
        print("large", value)

    def forward(self, x):
        if self.is_large(x):
            self.say(x.max().item())
        return self.fc(x)


class Logs(Says):
    def say(self, value):
        log.info("large %s", value)


class Warns(Says):
    def say(self, value):
        log.warning("at %s", value, stacklevel=2)
        warnings.warn("careful", stacklevel=2)


class Appends(Says):
    def say(self, value):
        self.seen.append(value)


class AppendsRecords(Says):
    def say(self, value):
        self.seen.append({"value": value, "count": self.count})
        self.count += 1


class AppendsTensors(Says):
    def forward(self, x):
        y = x.detach() + 1
        if self.is_large(x):
            y = y * 2
            self.keep(y)
        y.add_(1)
        return self.fc(y)

    def keep(self, y):
        self.seen.append(y)


class OfModule(Says):
    def forward(self, x):
        if self.is_large(x):
            _note(self, x)
        return self.fc(x)


def _note(module, x):
    module.seen.append(x.max().item())
    module.count += 1
    log.warning("noted %d", module.count)


class InOrder(Says):
    def forward(self, x):
        print("begin")
        if self.is_large(x):
            print("one")
            self.say(1)
            print("two")
            self.say(x.max().item())
            log.info("three")
        else:
            self.say("no")
            print("else")
        print("end")
        return self.fc(x)


class InLoop(Says):
    def say(self, value):
        for each in range(4):
            if each == 2:
                return
            print("each", each, value)
        print("never")


class Outer(Says):
    def say(self, value):
        print("outer")
        self.inner(value)
        print("done")

    def inner(self, value):
        log.info("inner %s", value)
        self.seen.append(value)


class Twice(Says):
    def forward(self, x):
        if self.is_large(x):
            self.say("a")
            self.say("b")
        return self.fc(x)

    def say(self, value):
        print(value, self.count)
        self.count += 1


class BranchesWithin(Says):
    def forward(self, x):
        if self.is_large(x):
            self.check(x)
        return self.fc(x)

    def check(self, x):
        if x.mean() > 0:
            log.warning("above %s", x.max().item())
            self.count += 1
        else:
            log.info("below")
        print("checked", self.count)


class GuardsWithin(BranchesWithin):
    def check(self, x):
        print("checking")
        if x.mean() > 1:
            raise ValueError(f"too much: {x.max().item():.3f}")
        print("fine")


class WritesAfter(Says):
    def forward(self, x):
        y = x
        if self.is_large(x):
            y = self.doubled(x)
        return self.fc(y)

    def doubled(self, x):
        y = x.detach() * 2
        print("doubled", y)
        y.add_(1)
        return y


class InALoopThatEnds(Says):
    def forward(self, x):
        for step in range(4):
            x = x * 1.5
            if x.abs().max() > 6:
                self.stop(step)
                break
        return self.fc(x)

    def stop(self, step):
        print("stop at", step)
        self.seen.append(step)


class ShowsGradients(Says):
    def forward(self, x):
        y = self.fc(x)
        if self.is_large(x):
            self.say(y)
        return y


class Gives(Says):
    def forward(self, x):
        if self.is_large(x):
            self.last = self.said(x.max().item())
        return self.fc(x)

    def said(self, value):
        print("said", value)
        return value + 1


class OfAPartial(Says):
    def __init__(self):
        super().__init__()
        self.say = functools.partial(print, "partial", sep="-")


class OfAnAttribute(Says):
    def __init__(self):
        super().__init__()
        self.trace = print

    def say(self, value):
        self.trace(f"{value:.2f}", end="!\n")


class OfCallbacks(Says):
    def __init__(self):
        super().__init__()
        self.callbacks = [lambda value: print("one", value), self.kept]

    def kept(self, value):
        self.seen.append(value)

    def say(self, value):
        for callback in self.callbacks:
            callback(value)


class InAnExpression(Says):
    def forward(self, x):
        y = self.fc(x)
        x.dim() == 2 and print("few", x.sum().round().item())
        [print("row", row.max().item()) for row in x]
        return y


ONE_GRAPH = [
    *(Says, Logs, Appends, AppendsRecords, OfModule, InOrder, InLoop, Outer, Twice),
    *(BranchesWithin, GuardsWithin, WritesAfter, InALoopThatEnds, ShowsGradients, Gives, OfAPartial, OfAnAttribute),
    *(OfCallbacks, InAnExpression),
]


class Redirects(Says):
    def say(self, value):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            print("large", value)
        self.seen.append(shown.getvalue())


class Catches(Says):
    def say(self, value):
        try:
            print("large", value)
        except Exception:
            self.count += 100


class LooksAtTheList(Says):
    def say(self, value):
        self.seen.append(value)
        if len(self.seen) > 2:
            self.count += 1


class PopsFromTheList(Says):
    def say(self, value):
        self.seen.append(value)
        if len(self.seen) > 2:
            self.seen.pop(0)


class AsksInAnOperand(Says):
    """Nobody asks where the first is false."""

    def forward(self, x):
        if self.is_large(x) and self.is_above(x):
            x = x * 2
        return self.fc(x)

    def is_above(self, x):
        print("asked")
        return x.mean() > 0


class AsksInASide(AsksInAnOperand):
    def forward(self, x):
        if self.is_large(x):
            print("large")
            if x.sum() > 0 and self.is_above(x):
                self.count += 1
        return self.fc(x)


class Fails(Says):
    def say(self, value):
        print("about to fail")
        raise ValueError(f"bad: {value:.3f}")


class Draws(Says):
    def say(self, value):
        print("drawn", torch.rand(()).item())

    def forward(self, x):
        return super().forward(x) + torch.rand(())


class SwitchedOff(Says):
    def say(self, value):
        log.disabled = True
        log.warning("unheard %s", value)
        log.disabled = False


class Elsewhere(Says):
    def say(self, value):
        into = io.StringIO()
        print("large", value, file=into, sep=":", end="", flush=True)
        self.seen.append(into.getvalue())


class GuardsInATry(Says):
    """What an inner branch raises is caught there."""

    def forward(self, x):
        if self.is_large(x):
            self.check(x)
        return self.fc(x)

    def check(self, x):
        try:
            if x.mean() > 1:
                raise ValueError("too much")
        except ValueError:
            self.count += 1
            print("caught")


class BranchesInAContext(Says):
    def forward(self, x):
        if self.is_large(x):
            self.check(x)
        return self.fc(x)

    def check(self, x):
        with contextlib.redirect_stdout(io.StringIO()):
            if x.mean() > 1:
                print("unseen")


class IsRefused(Says):
    """By `print`, where it stands: nothing comes behind it."""

    def __init__(self):
        super().__init__()
        self.trace = print

    def forward(self, x):
        self.trace("b", sep=1)
        self.count += 1
        return self.fc(x)


class IsRefusedByName(IsRefused):
    def forward(self, x):
        functools.partial(self.trace, nothing=1)("b")
        self.count += 1
        return self.fc(x)


class ShowsOtherwise(Says):
    def forward(self, x):
        torch.set_printoptions(precision=2)
        print(x[0, 0])
        torch.set_printoptions(precision=4)
        return self.fc(x)


class ShowsWhatItAppendedTo(Says):
    def forward(self, x):
        self.seen.append(x.max().item())
        print(f"{self.seen} {self.seen[-1]:.2f}")
        return self.fc(x)


AS_IN_EAGER = (
    ShowsWhatItAppendedTo,
    *(IsRefused, IsRefusedByName, ShowsOtherwise),
    *(Elsewhere, GuardsInATry, BranchesInAContext, Warns, AppendsTensors, Redirects, Catches, LooksAtTheList),
    *(PopsFromTheList, AsksInAnOperand, AsksInASide, Fails, Draws, SwitchedOff),
)
