"""vector_quantize_pytorch: codebooks in training and evaluation."""

from __future__ import annotations

import torch
import vector_quantize_pytorch as vq

from . import Case


def _rows() -> tuple[torch.Tensor]:
    return (torch.randn(1, 12, 8),)


CASES: dict[str, Case] = {
    "VectorQuantize": (lambda: vq.VectorQuantize(8, 16).eval(), _rows),
    "VectorQuantize, training": (lambda: vq.VectorQuantize(8, 16).train(), _rows),
    "VectorQuantize, kmeans": (lambda: vq.VectorQuantize(8, 16, kmeans_init=True, kmeans_iters=2).train(), _rows),
    "VectorQuantize, cosine": (lambda: vq.VectorQuantize(8, 16, use_cosine_sim=True).train(), _rows),
    "VectorQuantize, expiring": (lambda: vq.VectorQuantize(8, 16, threshold_ema_dead_code=2).train(), _rows),
    "ResidualVQ": (lambda: vq.ResidualVQ(dim=8, codebook_size=16, num_quantizers=3).eval(), _rows),
    "ResidualVQ, training": (lambda: vq.ResidualVQ(dim=8, codebook_size=16, num_quantizers=3).train(), _rows),
    "GroupedResidualVQ": (
        lambda: vq.GroupedResidualVQ(dim=8, codebook_size=16, num_quantizers=2, groups=2).eval(),
        _rows,
    ),
    "FSQ": (lambda: vq.FSQ([4, 4, 4], dim=8), _rows),
    "ResidualFSQ": (lambda: vq.ResidualFSQ(dim=8, levels=[4, 4, 4], num_quantizers=2).eval(), _rows),
    "LFQ": (lambda: vq.LFQ(codebook_size=16, dim=8).train(), _rows),
    "ResidualLFQ": (lambda: vq.ResidualLFQ(dim=8, codebook_size=16, num_quantizers=2).eval(), _rows),
    "SimVQ": (lambda: vq.SimVQ(dim=8, codebook_size=16).train(), _rows),
    "LatentQuantize": (lambda: vq.LatentQuantize([4, 4, 4], 8).train(), lambda: (torch.randn(1, 8, 12),)),
    "RandomProjectionQuantizer": (
        lambda: vq.RandomProjectionQuantizer(dim=8, num_codebooks=2, codebook_dim=4, codebook_size=16),
        _rows,
    ),
}
