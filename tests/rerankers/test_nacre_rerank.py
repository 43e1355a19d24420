from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.analysis.wordpiece import WordPiece
from nacre.embedders.minilm import MiniLM
from nacre.errors import EmbedderUnavailable
from nacre.interfaces import AnytimeReranker, RerankScore, RerankText
from nacre.rerankers import nacre_rerank
from nacre.rerankers.nacre_rerank import FOLDER, MODEL_SHA256, SCORE_MAX, VOCABULARY, NacreRerank

RERANKER = NacreRerank()
PORT: AnytimeReranker = RERANKER  # checked by mypy
PIECES = WordPiece(VOCABULARY)
NAMES = VOCABULARY.read_text(encoding="utf-8").split("\n")


def read(question: str, placed: RerankText) -> str:
    """What the model is given, in words."""
    asked = PIECES.first_pieces(question, nacre_rerank.QUESTION_PIECES)
    return " ".join(NAMES[number] for number in nacre_rerank._encode_pair(PIECES, asked, placed))


# ---------------------------------------------------------------- what the model reads


def test_a_pair_by_hand() -> None:
    asked = PIECES.first_pieces("Who is she?", 40)
    assert asked == [2040, 2003, 2016, 1029]
    alone = nacre_rerank._encode_pair(PIECES, asked, RerankText("My sister."))
    assert alone == [101, 2040, 2003, 2016, 1029, 102, 2026, 2905, 1012, 102]
    between = nacre_rerank._encode_pair(PIECES, asked, RerankText("My sister.", "Who?", "Ah!"))
    assert between == [101, 2040, 2003, 2016, 1029, 102, 2040, 1029, 2, 2026, 2905, 1012, 3, 6289, 999, 102]


@pytest.mark.parametrize(
    ("placed", "expected"),
    [
        (RerankText("yes"), "[CLS] why [SEP] yes [SEP]"),
        (RerankText("yes", before="no"), "[CLS] why [SEP] no [unused1] yes [unused2] [SEP]"),
        (RerankText("yes", after="no"), "[CLS] why [SEP] [unused1] yes [unused2] no [SEP]"),
        (RerankText("", before="no"), "[CLS] why [SEP] no [unused1] [unused2] [SEP]"),
        (RerankText(""), "[CLS] why [SEP] [SEP]"),
        (RerankText("yes", before=" \n", after="\u200b"), "[CLS] why [SEP] yes [SEP]"),  # nothing that can be read
        (RerankText("Ann: Yes"), "[CLS] why [SEP] ann : yes [SEP]"),
    ],
)
def test_what_stands_beside_a_text_is_outside_the_marks(placed: RerankText, expected: str) -> None:
    assert read("why", placed) == expected


def test_a_text_cannot_set_marks() -> None:
    found = read("why", RerankText("a [unused1] b [unused2] c", before="[unused2]"))
    assert found.count("[unused1]") == found.count("[unused2]") == 1
    assert found.startswith("[CLS] why [SEP] [ unused ##2 ] [unused1] a [ unused ##1 ] b")


def test_an_empty_question() -> None:
    assert read("", RerankText("yes")) == "[CLS] [SEP] yes [SEP]"


def test_each_part_is_cut_at_its_end() -> None:
    numbers = " ".join(str(number) for number in range(100, 400))  # each is one piece
    found = read(numbers, RerankText(numbers, numbers, numbers)).split()
    question, rest = found[1:41], found[42:]
    assert question == [str(number) for number in range(100, 140)]
    assert rest[:12] == [str(number) for number in range(100, 112)]
    assert rest[12] == "[unused1]"
    assert rest[13:109] == [str(number) for number in range(100, 196)]
    assert rest[109] == "[unused2]"
    assert rest[110:] == [*(str(number) for number in range(100, 112)), "[SEP]"]
    assert len(found) == 165


