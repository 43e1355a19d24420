"""Small models in folders, as sentence-transformers keeps them: a table of vectors, looked up by word piece."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = ("[UNK]", "[CLS]", "[SEP]", "apple", "pie", "cherry", "cake", "kiln", "hot", "query", "passage", ":", "##s")
DIMENSIONS = 6
# A number for each word piece and dimension, none of which is the same.
TABLE = np.random.default_rng(7).normal(size=(len(WORDS), DIMENSIONS)).astype(np.float32)

Json = Mapping[str, Any]
MEAN: Json = {"word_embedding_dimension": DIMENSIONS, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}


def folder(
    place: Path,
    *,
    graph: onnx.ModelProto | None = None,
    name: str = "model.onnx",
    pooling: Json | None = MEAN,
    modules: Sequence[Json] | None = None,
    sentences: Json | None = None,
    prompts: Json | None = None,
    tokenizer: Tokenizer | None = None,
) -> Path:
    """A folder with these files. None: without that file."""
    place.mkdir(parents=True, exist_ok=True)
    (place / name).parent.mkdir(exist_ok=True)
    onnx.save(lookup() if graph is None else graph, str(place / name))
    (words() if tokenizer is None else tokenizer).save(str(place / "tokenizer.json"))
    written: dict[str, object] = {
        "config.json": {"model_type": "tiny", "max_position_embeddings": 32},
        "1_Pooling/config.json": pooling,
        "modules.json": modules,
        "sentence_bert_config.json": sentences,
        "config_sentence_transformers.json": prompts,
    }
    for file, content in written.items():
        if content is not None:
            (place / file).parent.mkdir(exist_ok=True)
            (place / file).write_text(json.dumps(content), "utf-8")
    return place


def words() -> Tokenizer:
    """The words above, between [CLS] and [SEP]."""
    made = Tokenizer(models.WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return made


def lookup(
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    output: str = "last_hidden_state",
    dimensions: int | str = DIMENSIONS,
    kind: int = TensorProto.INT64,
    sentence: bool = False,
) -> onnx.ModelProto:
    """A graph that looks each word piece up. `sentence`: it gives the mean of them itself, with the output's name."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["found" if sentence else output])]
    shape: list[int | str] = ["texts", "pieces", dimensions]
    if sentence:
        nodes.append(helper.make_node("ReduceMean", ["found"], [output], axes=[1], keepdims=0))
        shape = ["texts", dimensions]
    made = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info(each, kind, ["texts", "pieces"]) for each in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(TABLE, "table")],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def safetensors(arrays: Mapping[str, np.ndarray]) -> bytes:
    """A file of arrays in that format."""
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    content = b""
    for name, array in arrays.items():
        packed = array.astype("<f4").tobytes()
        ends = [len(content), len(content) + len(packed)]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": ends}
        content += packed
    said = json.dumps(header).encode()
    return len(said).to_bytes(8, "little") + said + content
