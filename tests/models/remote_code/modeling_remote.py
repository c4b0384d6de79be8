"""A model in the style of MoLFormer: it logs, and refuses masks that it cannot take."""

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.utils import logging

from .configuration_remote import RemoteConfig
from .layers_remote import Layer

logger = logging.get_logger(__name__)


class RemoteModel(PreTrainedModel):
    config_class = RemoteConfig

    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.ModuleList(Layer(config.width) for _ in range(config.layers))
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, inputs, attention_mask):
        if not torch.equal(attention_mask, attention_mask.bool().to(attention_mask.dtype)):
            raise ValueError(f"a mask of zeros and ones is needed, not {attention_mask.tolist()}")
        logger.warning("remote code runs")
        for layer in self.layers:
            inputs = layer(inputs)
        return inputs * attention_mask[..., None]
