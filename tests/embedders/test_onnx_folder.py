"""Any model in a folder: what its files say is done, by hand against numpy, and what they lack is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import nacre
from command_line import Cli
from nacre import EmbedderFailed, EmbedderMismatch, InvalidInput
from nacre.embedders.minilm import FOLDER as MINILM_FOLDER
from nacre.embedders.minilm import MiniLM
from nacre.embedders.onnx_folder import files
from nacre.embedders.onnx_folder.embedder import OnnxFolder
from onnx_folders import DIMENSIONS, TABLE, WORDS, folder, lookup, safetensors, words

MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}


def rows(text: str) -> Any:
    """The vectors of a text's pieces, [CLS] and [SEP] included."""
    return TABLE[[1, *(WORDS.index(word) for word in text.split()), 2]]


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


# ---------------------------------------------------------------- what the files say


POOLINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "mean": ("pooling_mode_mean_tokens", lambda found: found.mean(axis=0)),
    "cls": ("pooling_mode_cls_token", lambda found: found[0]),
    "max": ("pooling_mode_max_tokens", lambda found: found.max(axis=0)),
    "mean_sqrt": ("pooling_mode_mean_sqrt_len_tokens", lambda found: found.sum(axis=0) / np.sqrt(len(found))),
    "weighted": (
        "pooling_mode_weightedmean_tokens",
        lambda found: sum(weight * row for weight, row in enumerate(found, 1)) / sum(range(1, len(found) + 1)),
    ),
    "last": ("pooling_mode_lasttoken", lambda found: found[-1]),
}


@pytest.mark.parametrize("field, by_hand", POOLINGS.values(), ids=POOLINGS.keys())  # noqa: PT006
def test_vectors_are_pooled_as_the_folder_says(tmp_path: Path, field: str, by_hand: Callable[[Any], Any]) -> None:
    embedder = OnnxFolder(folder(tmp_path, pooling={field: True}, modules=MODULES))
    for text in ("apple pie", "cherry cake hot kiln", "hot"):
        np.testing.assert_allclose(embedder.embed_query(text), unit(by_hand(rows(text))), atol=1e-6)
    assert embedder.dimensions == DIMENSIONS


def test_ways_to_pool_are_joined_in_their_order(tmp_path: Path) -> None:
    asked = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}
    embedder = OnnxFolder(folder(tmp_path, pooling=asked))
    found = rows("apple pie")
    expected = np.concatenate([found[0], found.max(axis=0), found.mean(axis=0)])
    np.testing.assert_allclose(embedder.embed_query("apple pie"), unit(expected), atol=1e-6)
    assert embedder.dimensions == 3 * DIMENSIONS


@pytest.mark.parametrize("said", ["max", ["max"]])
def test_a_newer_field_names_the_way_to_pool(tmp_path: Path, said: object) -> None:
    embedder = OnnxFolder(folder(tmp_path, pooling={"pooling_mode": said}))
    np.testing.assert_allclose(embedder.embed_query("hot pie"), unit(rows("hot pie").max(axis=0)), atol=1e-6)


def test_many_texts_have_the_vectors_that_each_has_alone(tmp_path: Path) -> None:
    embedder = OnnxFolder(folder(tmp_path), threads=2)
    texts = [" ".join(WORDS[3 + (number * step) % 6] for step in range(number % 7)) for number in range(60)]
    together = embedder.embed_passages(texts)
    for text, vector in zip(texts, together, strict=True):
        assert np.array_equal(embedder.embed_query(text), vector)
    assert embedder.embed_passages([]).shape == (0, DIMENSIONS)


PROMPTS = {"prompts": {"query": "query: ", "passage": "passage: "}}


