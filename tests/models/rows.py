"""Tiny, randomly initialised models, and what has to become of each: the rows of the table that we are held to.

Graph breaks are structural: they depend on the code path, not on the size or the weights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

Inputs = dict[str, Any]
# A module, and the calls that are made of it, one after the other.
Built = tuple[torch.nn.Module, list[Inputs]]

PAPER, TODAY = "4.52.4", "5.23.0"
HALF = torch.float16


@dataclass(frozen=True)
class Row:
    """`breaks`: those of the untouched library, by the version of transformers; a row runs where it has an entry.

    Eval mode, no_grad, dynamic=False, torch 2.13.0.
    """

    name: str
    builder: Callable[[Any], Built]
    breaks: Mapping[str, int]
    dtype: torch.dtype = torch.float32
    still: Mapping[str, int] = field(
        default_factory=dict
    )  # breaks the hook may leave on the eager backend, by version; else none on any
    recompiles: int = 0  # allowed in all, because the model changes state that Dynamo guards on
    wrong_in_inductor: tuple[int, ...] = ()  # calls whose results inductor gets wrong in the untouched library too
    rounded_by_aot: bool = False  # aot_eager gives other last bits than eager in the untouched library too
    fresh: bool = False  # compiled before it was ever called: its first call changes what later ones meet
    logs: tuple[str, ...] = ()  # the versions where there is something for a log handler to see
    in_every_form: bool = False  # also with each way to call torch.compile and to start the hook
    needs: str = ""  # a package that the library asks for


def ids(low: int = 0, length: int = 8) -> torch.Tensor:
    return torch.randint(low, 128, (1, length))


def thrice(model: torch.nn.Module, **inputs: Any) -> Built:
    return model, [inputs] * 3


def t5(T: Any) -> Built:
    config = T.T5Config(vocab_size=128, d_model=64, d_ff=128, d_kv=32, num_layers=2, num_heads=2)
    return thrice(T.T5ForConditionalGeneration(config), input_ids=ids(), decoder_input_ids=ids())


SPECIAL = {"decoder_start_token_id": 2, "pad_token_id": 1}


def _encoder_decoder(**more: Any) -> dict[str, Any]:
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
    widths = {"d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128}
    return {"vocab_size": 128, "max_position_embeddings": 64, **widths, **sizes, **more}


def _encoder(**more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    return {"vocab_size": 128, "max_position_embeddings": 64, **sizes, **more}


def whisper(T: Any) -> Built:
    special = {"decoder_start_token_id": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    lengths = {"num_mel_bins": 80, "max_source_positions": 64, "max_target_positions": 64}
    config = _encoder_decoder(**special, **lengths)
    del config["max_position_embeddings"]
    model = T.WhisperForConditionalGeneration(T.WhisperConfig(**config))
    return thrice(model, input_features=torch.randn(1, 80, 128), decoder_input_ids=ids())


def bart(T: Any) -> Built:
    model = T.BartForConditionalGeneration(T.BartConfig(**_encoder_decoder()))
    return thrice(model, input_ids=ids(3), decoder_input_ids=ids(3))


def marian(T: Any) -> Built:
    model = T.MarianMTModel(T.MarianConfig(**_encoder_decoder(**SPECIAL)))
    return thrice(model, input_ids=ids(3), decoder_input_ids=ids(3))


def blenderbot(T: Any) -> Built:
    model = T.BlenderbotForConditionalGeneration(T.BlenderbotConfig(**_encoder_decoder()))
    return thrice(model, input_ids=ids(), decoder_input_ids=ids())


def biogpt(T: Any) -> Built:
    return thrice(T.BioGptForCausalLM(T.BioGptConfig(**_encoder())), input_ids=ids())


def pegasus(T: Any) -> Built:
    return thrice(T.PegasusForCausalLM(T.PegasusConfig(**_encoder_decoder())), input_ids=ids())


def layoutlmv3(T: Any) -> Built:
    layout = {"max_2d_position_embeddings": 1024, "coordinate_size": 8, "shape_size": 16, "visual_embed": False}
    config = T.LayoutLMv3Config(**_encoder(**layout), input_size=32, patch_size=16)
    return thrice(T.LayoutLMv3Model(config), input_ids=ids(), bbox=torch.zeros(1, 8, 4, dtype=torch.long))


# The token whose rows overflow, and what the overflow clamp of every such model makes of infinity in float16.
LOUD = 127


def _overflowing(built: Built) -> Built:
    """`built`, with calls before and after one in which the values overflow and the clamp is taken.

    The builder has made the first layer of the encoder so that LOUD, and no other token, gets out of float16's range.
    """
    model, (inputs, *_) = built
    quiet = inputs["input_ids"].clamp(max=LOUD - 1)
    loud = quiet.clone()
    loud[0, -3] = LOUD
    calm = {**inputs, "input_ids": quiet, "decoder_input_ids": inputs["decoder_input_ids"].clamp(max=LOUD - 1)}
    return model, [calm, calm, calm, {**calm, "input_ids": loud}, calm]


def _normed_out_of_range(encoder: Any, embedding: torch.nn.Embedding) -> None:
    """A layer that normalises last: LOUD is nearly all in channel 0, which the norm then scales by 10,000."""
    embedding.weight.data[LOUD] = 0.0
    embedding.weight.data[LOUD, 0] = 50.0
    encoder.layers[0].final_layer_norm.weight.data[0] = 10_000.0
    for projection in ("q_proj", "k_proj", "v_proj"):  # the next layer's attention is not to overflow in its turn
        getattr(encoder.layers[1].self_attn, projection).weight.data[:, 0] = 0.0


def bart_fp16(T: Any) -> Built:
    model, calls = bart(T)
    _normed_out_of_range(model.model.encoder, model.model.shared)
    return _overflowing((model, calls))


def marian_fp16(T: Any) -> Built:
    model, calls = marian(T)
    _normed_out_of_range(model.model.encoder, model.model.shared)
    return _overflowing((model, calls))


def _masked(model: torch.nn.Module) -> Built:
    text = ids(3, 16)
    return thrice(model, input_ids=text, attention_mask=torch.ones_like(text), decoder_input_ids=ids(3))


def longt5_fp16(T: Any) -> Built:
    sizes = {"vocab_size": 128, "d_model": 64, "d_ff": 128, "d_kv": 32, "num_layers": 2, "num_heads": 2}
    model = T.LongT5ForConditionalGeneration(T.LongT5Config(**sizes))
    # A layer that adds to what comes in: LOUD comes in at the edge of the range, and the feed-forward adds 1,000.
    model.shared.weight.data[LOUD] = 0.0
    model.shared.weight.data[LOUD, 0] = 65_000.0
    dense = model.encoder.block[0].layer[-1].DenseReluDense
    dense.wi.weight.data[:, 0] = 1.0
    dense.wo.weight.data[0] = 1.0
    model.decoder.final_layer_norm.weight.data[0] = 0.01  # its logits come from the same weights
    return _overflowing(_masked(model))


def nllb_moe_fp16(T: Any) -> Built:
    config = T.NllbMoeConfig(**_encoder_decoder(), num_experts=4, encoder_sparse_step=4, decoder_sparse_step=4)
    model = T.NllbMoeForConditionalGeneration(config)
    # As above; embeddings are multiplied by 8.
    model.model.shared.weight.data[LOUD] = 0.0
    model.model.shared.weight.data[LOUD, 0] = 7_500.0
    model.model.encoder.layers[0].ffn.fc2.bias.data[0] = 8_000.0
    return _overflowing(_masked(model))


def _phi3(T: Any) -> torch.nn.Module:
    rope = {"type": "longrope", "short_factor": [1.0] * 16, "long_factor": [2.0] * 16}
    lengths = {"max_position_embeddings": 64, "original_max_position_embeddings": 16}
    config = _encoder(**lengths, num_key_value_heads=2, pad_token_id=0, rope_scaling=rope)
    return T.Phi3ForCausalLM(T.Phi3Config(**config))


def phi3(T: Any) -> Built:
    """Over the threshold and back, with sequences of one length: nothing but the values of a tensor tells."""
    short = {"input_ids": ids(), "position_ids": torch.arange(8)[None]}
    last_short = {**short, "position_ids": short["position_ids"] + 8}
    first_long = {**short, "position_ids": short["position_ids"] + 9}
    long = {**short, "position_ids": short["position_ids"] + 20}
    return _phi3(T), [short, short, short, long, last_short, first_long, short, long]


def phi3_long(T: Any) -> Built:
    return thrice(_phi3(T), input_ids=ids(length=20))


def _longformer(T: Any) -> torch.nn.Module:
    return T.LongformerModel(T.LongformerConfig(**_encoder(max_position_embeddings=512), attention_window=8))


def longformer(T: Any) -> Built:
    return thrice(_longformer(T), input_ids=ids(length=20))


def longformer_global(T: Any) -> Built:
    """With, without and again with global attention, by nothing but the values of the mask."""
    inputs = {"input_ids": ids(length=20), "global_attention_mask": torch.zeros(1, 20, dtype=torch.long)}
    mask = inputs["global_attention_mask"].clone()
    mask[0, 0] = 1
    attending = {**inputs, "global_attention_mask": mask}
    return _longformer(T), [attending, inputs, attending]


def _grounding_dino(T: Any) -> torch.nn.Module:
    stages = {"depths": [1, 1], "num_heads": [1, 1], "out_features": ["stage1", "stage2"]}
    backbone = T.SwinConfig(image_size=32, patch_size=4, embed_dim=16, window_size=2, **stages)
    widths = _encoder_decoder(encoder_layers=1, decoder_layers=1)
    del widths["vocab_size"], widths["max_position_embeddings"]
    config = T.GroundingDinoConfig(
        backbone_config=backbone,
        text_config=T.BertConfig(**_encoder()),
        **widths,
        num_queries=4,
        num_feature_levels=2,
        use_timm_backbone=False,
    )
    return T.GroundingDinoModel(config)


def grounding_dino(T: Any) -> Built:
    return thrice(_grounding_dino(T), pixel_values=torch.randn(1, 3, 32, 32), input_ids=ids())


def _misaligned(model: torch.nn.Module, levels: list[list[int]]) -> Built:
    """The deformable attention of `model` alone: the rest of the model never hands it shapes that it refuses."""
    attention = next(m for m in model.modules() if type(m).__name__.endswith("MultiscaleDeformableAttention"))
    shapes = torch.tensor(levels)
    sizes = shapes.prod(1)
    inputs = {
        "hidden_states": torch.randn(1, 4, 64),
        "encoder_hidden_states": torch.randn(1, int(sizes.sum()), 64),
        "reference_points": torch.rand(1, 4, 1, 4),
        "spatial_shapes": shapes,
        "spatial_shapes_list": [tuple(level) for level in levels],
        "level_start_index": sizes.cumsum(0) - sizes,
    }
    return attention, [inputs, inputs, inputs, {**inputs, "spatial_shapes": shapes + 1}, inputs]


def grounding_dino_attention(T: Any) -> Built:
    return _misaligned(_grounding_dino(T), [[4, 4], [2, 2]])


def _rt_detr_v2(T: Any) -> torch.nn.Module:
    backbone = T.RTDetrResNetConfig(
        embedding_size=16,
        hidden_sizes=[16, 16, 32, 32],
        depths=[1, 1, 1, 1],
        out_features=["stage2", "stage3", "stage4"],
    )
    widths = {"encoder_hidden_dim": 64, "encoder_ffn_dim": 128, "encoder_attention_heads": 2, "encoder_layers": 1}
    decoder = {"d_model": 64, "decoder_ffn_dim": 128, "decoder_attention_heads": 2, "decoder_layers": 2}
    levels = {"encoder_in_channels": [16, 32, 32], "decoder_in_channels": [64, 64, 64]}
    config = T.RTDetrV2Config(backbone_config=backbone, num_queries=4, **widths, **decoder, **levels)
    return T.RTDetrV2ForObjectDetection(config)


def rt_detr_v2(T: Any) -> Built:
    return thrice(_rt_detr_v2(T), pixel_values=torch.randn(1, 3, 64, 64))


def rt_detr_v2_attention(T: Any) -> Built:
    return _misaligned(_rt_detr_v2(T), [[8, 8], [4, 4], [2, 2]])


def _clap(T: Any, *is_longer: bool) -> Built:
    text = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 128}
    stages = {"depths": [1, 1], "num_attention_heads": [2, 2], "patch_embeds_hidden_size": 16, "hidden_size": 32}
    config = T.ClapConfig(
        text_config={"vocab_size": 128, **text},
        audio_config={**stages, "num_hidden_layers": 2, "enable_fusion": True},
        projection_dim=32,
    )
    batch = len(is_longer)
    return thrice(
        T.ClapModel(config),
        input_ids=ids().repeat(batch, 1),
        attention_mask=torch.ones(batch, 8, dtype=torch.long),
        input_features=torch.randn(batch, 4, 1001, 64),
        is_longer=torch.tensor(is_longer)[:, None],
    )


def mixtral(T: Any) -> Built:
    """Four experts, of which each token asks two; with few tokens some have none."""
    config = T.MixtralConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        num_experts_per_tok=2,
        use_cache=False,
    )
    return T.MixtralModel(config), [{"input_ids": ids()} for _ in range(3)]


def clap(T: Any) -> Built:
    model, (longer, *_) = _clap(T, True)
    shorter = {**longer, "is_longer": ~longer["is_longer"]}
    return model, [longer, longer, shorter, longer, shorter]


def clap_mixed(T: Any) -> Built:
    return _clap(T, True, False)


IMAGE = 120  # the id of the token that stands for a patch of an image


def _miscounted(model: torch.nn.Module, patches: int, size: int, **more: Any) -> Built:
    """Text around one image; one of the calls has a token for a patch too few, with everything in the same shape."""
    text = torch.randint(3, IMAGE, (1, patches + 8))
    text[0, 2 : patches + 2] = IMAGE
    inputs = {"input_ids": text, "pixel_values": torch.randn(1, 3, size, size), "attention_mask": torch.ones_like(text)}
    inputs.update(more)
    too_few = text.clone()
    too_few[0, patches + 1] = 5
    return model, [inputs, inputs, inputs, {**inputs, "input_ids": too_few}, inputs]


def paligemma(T: Any) -> Built:
    text = {"num_key_value_heads": 1, "head_dim": 32, "num_image_tokens": 4}
    config = T.PaliGemmaConfig(
        text_config=T.GemmaConfig(**_encoder(**text)),
        vision_config=_siglip(T),
        image_token_index=IMAGE,
        hidden_size=64,
        projection_dim=64,
        vocab_size=128,
    )
    return _miscounted(T.PaliGemmaForConditionalGeneration(config), 4, 28)


def _siglip(T: Any) -> Any:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    return T.SiglipVisionConfig(**sizes, image_size=28, patch_size=14, projection_dim=64, vision_use_head=False)


def internvl(T: Any) -> Built:
    vision = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = T.InternVLConfig(
        text_config=T.Qwen2Config(**_encoder(num_key_value_heads=2)),
        vision_config=T.InternVLVisionConfig(**vision, image_size=[56, 56], patch_size=[14, 14]),
        image_token_id=IMAGE,
        image_seq_length=4,
    )
    return _miscounted(T.InternVLForConditionalGeneration(config), 4, 56)


def florence2(T: Any) -> Built:
    stages = {"depths": [1, 1, 1, 1], "embed_dim": [16, 16, 32, 32], "num_heads": [2] * 4, "num_groups": [2] * 4}
    vision = T.Florence2VisionConfig(**stages, window_size=2, projection_dim=64)
    text = T.BartConfig(**_encoder_decoder())
    model = T.Florence2ForConditionalGeneration(
        T.Florence2Config(text_config=text, vision_config=vision, image_token_id=IMAGE)
    )
    return _miscounted(model, 5, 64, decoder_input_ids=ids(3))


def florence2_fp16(T: Any) -> Built:
    model, calls = florence2(T)
    language = model.model.language_model
    _normed_out_of_range(language.encoder, model.get_input_embeddings())
    overflowing = _overflowing((model, calls))[1]
    return model, [*overflowing, calls[3], calls[0]]


def _flaubert(T: Any) -> torch.nn.Module:
    return T.FlaubertWithLMHeadModel(T.FlaubertConfig(vocab_size=128, emb_dim=64, n_layers=2, n_heads=2))


def flaubert(T: Any) -> Built:
    return thrice(_flaubert(T), input_ids=ids(6), attention_mask=torch.ones(1, 8, dtype=torch.long))


def flaubert_lengths(T: Any) -> Built:
    inputs = {"input_ids": ids(6), "lengths": torch.tensor([8])}
    return _flaubert(T), [inputs, inputs, inputs, {**inputs, "lengths": torch.tensor([9])}, inputs]


def mimi(T: Any) -> Built:
    sizes = {"hidden_size": 64, "num_filters": 4, "intermediate_size": 128, "upsample_groups": 64, "codebook_size": 32}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32, "num_quantizers": 4}
    codes = {"codebook_dim": 16, "vector_quantization_hidden_dimension": 16}
    config = T.MimiConfig(**sizes, **heads, **codes, num_hidden_layers=2)
    return thrice(T.MimiModel(config), input_values=torch.randn(1, 1, 3200))


def jetmoe(T: Any) -> Built:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_key_value_heads": 2, "kv_channels": 16}
    config = T.JetMoeConfig(vocab_size=128, intermediate_size=128, num_local_experts=4, **sizes)
    return thrice(T.JetMoeForCausalLM(config), input_ids=ids(length=16))


def idefics3(T: Any) -> Built:
    vision = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = T.Idefics3Config(
        vision_config={**vision, "image_size": 128, "patch_size": 32},
        text_config=T.LlamaConfig(**_encoder(num_key_value_heads=2)),
        image_token_id=IMAGE,
        scale_factor=2,
        pad_token_id=0,
    )
    text = torch.randint(3, IMAGE, (1, 20))
    text[0, 2:6] = IMAGE  # (128 / 32 / 2) squared
    model = T.Idefics3ForConditionalGeneration(config)
    return thrice(model, input_ids=text, pixel_values=torch.randn(1, 1, 3, 128, 128))


def vits(T: Any) -> Built:
    widths = {"hidden_size": 64, "ffn_dim": 128, "flow_size": 64, "upsample_initial_channel": 64}
    lengths = {"noise_scale_duration": 0.0}  # lengths that are drawn anew in each call would recompile
    config = T.VitsConfig(vocab_size=64, num_hidden_layers=2, spectrogram_bins=33, **widths, **lengths)
    return thrice(T.VitsModel(config), input_ids=torch.randint(3, 64, (1, 16)))


def qwen2_vl(T: Any) -> Built:
    vision = {"depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 2}
    rope = {"rope_theta": 10_000.0, "rope_type": "default", "mrope_section": [4, 6, 6]}
    config = T.Qwen2VLConfig(
        text_config=_encoder(num_key_value_heads=2, rope_parameters=rope),
        vision_config=vision,
        image_token_id=IMAGE,
        video_token_id=IMAGE + 1,
        vision_start_token_id=IMAGE + 2,
        vision_end_token_id=IMAGE + 3,
    )
    text = torch.randint(3, IMAGE, (1, 16))
    text[0, 2], text[0, 3:7], text[0, 7] = IMAGE + 2, IMAGE, IMAGE + 3
    return thrice(
        T.Qwen2VLForConditionalGeneration(config),
        input_ids=text,
        mm_token_type_ids=(text == IMAGE).long(),
        attention_mask=torch.ones_like(text),
        pixel_values=torch.randn(16, 1176),
        image_grid_thw=torch.tensor([[1, 4, 4]]),
    )


def evolla(T: Any) -> Built:
    """With a protein: whether its mask has any element decides about the cross attention of a layer."""
    aligner = {"aligner_num_add_layers": 2, "resampler_depth": 1, "resampler_heads": 2, "resampler_num_latents": 4}
    config = T.EvollaConfig(
        protein_encoder_config=_encoder(pad_token_id=1, mask_token_id=4),
        **_encoder(num_key_value_heads=2, bos_token_id=1, eos_token_id=2),
        **aligner,
    )
    protein = {"protein_input_ids": ids(5, 12), "protein_attention_mask": torch.ones(1, 12, dtype=torch.long)}
    return thrice(T.EvollaForProteinText2Text(config), input_ids=ids(5), **protein)


def eomt(T: Any) -> Built:
    sizes = {"hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 2, "num_blocks": 4, "num_queries": 4}
    config = T.EomtConfig(**sizes, image_size=64, patch_size=16, num_upscale_blocks=1)
    return thrice(T.EomtForUniversalSegmentation(config), pixel_values=torch.randn(1, 3, 64, 64))


def led(T: Any) -> Built:
    sizes = _encoder_decoder(attention_window=8, max_encoder_position_embeddings=64)
    del sizes["max_position_embeddings"]
    model = T.LEDForConditionalGeneration(T.LEDConfig(**sizes, max_decoder_position_embeddings=64))
    return thrice(model, input_ids=ids(3, 20), decoder_input_ids=ids(3))


def _deferred(builder: Callable[[Any], Built], breaks: int) -> Row:
    forms = builder in (t5, layoutlmv3)  # a log and a warning
    return Row(builder.__name__, builder, {PAPER: breaks}, logs=(PAPER,), in_every_form=forms)


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        _deferred(t5, 3),
        _deferred(whisper, 3),
        _deferred(bart, 3),
        _deferred(marian, 3),
        _deferred(blenderbot, 3),
        _deferred(biogpt, 2),
        _deferred(pegasus, 2),
        _deferred(layoutlmv3, 2),
        Row("bart_fp16", bart_fp16, {PAPER: 6, TODAY: 4}, HALF, logs=(PAPER,), in_every_form=True),
        Row("marian_fp16", marian_fp16, {PAPER: 5, TODAY: 3}, HALF, logs=(PAPER,)),
        Row("longt5_fp16", longt5_fp16, {TODAY: 13}, HALF, wrong_in_inductor=(3,)),
        Row("nllb_moe_fp16", nllb_moe_fp16, {TODAY: 10}, HALF, wrong_in_inductor=(3,)),
        Row("phi3", phi3, {PAPER: 5}, recompiles=2, fresh=True),
        Row("phi3_long", phi3_long, {PAPER: 5}, recompiles=1, fresh=True),
        Row("longformer", longformer, {PAPER: 5, TODAY: 5}, logs=(PAPER, TODAY)),
        Row("longformer_global", longformer_global, {PAPER: 18}, recompiles=1, logs=(PAPER,)),
        Row("grounding_dino", grounding_dino, {PAPER: 16, TODAY: 12}),
        Row("grounding_dino_attention", grounding_dino_attention, {PAPER: 1, TODAY: 1}),
        Row("rt_detr_v2", rt_detr_v2, {TODAY: 8}),
        Row("rt_detr_v2_attention", rt_detr_v2_attention, {TODAY: 1}),
        Row("mixtral", mixtral, {PAPER: 8}),
        Row("clap", clap, {PAPER: 2, TODAY: 2}, recompiles=1, rounded_by_aot=True),
        Row("clap_mixed", clap_mixed, {PAPER: 2}, rounded_by_aot=True),
        Row("paligemma", paligemma, {TODAY: 3}),
        Row("internvl", internvl, {TODAY: 3}),
        Row("florence2", florence2, {TODAY: 3}),
        Row("florence2_fp16", florence2_fp16, {TODAY: 7}, HALF),
        Row("flaubert", flaubert, {TODAY: 2}, in_every_form=True),
        Row("flaubert_lengths", flaubert_lengths, {TODAY: 4}),
        Row("mimi", mimi, {TODAY: 33}),
        Row("jetmoe", jetmoe, {TODAY: 15}),
        Row("idefics3", idefics3, {TODAY: 8}),
        Row("vits", vits, {TODAY: 21}, still={TODAY: 0}),  # on the eager backend
        Row("qwen2_vl", qwen2_vl, {TODAY: 24}),
        Row("evolla", evolla, {TODAY: 6}),
        Row("eomt", eomt, {TODAY: 4}, needs="scipy"),
        Row("led", led, {TODAY: 5}, logs=(TODAY,)),
    )
}


def present(version: str) -> list[str]:
    """The rows of a version of transformers that can be built here."""
    return [
        name
        for name, row in ROWS.items()
        if version in row.breaks and (not row.needs or importlib.util.find_spec(row.needs))
    ]


def build(name: str) -> Built:
    """The module of row `name` in eval mode and its calls, the same in every process."""
    import transformers

    row = ROWS[name]
    torch.manual_seed(0)
    model, calls = row.builder(transformers)

    def cast(value: Any) -> Any:
        return value.to(row.dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    return model.eval().to(row.dtype), [{key: cast(value) for key, value in inputs.items()} for inputs in calls]
