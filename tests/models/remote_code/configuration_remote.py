"""The configuration of a model whose code lies beside its weights."""

from transformers import PretrainedConfig


class RemoteConfig(PretrainedConfig):
    model_type = "graphmend_remote"

    def __init__(self, width=8, layers=2, **kwargs):
        self.width = width
        self.layers = layers
        super().__init__(**kwargs)
