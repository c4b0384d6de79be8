"""torchmetrics: functions, and metrics with state."""

from __future__ import annotations

import torch
import torchmetrics as tm
from torchmetrics import functional
from torchmetrics.functional import classification, regression
from torchmetrics.functional import image as images

from . import Case, image, labels


def _binary() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(20), labels(20, 2)


def _multi() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(20, 4), labels(20, 4)


def _numbers() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.rand(20), torch.rand(20)


CASES: dict[str, Case] = {
    "binary_accuracy": (lambda: classification.binary_accuracy, _binary),
    "binary_auroc": (lambda: classification.binary_auroc, _binary),
    "binary_auroc, thresholds": (lambda: lambda a, b: classification.binary_auroc(a, b, thresholds=5), _binary),
    "binary_average_precision": (lambda: classification.binary_average_precision, _binary),
    "binary_calibration_error": (lambda: classification.binary_calibration_error, _binary),
    "binary_confusion_matrix": (lambda: classification.binary_confusion_matrix, _binary),
    "binary_stat_scores": (lambda: classification.binary_stat_scores, _binary),
    "multiclass_accuracy": (lambda: lambda a, b: classification.multiclass_accuracy(a, b, 4), _multi),
    "multiclass_auroc": (lambda: lambda a, b: classification.multiclass_auroc(a, b, 4, thresholds=5), _multi),
    "multiclass_cohen_kappa": (lambda: lambda a, b: classification.multiclass_cohen_kappa(a, b, 4), _multi),
    "multiclass_confusion_matrix": (lambda: lambda a, b: classification.multiclass_confusion_matrix(a, b, 4), _multi),
    "multiclass_f1_score": (lambda: lambda a, b: classification.multiclass_f1_score(a, b, 4), _multi),
    "multiclass_hinge_loss": (lambda: lambda a, b: classification.multiclass_hinge_loss(a, b, 4), _multi),
    "multiclass_jaccard_index": (lambda: lambda a, b: classification.multiclass_jaccard_index(a, b, 4), _multi),
    "multiclass_matthews_corrcoef": (lambda: lambda a, b: classification.multiclass_matthews_corrcoef(a, b, 4), _multi),
    "multilabel_accuracy": (
        lambda: lambda a, b: classification.multilabel_accuracy(a, b, 4),
        lambda: (torch.rand(5, 4), torch.randint(0, 2, (5, 4))),
    ),
    "multilabel_ranking_loss": (
        lambda: lambda a, b: classification.multilabel_ranking_loss(a, b, 4),
        lambda: (torch.rand(5, 4), torch.randint(0, 2, (5, 4))),
    ),
    "mean_squared_error": (lambda: regression.mean_squared_error, _numbers),
    "pearson_corrcoef": (lambda: regression.pearson_corrcoef, _numbers),
    "spearman_corrcoef": (lambda: regression.spearman_corrcoef, _numbers),
    "kendall_rank_corrcoef": (lambda: regression.kendall_rank_corrcoef, _numbers),
    "r2_score": (lambda: regression.r2_score, _numbers),
    "explained_variance": (lambda: regression.explained_variance, _numbers),
    "cosine_similarity": (lambda: regression.cosine_similarity, lambda: (torch.rand(4, 5), torch.rand(4, 5))),
    "kl_divergence": (
        lambda: regression.kl_divergence,
        lambda: (torch.rand(4, 5).softmax(1), torch.rand(4, 5).softmax(1)),
    ),
    "tweedie_deviance_score": (lambda: lambda a, b: regression.tweedie_deviance_score(a, b, power=1.5), _numbers),
    "psnr": (lambda: images.peak_signal_noise_ratio, lambda: (image(), image(), 1.0)),
    "ssim": (lambda: images.structural_similarity_index_measure, lambda: (image(), image())),
    "total_variation": (lambda: images.total_variation, lambda: (image(),)),
    "uqi": (lambda: images.universal_image_quality_index, lambda: (image(), image())),
    "sam": (lambda: images.spectral_angle_mapper, lambda: (image(), image())),
    "perplexity": (lambda: functional.text.perplexity, lambda: (torch.randn(2, 6, 5), torch.randint(0, 5, (2, 6)))),
    "snr": (lambda: functional.audio.signal_noise_ratio, _numbers),
    "si_sdr": (lambda: functional.audio.scale_invariant_signal_distortion_ratio, _numbers),
    "retrieval_average_precision": (lambda: functional.retrieval_average_precision, _binary),
    "retrieval_normalized_dcg": (lambda: functional.retrieval_normalized_dcg, _binary),
    "pairwise_cosine_similarity": (
        lambda: functional.pairwise_cosine_similarity,
        lambda: (torch.rand(4, 5), torch.rand(3, 5)),
    ),
    "MeanMetric": (tm.MeanMetric, lambda: (torch.rand(4),)),
    "MeanSquaredError, module": (tm.MeanSquaredError, _numbers),
    "Accuracy, module": (lambda: tm.Accuracy(task="multiclass", num_classes=4), _multi),
}
