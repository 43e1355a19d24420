"""The figures of `benchmarks.quality`, and the tables that are made from them.

`figures` computes everything that needs the answers to single questions. `tables` needs nothing but the figures, as the
JSON file holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from benchmarks.common.report import Figures, Row, Tables
from benchmarks.common.scoring import METRICS, Figure, Judged, Part, difference, figure, latency

GROUPS: Mapping[str, Sequence[str]] = {
    "conversation": ("locomo", "locomo-session"),
    "documents": ("scifact", "nfcorpus", "hotpotqa-1k"),
    "code": ("cosqa",),
    "languages": (
        *("jsquad-ja", "cmrc2018-zh", "autorag-ko"),
        *(f"xquad-{language}" for language in ("en", "zh", "es", "ar", "th", "hi", "ru", "de")),
    ),
}
SETS = tuple(name for names in GROUPS.values() for name in names)
COMPARED = ("nDCG@10", "R@5")  # the metrics of the tables that compare

Results: TypeAlias = Mapping[str, Mapping[str, Judged]]  # by set, then by contender
Plain: TypeAlias = dict[str, float]  # a Figure as JSON


# ---------------------------------------------------------------- figures


def figures(results: Results, documents: Mapping[str, int], ours: str, rivals: Sequence[str]) -> dict[str, Any]:
    """Means with intervals of every set, group of sets and category; `ours` against the best rival, if there is one."""
    sets = {
        name: {
            "documents": documents[name],
            "questions": len(next(iter(by_contender.values())).ids),
            "found": {contender: _of_set(each) for contender, each in by_contender.items()},
        }
        for name, by_contender in results.items()
    }
    means = {
        group: {
            contender: {metric: _plain(figure(parts)) for metric, parts in found.items()}
            for contender in _contenders(results)
            if (found := _parts_by_metric(results, members, contender))
        }
        for group, members in groups_of(list(results)).items()
    }
    against = {metric: list(_against_best(results, ours, rivals, metric)) for metric in COMPARED}
    return {"sets": sets, "means": means} | ({"against_best_rival": against} if rivals else {})


def changes(results: Results, base: str) -> dict[str, Any]:
    """By how much each contender differs from `base` in the mean of each group."""
    columns = groups_of(list(results)) or {name: [name] for name in results}
    found: dict[str, dict[str, dict[str, Plain]]] = {metric: {} for metric in COMPARED}
    for metric, by_contender in found.items():
        for contender in _contenders(results):
            by_contender[contender] = {}
            for group, sets in columns.items():
                parts, based = (_parts(results, sets, each, metric) for each in (contender, base))
                if parts and based:
                    by_contender[contender][group] = _plain(difference(parts, based))
    return {"base": base, "changes": found}


def groups_of(sets: Sequence[str]) -> dict[str, list[str]]:
    """The groups that were measured, and all sets together. A set without a group counts only among all sets."""
    if len(sets) == 1:
        return {}
    found = {f"mean, {name}": [each for each in sets if each in members] for name, members in GROUPS.items()}
    return {name: members for name, members in found.items() if members} | {"mean, all sets": list(sets)}


def _of_set(found: Judged) -> dict[str, Any]:
    p50_ms, p95_ms = latency(found)
    return {metric: _plain(figure([found.part(metric)])) for metric in METRICS} | {
        "p50_ms": round(p50_ms, 3),
        "p95_ms": round(p95_ms, 3),
        "categories": _categories(found),
    }


def _categories(found: Judged) -> dict[str, dict[str, Any]]:
    """The figures of each category, and the mean over categories, in which every category has the same weight."""
    by_metric = {metric: found.parts_by_category(metric) for metric in METRICS}
    names = list(by_metric["nDCG@10"])
    if not names:
        return {}
    figures_of: dict[str, dict[str, Any]] = {
        name: {"questions": len(by_metric["nDCG@10"][name].ids)}
        | {metric: _plain(figure([parts[name]])) for metric, parts in by_metric.items()}
        for name in names
    }
    means = {metric: _plain(figure(list(parts.values()))) for metric, parts in by_metric.items()}
    return figures_of | {"mean over categories": {"questions": len(found.ids)} | means}


def _against_best(results: Results, ours: str, rivals: Sequence[str], metric: str) -> Iterator[dict[str, Any]]:
    """For each set and group, the best rival and by how much `ours` is ahead of it."""
    for line, sets in ({name: [name] for name in results} | groups_of(list(results))).items():
        found = {each: _parts(results, sets, each, metric) for each in rivals}
        theirs = {each: parts for each, parts in found.items() if parts}
        own = _parts(results, sets, ours, metric)
        if own is None or not theirs:
            continue
        means = {each: figure(parts).mean for each, parts in theirs.items()}
        best = max(means, key=means.__getitem__)
        yield {
            "line": line,
            "contender": ours,
            "mean": round(figure(own).mean, 6),
            "rival": best,
            "rival_mean": round(means[best], 6),
            "ahead": _plain(difference(own, theirs[best])),
        }


def _contenders(results: Results) -> list[str]:
    """The contenders of all sets, in the order they were given."""
    return list(dict.fromkeys(contender for found in results.values() for contender in found))


def _parts(results: Results, sets: Sequence[str], contender: str, metric: str) -> list[Part] | None:
    """None when the contender did not answer all of the sets, because then means cannot be compared."""
    if any(contender not in results[name] for name in sets):
        return None
    return [results[name][contender].part(metric) for name in sets]


def _parts_by_metric(results: Results, sets: Sequence[str], contender: str) -> dict[str, list[Part]]:
    found = {metric: _parts(results, sets, contender, metric) for metric in METRICS}
    return {metric: parts for metric, parts in found.items() if parts}


def _plain(found: Figure) -> Plain:
    return {name: round(each, 6) for name, each in found._asdict().items()}


# ---------------------------------------------------------------- tables


def tables(found: Figures) -> Tables:
    made: dict[str, Sequence[Row]] = {}
    for metric in COMPARED:
        if against := found.get("against_best_rival", {}).get(metric):
            title = f"{metric}: {against[0]['contender']} and the best rival"
            made[title] = [_against_row(metric, each) for each in against]
        if "changes" in found:
            made[f"{metric}: change against {found['base']} (* larger than chance)"] = _change_rows(found, metric)
        made[f"{metric}, the best in bold"] = _matrix_rows(found, metric)
    made["All figures, ± half of the 95 % interval"] = _figure_rows(found)
    made["By category of question"] = _category_rows(found)
    return made


def _against_row(metric: str, each: Mapping[str, Any]) -> Row:
    """ "Within error": the interval of the difference includes 0."""
    ahead = each["ahead"]
    within = "" if _beyond_chance(ahead) else ", within error"
    return {
        metric: each["line"],
        each["contender"]: f"{each['mean']:.4f}",
        "best rival": each["rival"],
        "its": f"{each['rival_mean']:.4f}",
        "ahead by": f"{ahead['mean']:+.4f}",
        "95 %": f"{ahead['low']:+.4f} to {ahead['high']:+.4f}",
        "best?": ("yes" if ahead["mean"] >= 0 else "NO") + within,
    }


def _change_rows(found: Figures, metric: str) -> list[Row]:
    return [
        {f"{metric} against {found['base']}": contender}
        | {
            group: f"{change['mean']:+.4f}" + ("*" if _beyond_chance(change) else "")
            for group, change in by_group.items()
        }
        for contender, by_group in found["changes"][metric].items()
    ]


def _by_line(found: Figures) -> dict[str, Mapping[str, Any]]:
    """The figures of each contender, by set and then by group of sets."""
    return {**{name: each["found"] for name, each in found["sets"].items()}, **found["means"]}


def _matrix_rows(found: Figures, metric: str) -> list[Row]:
    """Sets against contenders; the longer dimension runs downwards."""
    lines = _by_line(found)
    contenders = list(dict.fromkeys(each for by_contender in lines.values() for each in by_contender))
    cells: dict[tuple[str, str], str] = {}
    for line, by_contender in lines.items():
        means = {each: f"{metrics[metric]['mean']:.4f}" for each, metrics in by_contender.items()}
        best = max(means.values(), default="")
        cells |= {(line, each): f"**{mean}**" if mean == best else mean for each, mean in means.items()}
    if len(lines) >= len(contenders):
        return [{metric: line} | {each: cells.get((line, each), "") for each in contenders} for line in lines]
    return [{metric: each} | {line: cells.get((line, each), "") for line in lines} for each in contenders]


def _figure_rows(found: Figures) -> list[Row]:
    rows: list[Row] = []
    for line, by_contender in _by_line(found).items():
        about = found["sets"].get(line)
        for contender, metrics in by_contender.items():
            row = {"set": line, "documents": "", "questions": "", "contender": contender}
            row |= {metric: _with_error(metrics[metric]) for metric in METRICS}
            if about is not None:
                row |= {"documents": f"{about['documents']:,}", "questions": f"{about['questions']:,}"}
                row |= {"p50 ms": f"{metrics['p50_ms']:.2f}", "p95 ms": f"{metrics['p95_ms']:.2f}"}
            rows.append(row)
    return rows


def _category_rows(found: Figures) -> list[Row]:
    return [
        {"set": name, "contender": contender, "category": category, "questions": f"{metrics['questions']:,}"}
        | {metric: _with_error(metrics[metric]) for metric in METRICS}
        for name, about in found["sets"].items()
        for contender, each in about["found"].items()
        for category, metrics in each["categories"].items()
    ]


def _beyond_chance(change: Mapping[str, float]) -> bool:
    """Whether a difference has the same sign over its whole interval."""
    return change["low"] > 0 or change["high"] < 0


def _with_error(found: Mapping[str, float]) -> str:
    return f"{found['mean']:.4f} ± {(found['high'] - found['low']) / 2:.3f}"