def test_a_text_alone_fills_what_the_question_leaves() -> None:
    numbers = " ".join(str(number) for number in range(100, 400))
    short = read("why", RerankText(numbers)).split()
    assert len(short) == 192
    assert short[3:] == [*(str(number) for number in range(100, 288)), "[SEP]"]
    long = read(numbers, RerankText(numbers)).split()
    assert len(long) == 192
    assert long[42:] == [*(str(number) for number in range(100, 249)), "[SEP]"]


texts = st.text(st.sampled_from("ab Ж中ा!.\n[]5é\ud800"), max_size=400) | st.just("word " * 300)


@settings(max_examples=60, deadline=None)
@given(texts, texts, texts, texts)
def test_any_pair_fits(question: str, text: str, before: str, after: str) -> None:
    found = nacre_rerank._encode_pair(PIECES, PIECES.first_pieces(question, 40), RerankText(text, before, after))
    assert 3 <= len(found) <= nacre_rerank.PIECES_MAX
    assert (found[0], found[-1]) == (101, 102)
    assert found.count(2) == found.count(3) <= 1


# ---------------------------------------------------------------- what it has words for


@pytest.mark.parametrize(
    ("question", "known", "embedded"),
    [
        ("Where does Ann keep the spare key?", 1, 1),
        ("ERR_2270", 1, 0),
        ("is ERR_2270 fixed?", 1, 0.5),
        ("Где запасной ключ", 0, 0),
        ("key ключ", 3 / 7, 3 / 7),
        ("", 0, 0),
    ],
)
def test_a_made_up_name_can_be_compared_though_it_means_nothing(question: str, known: float, embedded: float) -> None:
    assert RERANKER.vocabulary_coverage(question) == pytest.approx(known)
    assert MiniLM().vocabulary_coverage(question) == pytest.approx(embedded)


# ---------------------------------------------------------------- scores

QUESTION = "Where does Ann keep the spare key?"
TEXTS = [
    RerankText("Ann keeps the spare key under the blue flower pot."),
    RerankText("The spare wheel is in the boot of the car."),
    RerankText("Bob keeps bees."),
    RerankText("Under the flower pot.", before="Ann, where do you keep the spare key?", after="Thanks!"),
    RerankText("Under the flower pot.", before="Where did the cat sleep?", after="Thanks!"),
    RerankText(""),
    RerankText("", "", "Thanks!"),
    RerankText("备用钥匙在花盆下面。"),
    RerankText("Запасной ключ лежит под горшком."),
    RerankText("half a pair \ud800 and a smile 😀"),
    RerankText("word " * 5_000),
    RerankText("x" * 5_000, "y" * 5_000, "z " * 5_000),
]


def test_a_score_for_each_in_the_order_given() -> None:
    together = RERANKER.scores(QUESTION, TEXTS)
    assert len(together) == len(TEXTS)
    assert all(type(each) is RerankScore for each in together)
    assert all(type(number) is float and np.isfinite(number) for each in together for number in each)
    assert [RERANKER.scores(QUESTION, [text])[0] for text in TEXTS] == together


def test_no_texts_no_scores_and_nothing_is_loaded(tmp_path: Path) -> None:
    assert NacreRerank(folder=tmp_path).scores("why?", []) == []


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(TEXTS), max_size=6), st.integers(1, 3))
def test_a_score_does_not_depend_on_the_others(listed: list[RerankText], threads: int) -> None:
    known = dict(zip(TEXTS, RERANKER.scores(QUESTION, TEXTS), strict=True))
    together = NacreRerank(threads)
    together._model = RERANKER._model
    assert together.scores(QUESTION, listed) == [known[text] for text in listed]


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("allowed", [0, 1, 2, 4, 9])
def test_it_stops_at_the_first_refusal(threads: int, allowed: int) -> None:
    several = NacreRerank(threads)
    several._model = RERANKER._model
    asked: list[bool] = []
    expected = RERANKER.scores(QUESTION, TEXTS[:5])

    def goes_on(known: Sequence[RerankScore]) -> bool:
        assert list(known) == expected[: len(known)]
        asked.append(len(asked) < allowed)
        return asked[-1]

    assert several.scores_while(QUESTION, TEXTS[:5], goes_on) == expected[:allowed]
    assert asked == [True] * min(allowed, 5) + [False] * (allowed < 5)


