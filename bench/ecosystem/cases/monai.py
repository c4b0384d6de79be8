"""monai: networks, losses, metrics, transforms on tensors."""

from __future__ import annotations

import torch
from monai import inferers, losses, metrics, transforms
from monai.networks import blocks, nets, one_hot

from . import Case, image


def _masks() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(1, 2, 16, 16), torch.randint(0, 2, (1, 2, 16, 16)).float()


CASES: dict[str, Case] = {
    "UNet": (lambda: nets.UNet(2, 1, 2, (4, 8), (2,)).eval(), lambda: (image(1, 1),)),
    "DynUNet": (lambda: nets.DynUNet(2, 1, 2, [3, 3, 3], [1, 2, 2], [2, 2]).eval(), lambda: (image(1, 1),)),
    "SwinUNETR": (lambda: nets.SwinUNETR(1, 2, feature_size=12, spatial_dims=2).eval(), lambda: (image(1, 1, 64),)),
    "UNETR": (lambda: nets.UNETR(1, 2, (32, 32), 8, 32, 64, 4, spatial_dims=2).eval(), lambda: (image(1, 1),)),
    "SegResNet": (lambda: nets.SegResNet(2, 8, 1, 2).eval(), lambda: (image(1, 1),)),
    "VNet": (lambda: nets.VNet(2, 1, 2).eval(), lambda: (image(1, 1),)),
    "DiceLoss": (losses.DiceLoss, _masks),
    "DiceCELoss": (losses.DiceCELoss, _masks),
    "DiceFocalLoss": (losses.DiceFocalLoss, _masks),
    "FocalLoss": (losses.FocalLoss, _masks),
    "TverskyLoss": (losses.TverskyLoss, _masks),
    "GeneralizedDiceLoss": (losses.GeneralizedDiceLoss, _masks),
    "SSIMLoss": (lambda: losses.SSIMLoss(2, win_size=5), _masks),
    "GlobalMutualInformationLoss": (losses.GlobalMutualInformationLoss, lambda: (image(), image())),
    "LocalNormalizedCrossCorrelationLoss": (
        lambda: losses.LocalNormalizedCrossCorrelationLoss(2),
        lambda: (image(1, 1), image(1, 1)),
    ),
    "compute_dice": (
        lambda: metrics.compute_dice,
        lambda: ((torch.rand(1, 2, 8, 8) > 0.5).float(), _masks()[1][..., :8, :8]),
    ),
    "compute_iou": (
        lambda: metrics.compute_iou,
        lambda: ((torch.rand(1, 2, 8, 8) > 0.5).float(), _masks()[1][..., :8, :8]),
    ),
    "compute_roc_auc": (lambda: metrics.compute_roc_auc, lambda: (torch.rand(12), torch.randint(0, 2, (12,)))),
    "ConfusionMatrix": (
        lambda: metrics.get_confusion_matrix,
        lambda: ((torch.rand(1, 2, 8, 8) > 0.5).float(), _masks()[1][..., :8, :8]),
    ),
    "one_hot": (lambda: lambda x: one_hot(x, 3), lambda: (torch.randint(0, 3, (1, 1, 4, 4)),)),
    "sliding_window_inference": (
        lambda: lambda x: inferers.sliding_window_inference(x, (16, 16), 2, torch.nn.Identity()),
        lambda: (image(1, 1),),
    ),
    "ScaleIntensity": (transforms.ScaleIntensity, lambda: (torch.rand(1, 16, 16),)),
    "NormalizeIntensity": (lambda: transforms.NormalizeIntensity(nonzero=True), lambda: (torch.rand(1, 16, 16),)),
    "Warp": (blocks.Warp, lambda: (image(), torch.rand(1, 2, 32, 32))),
}
