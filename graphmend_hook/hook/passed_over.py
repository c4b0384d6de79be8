"""Modules of libraries that no compiled function reaches, as patterns of the allowlist: data, not logic.

To look through them at the first import takes time, and mends nothing that is traced.  One that the allowlist names
by its whole name is mended all the same.
"""

from __future__ import annotations

PASSED_OVER = (
    # transformers: texts to tokens, files to models, entries of registries, documentation, the hub
    "transformers.commands",
    "transformers.convert_*",
    "transformers.data",
    "transformers.dynamic_module_utils",
    "transformers.feature_extraction_*",
    "transformers.hf_argparser",
    "transformers.integrations.ggml",
    "transformers.modeling_gguf_pytorch_utils",
    "transformers.models.*.convert_*",
    "transformers.models.*.feature_extraction_*",
    "transformers.models.*.processing_*",
    "transformers.models.*.tokenization_*",
    "transformers.models.auto",
    "transformers.processing_utils",
    "transformers.quantizers",
    "transformers.tokenization_*",
    "transformers.training_args*",
    "transformers.utils.args_doc",
    "transformers.utils.auto_docstring",
    "transformers.utils.chat_template_utils",
    "transformers.utils.doc",
    "transformers.utils.hub",
    "transformers.utils.quantization_config",
)
