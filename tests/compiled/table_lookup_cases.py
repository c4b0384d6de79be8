"""A table on the CPU, looked up by a step that is a tensor, whatever the annotation says, as diffusers has it."""

from __future__ import annotations

import torch


class Schedules:
    def __init__(self):
        self.alphas = torch.linspace(0.9, 0.1, 8)
        self.rows = torch.arange(24.0).reshape(8, 3)
        self.last = None

    def __call__(self, time: int, x):
        earlier = time - 2
        return x * self.alphas[time] + self.rows[earlier].sum() - self.rows[time - 1][1]


class SchedulesWrites(Schedules):
    def __call__(self, time: int, x):
        row = self.rows[time]
        row += 1
        return x + row.sum() + self.rows.sum()


class SchedulesWritesTheTable(Schedules):
    def __call__(self, time: int, x):
        row = self.rows[time]
        self.rows.mul_(2)
        return x + row.sum()


class SchedulesGives(Schedules):
    def __call__(self, time: int, x):
        row = self.rows[time]
        row.view(-1)
        return row[1:]


class SchedulesKeeps(Schedules):
    def __call__(self, time: int, x):
        self.last = self.rows[time]
        return x + self.last[0]


class SchedulesWritesLater(Schedules):
    def __call__(self, time: int, x):
        row = self.rows[time]
        torch._dynamo.graph_break()
        row += 1
        return x + self.rows.sum()


class SchedulesTrains(Schedules):
    def __init__(self):
        super().__init__()
        self.alphas = torch.linspace(0.9, 0.1, 8).requires_grad_()

    def __call__(self, time: int, x):
        (x * self.alphas[time]).sum().backward()
        return self.alphas.grad * 1


class SchedulesIsEmpty(Schedules):
    def __init__(self):
        super().__init__()
        self.alphas = torch.ones(0)

    def __call__(self, time: int, x):
        return x * self.alphas[time]


class SchedulesGuarded(Schedules):
    def __call__(self, time: int, x):
        try:
            return x * self.alphas[time]
        except IndexError as error:
            return x + len(str(error))


class SchedulesMapped(Schedules):
    def __call__(self, time: int, x):
        return x.sum() + torch.vmap(lambda time: self.rows[time] * 2)(torch.stack([time, time]))


class SchedulesInASide(Schedules):
    """As each of diffusers' schedulers does."""

    def __call__(self, time: int, x):
        earlier = time - 2
        alpha = self.alphas[earlier] if earlier >= 0 else self.rows[0, 0]
        if earlier >= 2 and x.sum() > 0:
            alpha = alpha + self.rows[earlier - 2].sum()
        return x * alpha
