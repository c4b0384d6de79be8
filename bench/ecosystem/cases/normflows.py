"""normflows: flows of several kinds."""

from __future__ import annotations

import normflows as nf
import torch

from . import Case


def _rows() -> tuple[torch.Tensor]:
    return (torch.randn(5, 2),)


def _model(*transforms: torch.nn.Module) -> torch.nn.Module:
    return nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), list(transforms))


def _mlp(outputs: int = 2) -> torch.nn.Module:
    return nf.nets.MLP([1, 8, outputs], init_zeros=True)


CASES: dict[str, Case] = {
    "Planar": (lambda: _model(nf.flows.Planar((2,))), _rows),
    "Radial": (lambda: nf.flows.Radial((2,)), _rows),
    "AffineCoupling": (
        lambda: _model(nf.flows.AffineCouplingBlock(_mlp()), nf.flows.Permute(2, mode="swap")).forward_kld,
        _rows,
    ),
    "MaskedAffine": (
        lambda: nf.flows.MaskedAffineFlow(torch.tensor([1.0, 0.0]), nf.nets.MLP([2, 8, 2]), nf.nets.MLP([2, 8, 2])),
        _rows,
    ),
    "AutoregressiveRationalQuadraticSpline": (
        lambda: _model(nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8)).forward_kld,
        _rows,
    ),
    "CoupledRationalQuadraticSpline": (
        lambda: _model(nf.flows.CoupledRationalQuadraticSpline(2, 1, 8)).forward_kld,
        _rows,
    ),
    "ActNorm": (lambda: nf.flows.ActNorm((2,)), _rows),
    "LULinearPermute": (lambda: _model(nf.flows.LULinearPermute(2)).log_prob, _rows),
    "Residual": (lambda: _model(nf.flows.Residual(nf.nets.LipschitzMLP([2, 8, 2], init_zeros=True))).log_prob, _rows),
    "GaussianMixture": (lambda: nf.distributions.base.GaussianMixture(3, 2).log_prob, _rows),
    "TwoMoons": (lambda: nf.distributions.TwoMoons().log_prob, _rows),
}