def constant(name: str) -> npt.NDArray[np.float64]:
    """A float32 constant of the model's file: its name (field 8 of a tensor) is followed by its bytes (field 9)."""
    content = (FOLDER / "model.onnx").read_bytes()
    named = bytes([0x42, len(name)]) + name.encode() + b"\x4a"
    at = content.index(named) + len(named)
    digits = [
        *takewhile(lambda byte: byte >= 128, content[at : at + 5])
    ]  # of the size, 7 bits each, the last below 128
    begin = at + len(digits) + 1
    size = sum((byte & 127) << 7 * place for place, byte in enumerate(content[at:begin]))
    return np.frombuffer(content[begin : begin + size], np.float32).astype(np.float64)


def test_no_score_exceeds_the_bound_that_the_weights_give() -> None:
    """A score is `weight · (gain · z + beta) + bias`. z is normalised: its mean is 0, its length √384."""
    weight, gain, beta = constant("score.weight"), constant("5.narrowed.gamma"), constant("5.narrowed.beta")
    across = weight * gain - (weight * gain).mean()
    most = np.sqrt(across @ across * 384) + weight @ beta + constant("score.bias")[0]
    assert most <= SCORE_MAX < most + 0.001
    assert RERANKER.score_max == SCORE_MAX
    assert all(each.score < SCORE_MAX for each in RERANKER.scores(QUESTION, TEXTS))


def test_the_first_texts_begin_first() -> None:
    """Whatever their lengths: with one thread they are read in the order given."""
    one, begun = NacreRerank(1), list[int]()
    one._model = RERANKER._model
    texts = [RerankText("a"), RerankText("word " * 50), RerankText("two words")]
    run = one._run

    def noted(pair: Sequence[int]) -> RerankScore:
        begun.append(len(pair))
        return run(pair)

    one._run = noted  # type: ignore[method-assign]
    one.scores_while("why?", texts, lambda _: True)
    assert begun == [len(nacre_rerank._encode_pair(PIECES, PIECES.first_pieces("why?", 40), each)) for each in texts]
    begun.clear()
    one.scores("why?", texts)
    assert begun == sorted(begun, reverse=True)  # the longest first


def test_a_failure_in_a_thread_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    several = NacreRerank(2)
    several._model = RERANKER._model
    monkeypatch.setattr(several, "_run", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        several.scores_while(QUESTION, TEXTS[:3], lambda _: True)


def test_a_tuple_of_texts_is_as_good_as_a_list() -> None:
    assert RERANKER.scores(QUESTION, tuple(TEXTS[:3])) == RERANKER.scores(QUESTION, TEXTS[:3])


def test_padding_changes_nothing_in_the_graph() -> None:
    """Nothing pads now. Who batches later may: a token's scale is its own."""
    session = RERANKER._model.session()
    generator = np.random.default_rng(1)
    for length in (3, 17, 60):
        ids = generator.integers(1_000, 30_000, (3, length)).astype(np.int32)
        alone = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        padded = np.pad(ids, ((0, 0), (0, 9)))
        mask = np.pad(np.ones_like(ids), ((0, 0), (0, 9)))
        found = session.run(None, {"input_ids": padded, "attention_mask": mask})
        for whole, part in zip(found, alone, strict=True):
            assert whole == pytest.approx(part, abs=1e-5)


def test_first_use_by_many_threads_at_once() -> None:
    fresh = NacreRerank()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: fresh.scores(QUESTION, TEXTS[:5]), range(12)))
    assert found == [RERANKER.scores(QUESTION, TEXTS[:5])] * 12


# ---------------------------------------------------------------- what it has learned