def test_questions_and_passages_have_their_own_prompts(tmp_path: Path) -> None:
    embedder = OnnxFolder(folder(tmp_path, prompts=PROMPTS))
    np.testing.assert_allclose(embedder.embed_query("pie"), unit(rows("query : pie").mean(axis=0)), atol=1e-6)
    passage = embedder.embed_passages(["pie"])[0]
    np.testing.assert_allclose(passage, unit(rows("passage : pie").mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize(
    ("prompts", "query", "passage"),
    [
        ({"query": "hot: ", "document": "cake: "}, "hot : pie", "cake : pie"),
        ({"query": "hot: "}, "hot : pie", "pie"),
        ({"corpus": "cake: "}, "pie", "cake : pie"),
        ({"query": "hot: ", "other": "cherry: "}, "hot : pie", "cherry : pie"),  # with the default below
        ({}, "pie", "pie"),
        (None, "pie", "pie"),
    ],
)
def test_prompts_are_chosen_by_their_names(tmp_path: Path, prompts: Any, query: str, passage: str) -> None:
    default = "other" if prompts and "other" in prompts else None
    embedder = OnnxFolder(folder(tmp_path, prompts={"prompts": prompts, "default_prompt_name": default}))
    np.testing.assert_allclose(embedder.embed_query("pie"), unit(rows(query).mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose(embedder.embed_passages(["pie"])[0], unit(rows(passage).mean(axis=0)), atol=1e-6)


def test_a_prompt_may_be_left_out_of_pooling(tmp_path: Path) -> None:
    pooling = {"pooling_mode_mean_tokens": True, "include_prompt": False}
    embedder = OnnxFolder(folder(tmp_path, prompts=PROMPTS, pooling=pooling))
    found = rows("query : hot pie")[3:]  # without [CLS] and the prompt
    np.testing.assert_allclose(embedder.embed_query("hot pie"), unit(found.mean(axis=0)), atol=1e-6)


@pytest.mark.parametrize("activation", ["torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"])
def test_a_dense_layer_follows(tmp_path: Path, activation: str) -> None:
    given = folder(tmp_path, modules=[*MODULES[:2], DENSE])
    weight, bias = np.arange(24, dtype=np.float32).reshape(4, 6) / 10, np.array([1, -1, 0, 0.5], np.float32)
    (given / "2_Dense").mkdir()
    (given / "2_Dense" / "config.json").write_text(json.dumps({"activation_function": activation}))
    (given / "2_Dense" / "model.safetensors").write_bytes(safetensors({"linear.weight": weight, "linear.bias": bias}))
    embedder = OnnxFolder(given)
    expected = weight @ rows("hot kiln").mean(axis=0) + bias
    expected = np.tanh(expected) if activation.endswith("Tanh") else expected
    np.testing.assert_allclose(embedder.embed_query("hot kiln"), unit(expected), atol=1e-6)
    assert embedder.dimensions == 4


def test_a_graph_may_make_the_vector_itself(tmp_path: Path) -> None:
    graph = lookup(output="sentence_embedding", sentence=True)
    embedder = OnnxFolder(folder(tmp_path, graph=graph, pooling=None))
    np.testing.assert_allclose(embedder.embed_query("hot pie"), unit(rows("hot pie").mean(axis=0)), atol=1e-6)
    assert "/sentence_embedding/" in embedder.fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": ("input_ids",)},
        {"inputs": ("input_ids", "attention_mask", "token_type_ids", "position_ids")},
        {"kind": TensorProto.INT32},
        {"output": "token_embeddings"},
        {"output": "whatever"},
        {"dimensions": "hidden"},  # the graph does not say how many
    ],
)
def test_graphs_differ_in_inputs_and_outputs(tmp_path: Path, changes: Any) -> None:
    embedder = OnnxFolder(folder(tmp_path, graph=lookup(**changes)))
    expected = unit(rows("apple pie").mean(axis=0))
    np.testing.assert_allclose(embedder.embed_passages(["apple pie"])[0], expected, atol=1e-6)
    assert embedder.dimensions == DIMENSIONS


def test_the_full_graph_is_taken_or_else_the_best_of_the_smaller_ones(tmp_path: Path) -> None:
    for name in ("onnx/model_fp16.onnx", "onnx/model_quantized.onnx", "onnx/model_q4.onnx"):
        folder(tmp_path, name=name)
    assert files.read(tmp_path).graph.name == "model_quantized.onnx"
    folder(tmp_path, name="onnx/model.onnx")
    assert files.read(tmp_path).graph == tmp_path / "onnx" / "model.onnx"
    folder(tmp_path, name="model.onnx")
    assert files.read(tmp_path).graph == tmp_path / "model.onnx"
    assert files.read(tmp_path / "onnx" / "model_q4.onnx").graph.name == "model_q4.onnx"


@pytest.mark.parametrize(
    ("sentences", "config", "tokens", "expected"),
    [
        ({"max_seq_length": 16}, {"max_position_embeddings": 32}, {"model_max_length": 24}, 16),
        ({"max_seq_length": None}, {"max_position_embeddings": 32}, {"model_max_length": 24}, 24),
        ({}, {"max_position_embeddings": 32}, {"model_max_length": 1e30}, 32),
        ({}, {"max_position_embeddings": 34, "model_type": "xlm-roberta"}, {}, 32),
        ({"max_seq_length": 8192}, {}, {}, 512),  # at the most
    ],
)
def test_what_a_model_takes_is_the_least_of_what_its_files_say(
    tmp_path: Path, sentences: Any, config: Any, tokens: Any, expected: int
) -> None:
    given = folder(tmp_path, sentences=sentences)
    (given / "config.json").write_text(json.dumps(config))
    (given / "tokenizer_config.json").write_text(json.dumps(tokens))
    assert files.read(given).pieces_max == expected
    embedder = OnnxFolder(given)
    assert embedder.pieces_max == expected - 2
    longer = " ".join(["apple", "pie"] * 600)
    shown = " ".join(longer.split()[: expected - 2])
    np.testing.assert_allclose(embedder.embed_query(longer), unit(rows(shown).mean(axis=0)), atol=1e-5)


def test_truncation_and_padding_of_the_tokenizer_do_not_count(tmp_path: Path) -> None:
    tokenizer = words()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=20)
    embedder = OnnxFolder(folder(tmp_path, tokenizer=tokenizer))
    text = "apple pie cherry cake hot kiln"
    np.testing.assert_allclose(embedder.embed_query(text), unit(rows(text).mean(axis=0)), atol=1e-6)


def test_long_texts_are_cut_where_the_model_ends(tmp_path: Path) -> None:
    model = folder(tmp_path / "model", sentences={"max_seq_length": 12})
    with nacre.open(tmp_path / "m.db", embedder=f"onnx:{model}") as memory:
        kept = memory.remember(" ".join(["apple pie"] * 20 + ["hot kiln"]))
        hit = memory.search("hot kiln", mode="semantic", rerank=False).hits[0]
    assert hit.id == kept.id


@pytest.mark.parametrize("text", ["", " ", "apple", "naïve 数学 🙂" * 30, "\ud800 lone", "a" * 1000, "x\n\ty  z"])
def test_units_cover_a_text_and_count_its_pieces(tmp_path: Path, text: str) -> None:
    embedder = OnnxFolder(folder(tmp_path))
    units = embedder.weigh(text)
    assert "".join(text[span.start : span.end] for span, _ in units) == re.sub(r"\s", "", text)
    assert all(pieces > 0 for _, pieces in units)
    assert np.isfinite(embedder.embed_query(text)).all()


# ---------------------------------------------------------------- what a vocabulary knows


def test_a_vocabulary_knows_the_scripts_that_it_has_words_of(tmp_path: Path) -> None:
    cyrillic = {f"{one}{other}": number for number, (one, other) in enumerate(_pairs("абвгдежзиклмн"))}
    tokenizer = words()
    vocabulary = {word: number for number, word in enumerate([*WORDS, *cyrillic])}
    tokenizer.model = models.WordPiece(vocabulary, unk_token="[UNK]")
    bare, richer = (folder(tmp_path / name, tokenizer=each) for name, each in (("a", words()), ("b", tokenizer)))
    assert OnnxFolder(bare).vocabulary_coverage("apple каша") == pytest.approx(5 / 9)
    assert OnnxFolder(richer).vocabulary_coverage("apple каша") == 1.0
    assert OnnxFolder(richer).vocabulary_coverage("apple 数学") == pytest.approx(5 / 7)
    assert OnnxFolder(bare).vocabulary_coverage("ERR_2270 pie") == pytest.approx(3 / 11)
    assert OnnxFolder(bare).vocabulary_coverage(" ") == 0


def _pairs(letters: str) -> list[tuple[str, str]]:
    return [(one, other) for one in letters for other in letters]


def test_a_vocabulary_of_bytes_is_read_as_text(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [" ".join(f"{one}{other}{one}" for one, other in _pairs("абвгдежзиклмнопрст")) for _ in range(4)]
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    embedder = OnnxFolder(folder(tmp_path, tokenizer=tokenizer))
    assert embedder.vocabulary_coverage("каша") == 1.0
    assert embedder.vocabulary_coverage("数学") == 0.0


# ---------------------------------------------------------------- the same as our own


@pytest.mark.slow
def test_minilm_in_a_folder_has_the_vectors_of_minilm(tmp_path: Path) -> None:
    """Our graph with its pooling, and a tokenizer of the reference implementation with our vocabulary."""
    pieces = (MINILM_FOLDER / "vocab.txt").read_text("utf-8").split("\n")
    tokenizer = Tokenizer(models.WordPiece({each: at for at, each in enumerate(pieces) if each}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    numbers = [(each, pieces.index(each)) for each in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*numbers)
    graph = onnx.load(str(MINILM_FOLDER / "model.onnx"))
    for node in graph.graph.node:  # the output of the text, by the name that such graphs use
        node.output[:] = ["sentence_embedding" if each == "embedding" else each for each in node.output]
        node.input[:] = ["sentence_embedding" if each == "embedding" else each for each in node.input]
    for output in graph.graph.output:
        output.name = "sentence_embedding" if output.name == "embedding" else output.name
    given = folder(tmp_path, graph=graph, tokenizer=tokenizer, pooling=None, sentences={"max_seq_length": 256})
    (given / "config.json").write_text(json.dumps({"model_type": "bert", "max_position_embeddings": 512}))
    ours, theirs = MiniLM(), OnnxFolder(given)
    texts = [
        "The kiln is hot.",
        "Where did we move the backups of the Postgres cluster to?",
        "Der Ofen ist heiß, naïve Café, 数学は楽しい",
        "a long text of many words " * 60,
        "",
    ]
    np.testing.assert_allclose(theirs.embed_passages(texts), ours.embed_passages(texts), atol=1e-5)
    np.testing.assert_allclose(theirs.embed_query(texts[1]), ours.embed_query(texts[1]), atol=1e-5)
    assert theirs.pieces_max == ours.pieces_max
    assert [span for span, _ in theirs.weigh(texts[1])] == [span for span, _ in ours.weigh(texts[1])]


# ---------------------------------------------------------------- what is no model


def _without(name: str) -> Callable[[Path], None]:
    return lambda place: (place / name).unlink()


def _with(name: str, content: str) -> Callable[[Path], None]:
    def write(place: Path) -> None:
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(content)

    return write


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without("model.onnx"), "has no model.onnx, nor one in onnx/; export the model to ONNX"),
        (_without("tokenizer.json"), "has no tokenizer.json; it is among the files of the model"),
        (
            _without("1_Pooling/config.json"),
            'has no 1_Pooling/config.json, which says how .*"pooling_mode_mean_tokens"',
        ),
        (_with("1_Pooling/config.json", "{}"), "has no 1_Pooling/config.json, which says how"),
        (_with("1_Pooling/config.json", '{"pooling_mode_mean_tokens": false}'), "names no way to pool in 1_Pooling"),
        (_with("1_Pooling/config.json", '{"pooling_mode": "attention"}'), "names attention in 1_Pooling/config.json"),
        (_with("1_Pooling/config.json", "[1]"), "has no JSON object in 1_Pooling/config.json"),
        (_with("1_Pooling/config.json", "{"), "has a 1_Pooling/config.json that cannot be read"),
        (_with("config.json", "\x00"), "has a config.json that cannot be read"),
        (_with("modules.json", '{"a": 1}'), "has no list of modules in modules.json"),
        (_with("modules.json", '[{"type": "sentence_transformers.models.CLIPModel"}]'), "is not known, CLIPModel"),
        (_with("modules.json", json.dumps([*MODULES, DENSE])), "has no 2_Dense/model.safetensors; convert the weights"),
        (_with("config_sentence_transformers.json", '{"prompts": ["query"]}'), "no texts by name in the field prompts"),
        (_with("config_sentence_transformers.json", '{"default_prompt_name": "q"}'), "has no prompt 'q', which"),
        (_with("sentence_bert_config.json", '{"max_seq_length": 3}'), r"allows 3 word pieces \(max_seq_length\)"),
    ],
)
def test_a_folder_that_is_no_model_is_refused_with_what_it_lacks(
    tmp_path: Path, path: Path, change: Callable[[Path], None], said: str
) -> None:
    place = folder(tmp_path / "model")
    change(place)
    with pytest.raises(InvalidInput, match=rf"^embedder: the folder .*model is no model: it {said}|{said}") as refused:
        nacre.open(path, embedder=f"onnx:{place}")
    assert refused.value.field == "embedder"
    assert not path.exists()


def test_a_folder_that_is_not_there(tmp_path: Path, path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none is no model: it does not exist; name the folder of a model"):
        nacre.open(path, embedder=f"onnx:{tmp_path / 'none'}")
    with pytest.raises(InvalidInput, match=r"names no folder; write it like onnx:/models/gte-small"):
        nacre.open(path, embedder="onnx:")


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (lookup(inputs=("input_ids", "pixel_values")), "asks for the input pixel_values; input_ids, attention_mask,"),
        (lookup(output="pooler", sentence=True), "no output with a vector for each word piece, only pooler; export it"),
    ],
)
def test_a_graph_that_does_something_else(tmp_path: Path, path: Path, graph: onnx.ModelProto, said: str) -> None:
    place = folder(tmp_path / "model", graph=graph)
    with nacre.open(path, embedder=f"onnx:{place}") as memory:
        with pytest.raises(EmbedderFailed, match=rf"model\.onnx .*{said}.*; the texts were not stored: try again, or"):
            memory.remember("apple pie")
        assert memory.stats().memories == 0


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"torn"])
def test_a_damaged_file_stores_nothing_and_leaves_words(tmp_path: Path, path: Path, file: str, content: bytes) -> None:
    place = folder(tmp_path / "model")
    with nacre.open(path, embedder="none") as memory:
        kept = memory.remember("apple pie").id
    (place / file).write_bytes(content)
    with nacre.open(path, embedder=f"onnx:{place}") as memory:
        with pytest.raises(EmbedderFailed, match=f"{file} cannot be (loaded|read)"):
            memory.remember("cherry cake")
        assert memory.stats().memories == 1
        result = memory.search("apple")
        assert [hit.id for hit in result.hits] == [kept]
        assert any("the embedder failed: keyword results only" in note and file in note for note in result.notes)


