"""What the files of a folder say of its model: the graph, the tokenizer, and how vectors are made of their output.

Everything is read when the embedder is made, except for the graph and the tokenizer themselves, so that a folder that
is no model is refused at once. Messages name the file or field that is missing and what is expected.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nacre.errors import InvalidInput

FIELD: Final = "embedder"
# The most word pieces of a passage, whatever the model takes: attention costs the square of them, and one vector for
# pages of text finds little.
PIECES_MAX: Final = 512
PIECES_MIN: Final = 8
# Graphs by what their names say of their weights, the best on a processor first. The full one is taken if it is there.
GRAPH: Final = "model.onnx"
_SMALLER: Final = ("quantized", "qint8", "int8", "quint8", "uint8", "q8", "fp16", "q4", "bnb4")
VECTOR_OUTPUT: Final = "sentence_embedding"  # of a graph that makes the vector of the whole text itself
POOLING: Final = Path("1_Pooling", "config.json")
MODES: Final = (
    "cls",
    "max",
    "mean",
    "mean_sqrt_len_tokens",
    "weightedmean",
    "lasttoken",
)  # in the order of their parts
_MODE_FIELDS: Final = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_ACTIVATIONS: Final = ("Identity", "Tanh")
# As sentence-transformers chooses them.
_QUERY_PROMPTS, _PASSAGE_PROMPTS = ("query",), ("document", "passage", "corpus")
_OFFSET_POSITIONS: Final = (
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
    "longformer",
)  # their first two are not used
_BLOCKS, _BLOCK_BYTES = 1024, 4096  # of a large file that its fingerprint is made of


@dataclass(frozen=True, slots=True)
class Dense:
    """A layer after pooling."""

    weights: Path  # safetensors
    activation: str


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model as its folder describes it."""

    folder: Path
    graph: Path
    tokenizer: Path
    pooling: tuple[str, ...]  # empty: the graph gives the vector itself
    includes_prompt: bool  # whether word pieces of a prompt count in pooling
    dense: tuple[Dense, ...]
    query_prompt: str
    passage_prompt: str
    lower_case: bool
    pieces_max: int  # special ones and those of the prompt included
    fingerprint: str


def read(given: Path) -> ModelFiles:
    """The model of a folder, or of one graph in a folder. Raises InvalidInput if there is none."""
    folder = given
    if given.suffix == ".onnx":
        folder = given.parent.parent if given.parent.name == "onnx" else given.parent
    if not folder.is_dir():
        raise _refused(folder, "does not exist" if not folder.exists() else "is a file", "name the folder of a model")
    graph = given if given.suffix == ".onnx" else _graph(folder)
    if not graph.is_file():
        raise _refused(folder, f"has no {graph.relative_to(folder)}", "name the folder, or a graph that it has")
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        raise _refused(
            folder,
            "has no tokenizer.json",
            "it is among the files of the model; a vocabulary alone (vocab.txt) is converted to it by transformers",
        )
    config = _json(folder, Path("config.json"))
    sentences = _json(folder, Path("sentence_bert_config.json"))
    try:
        pooling, includes_prompt, dense = _modules(folder)
    except InvalidInput:
        if not mentions(graph, VECTOR_OUTPUT):
            raise
        pooling, includes_prompt, dense = (), True, ()
    query, passage = _prompts(folder)
    kind = config.get("model_type")
    described = {
        "pooling": pooling,
        "includes_prompt": includes_prompt,
        "dense": [(each.activation, _digest(each.weights)) for each in dense],
        "prompts": (query, passage),
        "lower_case": sentences.get("do_lower_case") is True,
        "pieces_max": _pieces_max(folder, config, sentences),
        "tokenizer": hashlib.sha256(tokenizer.read_bytes()).hexdigest(),
        "graph": [_digest(each) for each in (graph, *_weights_beside(graph))],
    }
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    name = kind if isinstance(kind, str) and kind else "model"
    how = "+".join(pooling) or VECTOR_OUTPUT
    return ModelFiles(
        folder=folder,
        graph=graph,
        tokenizer=tokenizer,
        pooling=pooling,
        includes_prompt=includes_prompt,
        dense=dense,
        query_prompt=query,
        passage_prompt=passage,
        lower_case=bool(described["lower_case"]),
        pieces_max=_pieces_max(folder, config, sentences),
        fingerprint=f"onnx/{name}/{how}/{described['pieces_max']}/{digest[:16]}",
    )


def mentions(file: Path, word: str) -> bool:
    """Whether a file has this word: names of operators and outputs stand in a graph as they are."""
    if not file.stat().st_size:
        return False
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return mapped.find(word.encode()) >= 0


def linear(dense: Dense) -> Mapping[str, Any]:
    """The arrays of a dense layer by name, from a file of safetensors. Raises ValueError for what cannot be read."""
    import numpy as np

    content = dense.weights.read_bytes()
    length = int.from_bytes(content[:8], "little")
    types: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "F64": np.dtype("<f8")}
    arrays = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            start, end = (8 + length + each for each in entry["data_offsets"])
            array = np.frombuffer(content[start:end], types[entry["dtype"]]).reshape(entry["shape"])
            arrays[name] = array.astype(np.float32)
    return arrays


# ---------------------------------------------------------------- the graph


def _graph(folder: Path) -> Path:
    """The graph with full weights, or else the first of the smaller ones."""
    for place in (folder, folder / "onnx"):
        if (place / GRAPH).is_file():
            return place / GRAPH
    found = [each for place in (folder, folder / "onnx") for each in sorted(place.glob("*.onnx"))]
    if not found:
        raise _refused(folder, f"has no {GRAPH}, nor one in onnx/", "export the model to ONNX, or name another folder")
    return min(found, key=_rank)


