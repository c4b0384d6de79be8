"""Factorisations that may fail, in a `try`."""

# ruff: noqa: PERF203  so people write it

from __future__ import annotations

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def matrix(self, x):
        return x.T @ x * self.scale + x.mean() * torch.eye(3)


class AddsJitter(Base):
    def forward(self, x):
        a = self.matrix(x)
        try:
            factor = torch.linalg.cholesky(a)
        except RuntimeError:
            factor = torch.linalg.cholesky(a + (1e-2 - 2 * x.mean().detach().clamp(max=0)) * torch.eye(3))
        return factor


class ReturnsInTheTry(Base):
    def forward(self, x):
        return factor_of(self.matrix(x))


def factor_of(a, jitter=1e-2, tries=4):
    try:
        return torch.linalg.cholesky(a)
    except RuntimeError:
        for i in range(tries):
            try:
                factor = torch.linalg.cholesky(a + jitter * 10**i * torch.eye(3))
                return factor
            except RuntimeError:
                continue
    raise ValueError("not positive definite")


class GivesTheTriesToo(Base):
    def forward(self, x):
        a, tries = self.matrix(x), 0
        while tries < 4:
            try:
                factor = torch.linalg.cholesky(a)
                return factor, tries
            except RuntimeError:
                a = a + 10.0**tries * torch.eye(3)
                tries += 1
        raise ValueError("not positive definite")


class LogsInTheHandler(Base):
    def forward(self, x):
        a = torch.diag(x[0].round())
        try:
            inverse = torch.linalg.inv(a)
        except torch.linalg.LinAlgError as error:
            logger.warning("singular: %s", error)
            inverse = torch.linalg.pinv(a + 1e-3 * torch.eye(3))
        return inverse * self.scale


class BreaksOutOfALoop(Base):
    def forward(self, x):
        a, jitter = self.matrix(x), 0.0
        for i in range(5):
            try:
                factor = torch.linalg.cholesky(a + jitter * torch.eye(3))
                break
            except RuntimeError:
                jitter = 0.01 * 10**i
        else:
            raise RuntimeError("no jitter is enough")
        return factor


class TriesInAWhile(Base):
    def forward(self, x):
        tries, a = 0, self.matrix(x)
        while tries < 5:
            try:
                factor = torch.linalg.cholesky(a)
                return factor
            except RuntimeError:
                a = a + 0.5 * torch.eye(3)
                tries += 1
        raise ValueError("not positive definite")


class HasAnElse(Base):
    def forward(self, x):
        a = torch.diag(x[0].round())
        b = x[:3]
        try:
            solved = torch.linalg.solve(a, b)
        except Exception:
            solved, told = b, "singular"
        else:
            told = "solved"
        return solved * self.scale, told


class DrawsBefore(Base):
    def forward(self, x):
        noise, a = torch.rand(3, 3), self.matrix(x)
        try:
            factor = torch.linalg.cholesky(a + noise)
        except RuntimeError:
            factor = torch.rand(3, 3)
        return factor


class IsNotANumber(Base):
    def forward(self, x):
        a = self.matrix(x) / (x.mean() - x.mean().clamp(min=0))
        try:
            return torch.linalg.cholesky(a)
        except RuntimeError:
            return torch.zeros(3, 3)


class WritesBefore(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        a = self.matrix(x)
        try:
            factor = torch.linalg.cholesky(a)
        except RuntimeError:
            factor = torch.eye(3) * self.calls
        return factor


class CallsInTheTry(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def counted(self, x):
        self.calls += 1
        return x.T @ x * self.scale

    def forward(self, x):
        try:
            factor = torch.linalg.cholesky(self.counted(x) + 3 * torch.eye(3))
        except RuntimeError:
            factor = torch.eye(3)
        return factor, self.calls.item()


class HasATorchOfItsOwn(Base):
    class Own:
        class linalg:
            @staticmethod
            def cholesky(a):
                return a * 2

    def forward(self, x):
        a, own = self.matrix(x), self.Own
        return self.factor(a, own)

    def factor(self, a, torch):
        try:
            factor = torch.linalg.cholesky(a)
        except RuntimeError:
            factor = a
        return factor


class MayMissAName(Base):
    def forward(self, x):
        a = x.T @ x + 3 * torch.eye(3)
        try:
            factor = torch.linalg.cholesky(a)
            other = missing  # noqa: F821
        except Exception:
            factor, other = a, 1
        return factor * self.scale, other


STAY = (MayMissAName,)
