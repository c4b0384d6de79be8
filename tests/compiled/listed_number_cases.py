"""Effects of numbers that comprehensions and generators read, as people show several losses, norms or rows at once."""

import logging

from torch import nn

log = logging.getLogger(__name__)


class Shows(nn.Module):
    """Its data decides in each other call."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.count, self.last, self.seen = 0, 0.0, []

    def show(self, x):
        print("rows", [round(row.max().item(), 2) for row in x])

    def forward(self, x):
        self.show(x)
        return self.fc(x)


class Norms(Shows):
    def show(self, x):
        log.info("norms %s", [each.max().item() for each in self.parameters()])


class ByName(Shows):
    def show(self, x):
        log.info("stats: %s", {name: f"{each.max().item():.3f}" for name, each in self.named_parameters()})


class InAText(Shows):
    def show(self, x):
        log.info(f"rows {[round(row.max().item(), 2) for row in x]} of {len(x)}")


class Joined(Shows):
    def show(self, x):
        print(", ".join(f"{value:.2f}" for value in x[0].tolist()))


class JoinedByName(Shows):
    def show(self, x):
        stats = {"least": x.min(), "most": x.max()}
        print(" | ".join(f"{name}: {value.item():.3f}" for name, value in stats.items()))


class JoinedBefore(Shows):
    def show(self, x):
        message = " ".join("%.4f" % row.max().item() for row in x)
        log.info(message)


class Reduced(Shows):
    def show(self, x):
        print("most", max(row.max().item() for row in x), sum(row.max().item() for row in x))


class Nested(Shows):
    def show(self, x):
        print([[round(value, 1) for value in row.tolist()] for row in x])


class Unpacked(Shows):
    def show(self, x):
        print(*[f"{name}:{value.item():.1f}" for name, value in zip("abcd", x[0], strict=True)], sep=" ")


class Converted(Shows):
    def show(self, x):
        print([float(row.max()) for row in x], [int(row.argmax()) for row in x], [float(each) for each in range(2)])


class Appended(Shows):
    def show(self, x):
        self.seen.append([row.max().item() for row in x])


class Extended(Shows):
    def show(self, x):
        self.seen.extend(x.argmax(1).tolist())


class ExtendedAndCounted(Shows):
    def show(self, x):
        self.seen.extend([row.max().item() for row in x])
        self.last = sum(self.seen) / len(self.seen)


class ExtendedInASide(Shows):
    def forward(self, x):
        if x.max() > 3:
            self.seen.extend(x[0].tolist())
        return self.fc(x)


class ExtendedByAMethod(Shows):
    def forward(self, x):
        if x.max() > 3:
            self.keep(x)
        return self.fc(x)

    def keep(self, x):
        self.seen.extend(x[0].tolist())
        print("kept", len(x))


class WrittenAfter(Shows):
    def forward(self, x):
        y = x * 2
        print([row.max().item() for row in y])
        y.add_(1)
        print([row.max().item() for row in y])
        return self.fc(y)


class InASide(Shows):
    def forward(self, x):
        if x.max() > 3:
            print("rows", [round(row.max().item(), 2) for row in x], [float(row.min()) for row in x])
        return self.fc(x)


class JoinedInASide(Shows):
    def forward(self, x):
        if x.max() > 3:
            log.warning("rows %s", ", ".join(f"{value:.2f}" for value in x[0].tolist()))
        else:
            print("small", {name: each.max().item() for name, each in self.named_parameters()})
        return self.fc(x)


class KeptInASide(Shows):
    def forward(self, x):
        if x.max() > 3:
            values = [row.max().item() for row in x]
            self.last = sum(values) / len(values)
            self.seen.append([row.min().item() for row in x])
        return self.fc(x)


class Raised(Shows):
    def forward(self, x):
        if x.max() > 5:
            raise ValueError(f"too large: {[round(value, 2) for value in x.amax(1).tolist()]}")
        return self.fc(x)


ONE_GRAPH = [
    *(Shows, Norms, ByName, InAText, Joined, JoinedByName, JoinedBefore, Reduced, Nested, Unpacked, Converted),
    *(
        Appended,
        Extended,
        ExtendedAndCounted,
        ExtendedInASide,
        ExtendedByAMethod,
        WrittenAfter,
        InASide,
        JoinedInASide,
        KeptInASide,
        Raised,
    ),
]


class ChosenByData(Shows):
    def show(self, x):
        print([value for value in x[0].tolist() if value > 0], any(row.max().item() > 2 for row in x))


class ChosenInASide(Shows):
    def forward(self, x):
        if x.max() > 3:
            print([value for value in x[0].tolist() if value > 0])
        return self.fc(x)


class CalledLater(Shows):
    def show(self, x):
        read = lambda row: round(row.max().item(), 2)  # noqa: E731
        print([*map(read, x)])


class InASet(Shows):
    def show(self, x):
        print(len({int(row.max().item()) for row in x}))


class BoundAmongThem(Shows):
    def show(self, x):
        print([(last := row.max().item()) for row in x], last)


class ExtendedByTensors(Shows):
    def show(self, x):
        self.seen.extend([x.amax(), x.max().item()])


class ExtendedByRows(Shows):
    def show(self, x):
        self.seen.extend(x.tolist())


class ExtendedByItself(Shows):
    def show(self, x):
        self.seen.append(x.max().item())
        self.seen.extend(self.seen)


class ExtendedByData(Shows):
    def show(self, x):
        self.seen.extend(x[x > 1].tolist())


AS_IN_EAGER = [
    *(ExtendedByTensors, ExtendedByRows, ExtendedByItself, ExtendedByData),
    *(ChosenByData, ChosenInASide, CalledLater, InASet, BoundAmongThem),
]