def _rank(graph: Path) -> int:
    return next((rank for rank, word in enumerate(_SMALLER) if word in graph.stem.lower()), len(_SMALLER))


def _weights_beside(graph: Path) -> list[Path]:
    """Files of weights that are too large for the graph's own."""
    return sorted(each for each in graph.parent.glob(f"{graph.name}[_.]*data*") if each.is_file())


def _digest(file: Path) -> str:
    """A hash of a file's size and of blocks that are spread over it: all of a small one.

    Weights that were trained or quantised differently differ everywhere, and to read all of a large model takes longer
    than a search.
    """
    size = file.stat().st_size
    found = hashlib.sha256(str(size).encode())
    step = max(_BLOCK_BYTES, size // _BLOCKS)
    with file.open("rb", buffering=0) as opened:
        for start in range(0, size, step):
            opened.seek(start)
            found.update(opened.read(_BLOCK_BYTES))
    return found.hexdigest()


# ---------------------------------------------------------------- what follows the graph


def _modules(folder: Path) -> tuple[tuple[str, ...], bool, tuple[Dense, ...]]:
    """How outputs are pooled, whether the prompt counts, and the layers after that."""
    pooling, dense = POOLING, []
    for module in _listed(folder, Path("modules.json")):
        kind, place = (str(module.get(field, "")) for field in ("type", "path"))
        match kind.rpartition(".")[2]:
            case "Transformer" | "Normalize":  # the graph; vectors are normalised, whether this is there or not
                pass
            case "Pooling":
                pooling = Path(place, "config.json")
            case "Dense":
                dense.append(_dense(folder, Path(place)))
            case other:
                raise _refused(
                    folder,
                    f"has a module that is not known, {other or module}, in modules.json",
                    f"Transformer, Pooling, Dense and Normalize are known, or a graph with the output {VECTOR_OUTPUT}",
                )
    found = _json(folder, pooling)
    if not found:
        raise _refused(
            folder,
            f"has no {pooling}, which says how the vectors of word pieces become one",
            'take it from the model\'s page, or write {"pooling_mode_mean_tokens": true} into it, or '
            '{"pooling_mode_cls_token": true}, as that page says',
        )
    said = found.get("pooling_mode")
    asked = [said] if isinstance(said, str) else said
    modes = set(asked) if isinstance(asked, list) else {_MODE_FIELDS[each] for each in _MODE_FIELDS if found.get(each)}
    unknown = sorted(str(each) for each in modes if each not in MODES)
    if unknown or not modes:
        raise _refused(
            folder,
            f"names {unknown[0]} in {pooling}, which is not known" if unknown else f"names no way to pool in {pooling}",
            f"one of these must be true: {', '.join(_MODE_FIELDS)}",
        )
    ordered = tuple(mode for mode in MODES if mode in modes)
    return ordered, found.get("include_prompt") is not False, tuple(dense)


def _dense(folder: Path, place: Path) -> Dense:
    config, weights = _json(folder, place / "config.json"), folder / place / "model.safetensors"
    activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise _refused(
            folder, f"has the activation {activation} in {place / 'config.json'}", "Identity or Tanh is known"
        )
    if not weights.is_file():
        raise _refused(folder, f"has no {place / weights.name}", "convert the weights of the layer to safetensors")
    return Dense(weights, activation)


def _prompts(folder: Path) -> tuple[str, str]:
    """What is put before a question, and before a passage."""
    file = Path("config_sentence_transformers.json")
    config = _json(folder, file)
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(each, str) for each in prompts.values()):
        raise _refused(folder, f"has no texts by name in the field prompts of {file}", 'such as {"query": "query: "}')
    default = config.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise _refused(folder, f"has no prompt {default!r}, which {file} names as default_prompt_name", "add it")
    usual = prompts.get(default, "")
    query, passage = (
        next((prompts[name] for name in names if name in prompts), usual)
        for names in (_QUERY_PROMPTS, _PASSAGE_PROMPTS)
    )
    return query, passage


def _pieces_max(folder: Path, config: Mapping[str, Any], sentences: Mapping[str, Any]) -> int:
    """The least of what its files allow, and of PIECES_MAX."""
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _OFFSET_POSITIONS:
        positions -= 2
    tokens = _json(folder, Path("tokenizer_config.json")).get("model_max_length")
    asked = (sentences.get("max_seq_length"), tokens, positions)
    known = [int(each) for each in asked if isinstance(each, int | float) and not isinstance(each, bool)]
    least = min([*known, PIECES_MAX])
    if least < PIECES_MIN:
        raise _refused(folder, f"allows {least} word pieces (max_seq_length)", f"at least {PIECES_MIN} are needed")
    return least


# ---------------------------------------------------------------- reading


def _json(folder: Path, file: Path) -> dict[str, Any]:
    """A file of settings; nothing if it is not there."""
    found = _read(folder, file)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _refused(folder, f"has no JSON object in {file}", "take it from the model's page again")
    return found


def _listed(folder: Path, file: Path) -> Sequence[Mapping[str, Any]]:
    found = _read(folder, file)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _refused(folder, f"has no list of modules in {file}", "take it from the model's page again")
    return found


def _read(folder: Path, file: Path) -> object:
    try:
        return json.loads((folder / file).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise _refused(folder, f"has a {file} that cannot be read ({error})", "take it from the model's page") from None


def _refused(folder: Path, problem: str, remedy: str) -> InvalidInput:
    return InvalidInput(FIELD, f"the folder {folder} is no model: it {problem}; {remedy}")
