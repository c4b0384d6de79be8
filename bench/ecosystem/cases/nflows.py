"""nflows: transforms and flows."""

from __future__ import annotations

import torch
from nflows import distributions, flows, transforms
from nflows.nn import nets

from . import Case


def _rows() -> tuple[torch.Tensor]:
    return (torch.randn(5, 4),)


def _unit() -> tuple[torch.Tensor]:
    return (torch.rand(5, 4),)


def _net(inputs: int, outputs: int) -> torch.nn.Module:
    return nets.ResidualNet(inputs, outputs, 8)


_MASK = torch.tensor([1, -1, 1, -1])

CASES: dict[str, Case] = {
    "MaskedAutoregressiveFlow": (lambda: _density(flows.MaskedAutoregressiveFlow(4, 8, 2, 1)), _rows),
    "SimpleRealNVP": (lambda: _density(flows.SimpleRealNVP(4, 8, 2, 1)), _rows),
    "AffineCoupling": (lambda: transforms.AffineCouplingTransform(_MASK, _net), _rows),
    "RationalQuadraticCoupling": (
        lambda: transforms.PiecewiseRationalQuadraticCouplingTransform(_MASK, _net, tails="linear"),
        _rows,
    ),
    "QuadraticCoupling": (lambda: transforms.PiecewiseQuadraticCouplingTransform(_MASK, _net, tails="linear"), _rows),
    "LinearCoupling": (lambda: transforms.PiecewiseLinearCouplingTransform(_MASK, _net), _unit),
    "CubicCoupling": (lambda: transforms.PiecewiseCubicCouplingTransform(_MASK, _net), _unit),
    "ActNorm, training": (lambda: transforms.ActNorm(4).train(), _rows),
    "BatchNorm": (lambda: transforms.BatchNorm(4).eval(), _rows),
    "LULinear": (lambda: transforms.LULinear(4), _rows),
    "SVDLinear": (lambda: transforms.SVDLinear(4, 2), _rows),
    "RandomPermutation": (lambda: transforms.RandomPermutation(4), _rows),
    "Sigmoid and Logit": (lambda: transforms.CompositeTransform([transforms.Sigmoid(), transforms.Logit()]), _rows),
    "Logit": (transforms.Logit, _unit),
    "StandardNormal": (lambda: distributions.StandardNormal([4]).log_prob, _rows),
    "sample": (lambda: _sampled(flows.SimpleRealNVP(4, 8, 2, 1)), lambda: ()),
}


def _density(flow: torch.nn.Module) -> torch.nn.Module:
    flow.forward = flow.log_prob
    return flow.eval()


def _sampled(flow: torch.nn.Module) -> torch.nn.Module:
    flow.forward = lambda: flow.sample(3)
    return flow.eval()