FACTS = [
    (
        "When did the warehouse in Lyon open?",
        "The Lyon warehouse opened its doors in March 2019.",
        [
            "The warehouse in Lyon is managed by Claire.",
            "The office in Porto opened in June 2021.",
            "Lyon is in France.",
        ],
    ),
    (
        "Who takes care of the plants while Maria is away?",
        "Jonas waters the plants during Maria's holidays.",
        ["Maria is away until the end of August.", "The plants in the hall are made of plastic.", "Jonas plays chess."],
    ),
    (
        "How much does the train ticket to Vienna cost?",
        "A ticket for the train to Vienna is 49 euros.",
        ["The train to Vienna leaves at 7:40.", "The museum ticket costs 12 euros.", "Vienna is worth a trip."],
    ),
    (
        "What is Tom allergic to?",
        "Peanuts make Tom sick; he carries an adrenaline pen.",
        ["Tom is a doctor.", "Anna is allergic to cats.", "What should we give Tom for his birthday?"],
    ),
]


@pytest.mark.parametrize(("question", "answer", "others"), FACTS)
def test_the_answer_is_above_what_only_looks_like_it(question: str, answer: str, others: list[str]) -> None:
    found = RERANKER.scores(question, [RerankText(answer), *map(RerankText, others)])
    assert found[0].score == max(each.score for each in found), found
    assert found[0].answers == max(each.answers or 0.0 for each in found), found


NEAR_MISSES = [
    (
        "The Lyon warehouse opened in March 2019.",
        "When did the warehouse in Lyon open?",
        "Who runs the Lyon warehouse?",
    ),
    (
        "The Lyon warehouse opened in March 2019.",
        "Since when is there a warehouse in Lyon?",
        "Where is the Porto office?",
    ),
    ("Ticket 7713: printer jams, roller replaced.", "what was wrong in ticket 7713", "what was wrong in ticket 7731"),
    ("Nina's shoe size is 38, her gloves are M.", "which shoe size does Nina have", "which shoe size does Otto have"),
    ("Nina's shoe size is 38, her gloves are M.", "Nina's glove size", "when is Nina's birthday"),
    (
        "The deposit for the hall is 400 euros.",
        "how much is the deposit for the hall",
        "who pays the deposit for the hall",
    ),
    ("Applied for the visa on Monday.", "what did I apply for on Monday", "was the visa granted"),
    ("Retries are set to 5 in worker.toml.", "how many retries does worker.toml allow", "timeout in worker.toml"),
]


@pytest.mark.parametrize(("text", "asked", "missed"), NEAR_MISSES)
def test_a_near_miss_is_told_from_an_answer(text: str, asked: str, missed: str) -> None:
    """The log-odds mean the same for every question: what is answered is likelier than what is not."""
    ((_, answered),) = RERANKER.scores(asked, [RerankText(text)])
    ((_, unanswered),) = RERANKER.scores(missed, [RerankText(text)])
    assert answered is not None
    assert unanswered is not None
    assert answered > max(0.0, unanswered + 1), (answered, unanswered)


@pytest.mark.parametrize(
    ("question", "turn", "asked_before", "other_before"),
    [
        (
            "Where does Ann keep the spare key?",
            "Ann: Under the flower pot by the door.",
            "Ben: Ann, where do you keep the spare key?",
            "Ben: Ann, where does the cat sleep at night?",
        ),
        (
            "When is Petra's birthday?",
            "Sam: On the ninth of May.",
            "Petra: Do you remember when my birthday is?",
            "Petra: Do you remember when the shop opens again?",
        ),
        (
            "How much did the bike cost?",
            "Dev: Four hundred euros.",
            "Rosa: What did you pay for the bike?",
            "Rosa: What is the rent of the flat?",
        ),
        (
            "What is Ada allergic to?",
            "Ada: To walnuts, badly.",
            "Ben: Are you allergic to anything, Ada?",
            "Ben: What do squirrels bury, Ada?",
        ),
        (
            "Which day is the rehearsal?",
            "Rosa: On Thursday, as always.",
            "Dev: When do we rehearse?",
            "Dev: When is the bin collected?",
        ),
    ],
)
def test_a_turn_is_understood_by_what_stands_before_it(
    question: str, turn: str, asked_before: str, other_before: str
) -> None:
    asked, other = RERANKER.scores(question, [RerankText(turn, asked_before), RerankText(turn, other_before)])
    assert asked.score > other.score


