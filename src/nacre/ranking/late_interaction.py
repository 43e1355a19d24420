"""Late interaction: a query and a passage are compared token by token.

Token vectors are L2-normalised. A passage's are packed into few bits a dimension, a query's are not. MaxSim is the sum,
over the tokens of a query, of the weight of the token times its best match among the tokens of a passage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from nacre.ranking import scoring
from nacre.types.recipe import Recipe
from nacre.types.search import Ranked, Reason
from nacre.types.tokens import QueryTokens, TokenFormat

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nacre.types.memory import FloatMatrix

    Matches: TypeAlias = npt.NDArray[np.float64]  # passages or texts × query tokens

NEIGHBOUR = 0.9  # share of a match that counts where it stands in the turn before or after
_CONVERSANT = 0.5  # the least share of a query that the encoder's vocabulary must know

_LEVELS = 16
_SPREAD = 3.0  # of 4 bits, in standard deviations of a dimension: hardly any value lies beyond
_INT8_MAX = 127
_GRID = 2048  # steps of a query's dimension from 0 to 1
_CHUNK = 65_536  # tokens that are unpacked at once: 16 MB of 64 dimensions
_BLOCK = 200_000  # multiplications of one matrix product: a larger one would wait for threads of a busy processor


def pack(matrix: FloatMatrix, form: TokenFormat) -> bytes:
    """The vectors of tokens as they are stored, one after another. With 4 bits, a byte has a dimension of the first
    half and one of the second."""
    import numpy as np

    if form.bits == 8:
        return bytes(np.rint(matrix * _INT8_MAX).clip(-_INT8_MAX, _INT8_MAX).astype(np.int8).tobytes())
    levels = np.rint((matrix / _step(form) + (_LEVELS - 1)) / 2).clip(0, _LEVELS - 1).astype(np.uint8)
    half = form.dimensions // 2
    return bytes((levels[:, :half] | levels[:, half:] << 4).tobytes())


def unpack(packed: bytes, form: TokenFormat) -> FloatMatrix:
    """The vectors of tokens, one row each."""
    levels = _levels(packed, form)
    return (levels if form.bits == 8 else 2 * levels - (_LEVELS - 1)) * levels.dtype.type(_step(form))


class TokenMatch(NamedTuple):
    """The token of a text that a query token met."""

    text: int  # which of the texts that were compared
    passage: int  # which passage of that text
    token: int  # which token of that passage
    similarity: float


def maxsim(
    query: QueryTokens,
    texts: Mapping[str, Sequence[bytes]],
    beside: Mapping[str, Sequence[str]],
    form: TokenFormat,
) -> dict[str, float]:
    """By id, how well a text matches: for each query token its best match in the text, weighted and summed.

    `texts` are the packed passages of everything that is compared, `beside` the ids of those to score, each with the
    texts next to it in its session. A text counts by its best passage. What stands next to it may match better, but
    NEIGHBOUR of that counts. Unlike a cosine it is not lowered for the number of passages, because that was
    measured to be worse. An id that is not among `texts` is missing from the result. A score depends on the query, the
    text and its neighbours alone, to the bit.
    """
    import numpy as np

    ids = list(texts)
    counts = [len(texts[each]) for each in ids]
    matches = _best_matches(query, [passage for each in ids for passage in texts[each]], form)
    weights = query.weights.astype(np.float64)
    sums = _weighted(matches, weights)
    rows, start = [], 0
    for count in counts:
        rows.append(start + int(sums[start : start + count].argmax()) if count > 1 else start)
        start += count
    # The last row stands for a missing neighbour.
    own = np.concatenate([matches[rows], np.zeros((1, matches.shape[1]))])
    at = {each: row for row, each in enumerate(ids)}
    scored = [each for each in beside if each in at]
    best = own[[at[each] for each in scored]]
    for place in range(max((len(beside[each]) for each in scored), default=0)):
        near = [at.get(beside[each][place], -1) if place < len(beside[each]) else -1 for each in scored]
        best = np.maximum(best, NEIGHBOUR * own[near])
    total = _weighted(best, weights)
    return {each: float(total[row]) for row, each in enumerate(scored)}


def matched_tokens(query: QueryTokens, texts: Sequence[Sequence[bytes]], form: TokenFormat) -> list[TokenMatch | None]:
    """For each query token, the token that it met: of the first text, or of its neighbours, which are the others.

    None: it met nothing. These are the matches that `maxsim` sums up.
    """
    import numpy as np

    met: list[TokenMatch | None] = [None] * len(query.weights)
    for text, passages in enumerate(texts):
        matches = _best_matches(query, passages, form)
        if not len(matches):
            continue
        passage = int(_weighted(matches, query.weights.astype(np.float64)).argmax())
        if not passages[passage]:
            continue
        tokens = _similarities(query, passages[passage], form).argmax(axis=0)
        share = NEIGHBOUR if text else 1.0
        for each, similarity in enumerate(share * matches[passage]):
            known = met[each]
            if similarity > (known.similarity if known else 0.0):
                met[each] = TokenMatch(text, passage, int(tokens[each]), float(similarity))
    return met


def can_judge(coverage: float) -> bool:
    """Whether an encoder that knows this share of a query can compare it."""
    return coverage >= _CONVERSANT


def weight_among(beside: Mapping[str, Sequence[str]], recipe: Recipe) -> float:
    """The weight of MaxSim, which rises with the share of turns among those compared, the ids of `beside`.

    A turn is too short for its words and its sentence vector to say much, and MaxSim knows what stands next to it.
    """
    turns = sum(map(bool, beside.values())) / max(1, len(beside))
    return recipe.maxsim_weight * (1 + (recipe.tuning.maxsim_turns - 1) * turns)


def blended(
    ranked: Sequence[Ranked], scores: Mapping[str, float], pool: int, weight: float, coverage: float
) -> list[Ranked]:
    """Add a share to the first `pool`, which were compared: `weight · coverage² · spread · lead`. Best first.

    `scores` are their MaxSims, and a lead is how far one is above the lowest. `coverage` is the share of the query that
    the encoder knows. The spread is that of the sums before. A memory without token vectors gets the share that those
    around it have on the average, because it is not known to be worse. No share is below 0, so nothing that was
    compared falls behind what was not.
    """
    compared = ranked[:pool]
    if not scores or not compared:
        return list(ranked)
    spread = scoring.spread([each.score for each in compared])
    least = min(scores.values())
    leads = {each: score - least for each, score in scores.items()}
    rank = {each: place for place, each in enumerate(sorted(scores, key=lambda each: (-scores[each], each)), 1)}
    places = [place for place, each in enumerate(compared) if each.id in scores]
    in_order = [leads[compared[place].id] for place in places]
    trust = weight * coverage**2 * spread
    common = {"compared": len(scores), "weight": weight, "coverage": coverage, "spread": spread}

    def reason(place: int, memory_id: str) -> Reason:
        if memory_id in scores:
            lead = leads[memory_id]
            numbers = {"maxsim": scores[memory_id], "rank": rank[memory_id], **common, "lead": lead}
        else:
            lead = scoring.around(places, in_order, place)
            numbers = {**common, "lead": lead}
        return Reason("maxsim", "add", trust * lead, numbers)

    raised = [scoring.with_reason(each, reason(place, each.id)) for place, each in enumerate(compared)]
    return scoring.best_first([*raised, *ranked[pool:]])


def _best_matches(query: QueryTokens, passages: Sequence[bytes], form: TokenFormat) -> Matches:
    """Passages × query tokens: the best similarity, 0 where nothing is similar."""
    import numpy as np

    best = np.zeros((len(passages), len(query.weights)))
    kept = [row for row, each in enumerate(passages) if each]  # an empty slice has no maximum
    if kept:
        ends = np.cumsum([len(passages[row]) // form.token_bytes for row in kept])
        similar = _similarities(query, b"".join(passages), form)
        raw = np.maximum.reduceat(similar, np.concatenate([[0], ends[:-1]]), axis=0)
        best[kept] = np.maximum(_scaled(raw, query, form), 0.0)
    return best


def _similarities(query: QueryTokens, packed: bytes, form: TokenFormat) -> FloatMatrix:
    """Tokens × query tokens: their dot products, before `_scaled`.

    Both sides are whole numbers, and no sum of their products exceeds the 24 bits of a float. So every product is
    exact, and does not depend on what else is in the matrix.
    """
    import numpy as np

    asked = np.ascontiguousarray(_whole(query).T)
    tokens = len(packed) // form.token_bytes
    products: FloatMatrix = np.empty((tokens, asked.shape[1]), np.float32)
    block = max(1, _BLOCK // max(1, asked.size))
    for start in range(0, tokens, _CHUNK):
        levels = _levels(packed[start * form.token_bytes : (start + _CHUNK) * form.token_bytes], form)
        whole = len(levels) // block * block
        into = products[start : start + len(levels)]
        np.matmul(
            levels[:whole].reshape(-1, block, form.dimensions),
            asked,
            out=into[:whole].reshape(-1, block, into.shape[1]),
        )
        np.matmul(levels[whole:], asked, out=into[whole:])
    return products


def _weighted(matches: Matches, weights: Matches) -> Matches:
    """The weighted sum of each row, which depends on that row alone."""
    sums: Matches = (matches * weights).sum(axis=1)
    return sums


def _scaled(products: FloatMatrix, query: QueryTokens, form: TokenFormat) -> Matches:
    """Products of levels as products of vectors. The order stays, so only what is left of them is scaled."""
    import numpy as np

    exact = products.astype(np.float64)
    if form.bits == 4:
        exact = 2 * exact - (_LEVELS - 1) * _whole(query).sum(axis=1, dtype=np.float64)
    return exact * (_step(form) / _GRID)


def _whole(query: QueryTokens) -> FloatMatrix:
    """The vectors of a query on a grid of whole numbers."""
    import numpy as np

    whole: FloatMatrix = np.rint(query.vectors * np.float32(_GRID))
    return whole


def _levels(packed: bytes, form: TokenFormat) -> FloatMatrix:
    """What is stored of each token, one row each: from 0 to 15 with 4 bits, from -127 to 127 with 8."""
    import numpy as np

    if form.bits == 8:
        return np.frombuffer(packed, np.int8).reshape(-1, form.dimensions).astype(np.float32)
    pairs, half = np.frombuffer(packed, np.uint8).reshape(-1, form.token_bytes), form.dimensions // 2
    levels: FloatMatrix = np.empty((len(pairs), form.dimensions), np.float32)
    np.bitwise_and(pairs, _LEVELS - 1, out=levels[:, :half], casting="unsafe")
    np.right_shift(pairs, 4, out=levels[:, half:], casting="unsafe")
    return levels


def _step(form: TokenFormat) -> float:
    """With 8 bits, the distance of two levels. With 4, half of it, because no level is 0: -15, -13, … 13, 15 steps."""
    return 1 / _INT8_MAX if form.bits == 8 else _SPREAD / form.dimensions**0.5 / (_LEVELS - 1)
