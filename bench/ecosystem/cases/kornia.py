"""kornia 0.8.3: geometry, features, colours, filters, losses."""

from __future__ import annotations

import kornia
import torch
from kornia import augmentation, color, enhance, feature, filters, geometry, losses, metrics, morphology

from . import Case, image, labels


def _points(count: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(1, count, 2) * 30, torch.rand(1, count, 2) * 30


def _matrix() -> torch.Tensor:
    return torch.eye(3)[None] + torch.rand(1, 3, 3) * 0.01


def _descriptors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(12, 16), torch.rand(10, 16)


CASES: dict[str, Case] = {
    "canny": (filters.Canny, lambda: (image(),)),
    "sobel": (filters.Sobel, lambda: (image(),)),
    "bilateral_blur": (lambda: lambda x: filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)), lambda: (image(),)),
    "gaussian_blur2d": (lambda: lambda x: filters.gaussian_blur2d(x, (3, 3), (1.5, 1.5)), lambda: (image(),)),
    "gaussian_blur2d, sigma as tensor": (
        lambda: lambda x, s: filters.gaussian_blur2d(x, (3, 3), s),
        lambda: (image(), torch.rand(1, 2) + 0.5),
    ),
    "unsharp_mask": (lambda: lambda x: filters.unsharp_mask(x, (3, 3), (1.5, 1.5)), lambda: (image(),)),
    "median_blur": (lambda: lambda x: filters.median_blur(x, (3, 3)), lambda: (image(),)),
    "motion_blur": (lambda: lambda x, a: filters.motion_blur(x, 3, a, a), lambda: (image(), torch.rand(1))),
    "guided_blur": (lambda: lambda x: filters.guided_blur(x, x, 3, 0.1), lambda: (image(),)),
    "warp_perspective": (lambda: lambda x, m: geometry.warp_perspective(x, m, (32, 32)), lambda: (image(), _matrix())),
    "warp_affine": (lambda: lambda x, m: geometry.warp_affine(x, m[:, :2], (32, 32)), lambda: (image(), _matrix())),
    "rotate": (lambda: geometry.rotate, lambda: (image(), torch.rand(1) * 90)),
    "scale": (lambda: geometry.scale, lambda: (image(), torch.rand(1, 2) + 0.5)),
    "translate": (lambda: geometry.translate, lambda: (image(), torch.rand(1, 2) * 4)),
    "shear": (lambda: geometry.shear, lambda: (image(), torch.rand(1, 2) * 0.1)),
    "center_crop": (lambda: lambda x: geometry.center_crop(x, (16, 16)), lambda: (image(),)),
    "crop_and_resize": (
        lambda: lambda x, b: geometry.crop_and_resize(x, b, (8, 8)),
        lambda: (image(), torch.tensor([[[2.0, 2.0], [20.0, 2.0], [20.0, 20.0], [2.0, 20.0]]])),
    ),
    "crop_by_boxes": (
        lambda: geometry.crop_by_boxes,
        lambda: (
            image(),
            torch.tensor([[[2.0, 2.0], [20.0, 2.0], [20.0, 20.0], [2.0, 20.0]]]),
            torch.tensor([[[0.0, 0.0], [15.0, 0.0], [15.0, 15.0], [0.0, 15.0]]]),
        ),
    ),
    "resize": (lambda: lambda x: geometry.resize(x, 16), lambda: (image(),)),
    "pyrdown": (lambda: geometry.pyrdown, lambda: (image(),)),
    "build_pyramid": (lambda: lambda x: geometry.build_pyramid(x, 3), lambda: (image(),)),
    "elastic_transform2d": (
        lambda: lambda x, n: geometry.elastic_transform2d(x, n, (3, 3)),
        lambda: (image(), torch.rand(1, 2, 32, 32)),
    ),
    "find_homography_dlt": (lambda: geometry.homography.find_homography_dlt, _points),
    "find_homography_dlt_iterated": (
        lambda: lambda a, b: geometry.homography.find_homography_dlt_iterated(a, b, torch.ones(1, 8), n_iter=2),
        _points,
    ),
    "find_fundamental": (lambda: geometry.epipolar.find_fundamental, _points),
    "RANSAC": (lambda: geometry.ransac.RANSAC("homography", max_iter=2), lambda: tuple(p[0] for p in _points(12))),
    "transform_points": (lambda: geometry.transform_points, lambda: (_matrix(), _points()[0])),
    "quaternion_to_axis_angle": (lambda: geometry.quaternion_to_axis_angle, lambda: (torch.rand(3, 4),)),
    "axis_angle_to_rotation_matrix": (lambda: geometry.axis_angle_to_rotation_matrix, lambda: (torch.rand(3, 3),)),
    "rotation_matrix_to_quaternion": (
        lambda: geometry.rotation_matrix_to_quaternion,
        lambda: (geometry.axis_angle_to_rotation_matrix(torch.rand(3, 3)),),
    ),
    "infer_bbox_shape": (
        lambda: geometry.bbox.infer_bbox_shape,
        lambda: (torch.tensor([[[1.0, 1.0], [8.0, 1.0], [8.0, 9.0], [1.0, 9.0]]]),),
    ),
    "bbox_to_mask": (
        lambda: lambda b: geometry.bbox.bbox_to_mask(b, 16, 16),
        lambda: (torch.tensor([[[1.0, 1.0], [8.0, 1.0], [8.0, 9.0], [1.0, 9.0]]]),),
    ),
    "undistort_points": (
        lambda: geometry.calibration.undistort_points,
        lambda: (_points()[0], _matrix() * 10, torch.rand(1, 4) * 0.01),
    ),
    "so3 exp and log": (lambda: lambda v: geometry.liegroup.So3.exp(v).log(), lambda: (torch.rand(2, 3),)),
    "PinholeCamera.project": (
        lambda: (
            lambda k, p: geometry.camera.pinhole.PinholeCamera(
                k, torch.eye(4)[None], torch.ones(1), torch.ones(1)
            ).project(p)
        ),
        lambda: (torch.eye(4)[None] + torch.rand(1, 4, 4) * 0.01, torch.rand(1, 3) + 1),
    ),
    "match_nn": (lambda: feature.match_nn, _descriptors),
    "match_snn": (lambda: lambda a, b: feature.match_snn(a, b, 0.9), _descriptors),
    "match_mnn": (lambda: feature.match_mnn, _descriptors),
    "match_smnn": (lambda: lambda a, b: feature.match_smnn(a, b, 0.95), _descriptors),
    "gftt_response": (lambda: feature.gftt_response, lambda: (image(channels=1),)),
    "harris_response": (lambda: feature.harris_response, lambda: (image(channels=1),)),
    "hessian_response": (lambda: feature.hessian_response, lambda: (image(channels=1),)),
    "SIFTDescriptor": (lambda: feature.SIFTDescriptor(16), lambda: (image(2, 1, 16),)),
    "HardNet": (lambda: feature.HardNet(False).eval(), lambda: (image(2, 1),)),
    "LAFOrienter": (
        lambda: feature.LAFOrienter(8),
        lambda: (torch.tensor([[[[4.0, 0.0, 16.0], [0.0, 4.0, 16.0]]]]), image(channels=1)),
    ),
    "extract_patches_from_pyramid": (
        lambda: lambda x, f: feature.extract_patches_from_pyramid(x, f, 8),
        lambda: (image(channels=1), torch.tensor([[[[4.0, 0.0, 16.0], [0.0, 4.0, 16.0]]]])),
    ),
    "ScaleSpaceDetector": (lambda: feature.ScaleSpaceDetector(8, mr_size=3.0), lambda: (image(channels=1),)),
    "rgb_to_hsv": (lambda: color.rgb_to_hsv, lambda: (image(),)),
    "rgb_to_lab": (lambda: color.rgb_to_lab, lambda: (image(),)),
    "rgb_to_hls": (lambda: color.rgb_to_hls, lambda: (image(),)),
    "apply_colormap": (
        lambda: lambda x: color.apply_colormap(x, color.ColorMap("autumn", 16)),
        lambda: (image(channels=1),),
    ),
    "adjust_hue": (lambda: lambda x: enhance.adjust_hue(x, 0.1), lambda: (image(),)),
    "adjust_brightness": (lambda: enhance.adjust_brightness, lambda: (image(), torch.rand(1))),
    "adjust_gamma": (lambda: enhance.adjust_gamma, lambda: (image(), torch.rand(1) + 0.5)),
    "adjust_log": (lambda: enhance.adjust_log, lambda: (image(),)),
    "equalize": (lambda: enhance.equalize, lambda: (image(),)),
    "equalize_clahe": (lambda: lambda x: enhance.equalize_clahe(x, grid_size=(4, 4)), lambda: (image(),)),
    "histogram": (
        lambda: lambda x: enhance.histogram(x, torch.linspace(0, 1, 8), torch.tensor(0.1)),
        lambda: (torch.rand(1, 30),),
    ),
    "posterize": (lambda: enhance.posterize, lambda: (image(), torch.tensor([3]))),
    "sharpness": (lambda: enhance.sharpness, lambda: (image(), torch.rand(1))),
    "solarize": (lambda: enhance.solarize, lambda: (image(), torch.rand(1))),
    "normalize": (lambda: enhance.normalize, lambda: (image(), torch.rand(3), torch.rand(3) + 0.1)),
    "zca_whiten": (lambda: enhance.zca_whiten, lambda: (torch.rand(8, 4),)),
    "dilation": (lambda: lambda x: morphology.dilation(x, torch.ones(3, 3)), lambda: (image(),)),
    "distance_transform": (
        lambda: lambda x: kornia.contrib.distance_transform((x > 0.9).float()),
        lambda: (image(channels=1),),
    ),
    "connected_components": (
        lambda: lambda x: kornia.contrib.connected_components((x > 0.5).float(), 8),
        lambda: (image(channels=1),),
    ),
    "dice_loss": (lambda: losses.dice_loss, lambda: (torch.randn(1, 4, 8, 8), torch.randint(0, 4, (1, 8, 8)))),
    "focal_loss": (
        lambda: lambda a, b: losses.focal_loss(a, b, 0.5, reduction="mean"),
        lambda: (torch.randn(1, 4, 8, 8), torch.randint(0, 4, (1, 8, 8))),
    ),
    "lovasz_softmax_loss": (
        lambda: losses.lovasz_softmax_loss,
        lambda: (torch.randn(1, 4, 8, 8), torch.randint(0, 4, (1, 8, 8))),
    ),
    "tversky_loss": (
        lambda: lambda a, b: losses.tversky_loss(a, b, 0.5, 0.5),
        lambda: (torch.randn(1, 4, 8, 8), torch.randint(0, 4, (1, 8, 8))),
    ),
    "HausdorffERLoss": (
        lambda: losses.HausdorffERLoss(k=2),
        lambda: (torch.rand(1, 2, 8, 8), torch.randint(0, 2, (1, 1, 8, 8))),
    ),
    "ssim_loss": (lambda: lambda a, b: losses.ssim_loss(a, b, 5), lambda: (image(), image())),
    "psnr": (lambda: lambda a, b: metrics.psnr(a, b, 1.0), lambda: (image(), image())),
    "confusion_matrix": (
        lambda: lambda a, b: metrics.confusion_matrix(a, b, 3),
        lambda: (labels(9, 3)[None], labels(9, 3)[None]),
    ),
    "mean_iou": (lambda: lambda a, b: metrics.mean_iou(a, b, 3), lambda: (labels(9, 3)[None], labels(9, 3)[None])),
    "RandomHorizontalFlip": (lambda: augmentation.RandomHorizontalFlip(p=0.5), lambda: (image(2),)),
    "ColorJitter": (lambda: augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0), lambda: (image(2),)),
    "RandomAffine": (lambda: augmentation.RandomAffine(10.0, p=1.0), lambda: (image(2),)),
    "RandomErasing": (lambda: augmentation.RandomErasing(p=1.0), lambda: (image(2),)),
}