def test_the_answer_is_marked_and_not_its_neighbour() -> None:
    """Three turns hold the same words; the one that answers is between the marks in one of them only."""
    turns = ["Lin: How was your week?", "Kai: I moved to Oslo on Monday.", "Lin: I saw a good film."]
    placed = [
        RerankText(turns[0], after=turns[1]),
        RerankText(turns[1], before=turns[0], after=turns[2]),
        RerankText(turns[2], before=turns[1]),
    ]
    scores = [each.score for each in RERANKER.scores("Where did Kai move to?", placed)]
    assert scores[1] == max(scores), scores


# ---------------------------------------------------------------- the file


def test_the_fingerprint_is_that_of_the_file() -> None:
    content = (FOLDER / "model.onnx").read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert sha256 == MODEL_SHA256
    assert RERANKER.fingerprint == f"nacre-rerank-v3/192/{sha256[:12]}"
    assert sha256 in card
    assert f"{len(content):,}" in card
    licence = hashlib.sha256((FOLDER / "LICENSE").read_bytes()).hexdigest()
    assert licence in card


def test_the_model_is_small() -> None:
    assert (FOLDER / "model.onnx").stat().st_size <= 23_000_000


def test_nothing_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys; from nacre.rerankers.nacre_rerank import NacreRerank; r = NacreRerank(); r.fingerprint; "
        "r.scores('why?', []); r.vocabulary_coverage('why?'); "
        "sys.exit(bool({'numpy', 'onnxruntime'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_runtime_keeps_no_record_of_its_use(tmp_path: Path) -> None:
    """ONNX Runtime's telemetry queues its reports in the user's cache folder; none may appear."""
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)}
    code = (
        "from nacre.rerankers.nacre_rerank import NacreRerank, RerankText; "
        "NacreRerank().scores('why?', [RerankText('one'), RerankText('two')])"
    )
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.rglob("*")) == []


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is missing; reinstall it with .*pip install"):
        NacreRerank(folder=tmp_path).scores("why?", TEXTS[:2])


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1", b"cut short"])
def test_a_damaged_model_is_named_and_nothing_is_printed(
    content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = (FOLDER / "model.onnx").read_bytes()
    (tmp_path / "model.onnx").write_bytes(whole[: len(whole) // 2] if content == b"cut short" else content)
    with pytest.raises(EmbedderUnavailable, match=r"model\.onnx is damaged .*; reinstall"):
        NacreRerank(folder=tmp_path).scores("why?", TEXTS[:2])
    assert capfd.readouterr() == ("", "")


def test_it_is_loaded_again_after_a_failure(tmp_path: Path) -> None:
    reranker = NacreRerank(folder=tmp_path)
    with pytest.raises(EmbedderUnavailable):
        reranker.scores(QUESTION, TEXTS[:1])
    shutil.copy(FOLDER / "model.onnx", tmp_path)
    assert reranker.scores(QUESTION, TEXTS[:1]) == RERANKER.scores(QUESTION, TEXTS[:1])


def test_a_missing_vocabulary_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nacre_rerank, "VOCABULARY", tmp_path / "vocab.txt")
    with pytest.raises(EmbedderUnavailable, match=r"vocab\.txt cannot be read .*; reinstall"):
        NacreRerank().scores("why?", TEXTS[:1])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(EmbedderUnavailable, match="install them with `pip install numpy onnxruntime`"):
        NacreRerank().scores("why?", TEXTS[:1])