def test_without_the_extra_an_error_says_what_to_install(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(tmp_path / "model")
    with nacre.open(path, embedder=f"onnx:{place}") as memory:
        kept = memory.remember("apple pie").id
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with nacre.open(path, embedder=f"onnx:{place}") as memory:
        with pytest.raises(EmbedderFailed, match=r"install it with `pip install 'nacre-memory\[embedders\]'`"):
            memory.remember("cherry cake")
        result = memory.search("apple")  # everything is readable
        assert [hit.id for hit in result.hits] == [kept]
        assert any("nacre-memory[embedders]" in note for note in result.notes)
        assert "apple pie" in memory.context("apple").text
        assert memory.why("apple", kept) is not None


# ---------------------------------------------------------------- the same model, or another


def test_the_fingerprint_is_that_of_what_changes_vectors(tmp_path: Path) -> None:
    first = files.read(folder(tmp_path / "a")).fingerprint
    shutil.copytree(tmp_path / "a", tmp_path / "moved")
    (tmp_path / "moved" / "README.md").write_text("a model")
    assert files.read(tmp_path / "moved").fingerprint == first
    others = [
        folder(tmp_path / "pooling", pooling={"pooling_mode_max_tokens": True}),
        folder(tmp_path / "prompt", prompts=PROMPTS),
        folder(tmp_path / "length", sentences={"max_seq_length": 16}),
        folder(tmp_path / "case", sentences={"do_lower_case": True}),
        folder(tmp_path / "graph", graph=lookup(inputs=("input_ids",))),
    ]
    (tmp_path / "moved" / "tokenizer.json").write_text(words().to_str() + "\n")
    found = [first, *(files.read(each).fingerprint for each in (*others, tmp_path / "moved"))]
    assert len(set(found)) == len(found)


def test_weights_beside_the_graph_count(tmp_path: Path) -> None:
    place = folder(tmp_path)
    beside = place / "model.onnx_data"
    beside.write_bytes(os.urandom(10_000_000))
    first = files.read(place).fingerprint
    with beside.open("r+b") as opened:  # as other weights differ: everywhere
        opened.write(os.urandom(10_000_000))
    assert files.read(place).fingerprint != first


def test_another_model_is_refused_until_memories_are_embedded_again(tmp_path: Path, path: Path) -> None:
    one = folder(tmp_path / "one")
    other = folder(tmp_path / "other", pooling={"pooling_mode_max_tokens": True})
    with nacre.open(path, embedder=f"onnx:{one}") as memory:
        memory.remember_many(["apple pie", "cherry cake", "hot kiln"])
    with pytest.raises(EmbedderMismatch, match=r"come from onnx/tiny/mean/32/\w+, not from onnx/tiny/max/32/\w+; run"):
        nacre.open(path, embedder=f"onnx:{other}")
    with nacre.open(path, embedder=f"onnx:{other}", switch_model=True) as memory:
        assert [state.done for state in memory.reembed()][-1] == 3
        assert memory.search("cherry cake", mode="semantic").hits[0].text == "cherry cake"


def test_a_model_that_fails_costs_no_vectors(tmp_path: Path, path: Path) -> None:
    one, other = folder(tmp_path / "one"), folder(tmp_path / "other", pooling={"pooling_mode_max_tokens": True})
    with nacre.open(path, embedder=f"onnx:{one}") as memory:
        memory.remember("apple pie")
        model = memory.stats().model
    (other / "model.onnx").write_bytes(b"torn")
    with (
        nacre.open(path, embedder=f"onnx:{other}", switch_model=True) as memory,
        pytest.raises(EmbedderFailed, match="cannot be loaded"),
    ):
        list(memory.reembed())
    with nacre.open(path, embedder=f"onnx:{one}") as memory:
        assert (memory.stats().model, memory.stats().pending) == (model, 0)


# ---------------------------------------------------------------- wherever a store is named


def test_a_folder_is_named_on_the_command_line(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "models" / "tiny")
    monkeypatch.chdir(tmp_path / "models")
    assert cli("--embedder", "onnx:tiny", "remember", "apple pie").code == 0
    assert cli("--json", "--embedder", "onnx:tiny", "search", "pie", "--mode", "semantic").json["hits"]
    monkeypatch.setenv("NACRE_EMBEDDER", f"onnx:{tmp_path}/models/tiny")
    shown = cli("--json", "config").json
    assert shown["embedder"]["value"] == f"onnx:{tmp_path}/models/tiny"
    assert cli("search", "pie", "--mode", "semantic").code == 0
    monkeypatch.delenv("NACRE_EMBEDDER")
    Path(os.environ["NACRE_CONFIG"]).write_text(f'embedder = "onnx:{tmp_path}/models/tiny"\n')
    assert cli("search", "pie", "--mode", "semantic").code == 0
    failed = cli("--embedder", "onnx:nowhere", "search", "pie")
    assert failed.code == 2
    assert "nowhere is no model: it does not exist" in failed.err
