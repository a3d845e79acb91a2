"""Architectures of transformers that nobody here wrote: no crash, torch's own breaks, and a fix or an honest word for each."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from compile_inspect import Target, inspect
from compile_inspect.fixes.planning import advise_breaks

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.exhaustive

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37, "vocab_size": 99}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37, "image_size": 32}
SEQUENCE = {"d_model": 32, "d_ff": 37, "num_layers": 2, "num_heads": 4, "d_kv": 8, "vocab_size": 99}
CONSEQUENCES = {"GB7000"}
"""A break in a loop is told beside the one that it is."""


def words(count: int = 16) -> torch.Tensor:
    return torch.randint(0, 99, (2, count))


def made(model: str, configuration: str, /, **options: Any) -> Any:
    return getattr(transformers, model)(getattr(transformers, configuration)(**options))


ARCHITECTURES: dict[str, Callable[[], tuple[Any, dict[str, torch.Tensor]]]] = {
    "gpt2": lambda: (
        made("GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, vocab_size=99),
        {"input_ids": words(), "labels": words()},
    ),
    "bert": lambda: (made("BertModel", "BertConfig", **SMALL), {"input_ids": words()}),
    "llama": lambda: (made("LlamaForCausalLM", "LlamaConfig", **SMALL, num_key_value_heads=2), {"input_ids": words()}),
    "t5": lambda: (
        made("T5ForConditionalGeneration", "T5Config", **SEQUENCE, decoder_start_token_id=0),
        {"input_ids": words(), "labels": words()},
    ),
    "vit": lambda: (made("ViTModel", "ViTConfig", **IMAGE, patch_size=8), {"pixel_values": torch.randn(2, 3, 32, 32)}),
    "mixtral": lambda: (
        made("MixtralForCausalLM", "MixtralConfig", **SMALL, num_key_value_heads=2, num_local_experts=4),
        {"input_ids": words()},
    ),
    "longformer": lambda: (
        made("LongformerModel", "LongformerConfig", **SMALL, attention_window=[4, 4], max_position_embeddings=64),
        {"input_ids": words()},
    ),
    "bigbird": lambda: (
        made("BigBirdModel", "BigBirdConfig", **SMALL, max_position_embeddings=64, block_size=2, num_random_blocks=1),
        {"input_ids": words(32)},
    ),
    "mamba": lambda: (
        made("MambaForCausalLM", "MambaConfig", hidden_size=32, num_hidden_layers=2, vocab_size=99), {"input_ids": words()}
    ),
    "switch": lambda: (
        made("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", **SEQUENCE, decoder_start_token_id=0),
        {"input_ids": words(), "labels": words()},
    ),
    "clip vision": lambda: (
        made("CLIPVisionModel", "CLIPVisionConfig", **IMAGE, patch_size=8), {"pixel_values": torch.randn(2, 3, 32, 32)}
    ),
}  # fmt: skip


class Listener(logging.Handler):
    """The identifiers of breaks in torch's own log."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.seen |= {name.upper() for name in re.findall(r"gb/(gb\d+)\.html", record.getMessage())}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_breaks_of_an_architecture(name: str) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, inputs = ARCHITECTURES[name]()
    listener = Listener()
    torch._logging.set_logs(graph_breaks=True)
    logger = logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks")
    logger.addHandler(listener)
    try:
        inspection = inspect(Target(model, (), inputs), backend="eager")
    finally:
        logger.removeHandler(listener)
        torch._logging.set_logs()
    assert inspection.compilations and not inspection.missing_evidence
    ours = {cause.identifier for cause in inspection.breaks if cause.identifier}
    assert listener.seen - CONSEQUENCES <= ours
    for finding in advise_breaks(inspection):
        assert finding.advice.reason
        assert finding.cause.location is not None and not finding.cause.location.in_torch
        assert not any(
            item.file.startswith(transformers.__path__[0]) for fix in finding.advice.proposals for item in fix.replacements
        )
