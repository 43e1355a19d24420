"""Results of evaluations as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nacre.evaluation.evaluate import ModeResult
from nacre.evaluation.metrics import Estimate
from nacre.evaluation.questions import Questions, Source
from nacre.serialization import encode
from nacre.types.memory import Json

ABOUT: Mapping[Source, str] = {
    "file": "questions from the file",
    "log": "questions from the recall log, answered by the memories that were opened or used. Only delivered memories "
    "can be opened, so this favours the ranking that delivered them",
    "probes": "probes, each built from the words of one memory. They measure whether memories can be found by their "
    "own words, not whether questions are answered",
}


def report(asked: Questions, measured: Sequence[ModeResult]) -> Json:
    return {
        "source": asked.source,
        "about": ABOUT[asked.source],
        "questions": len(asked.judged),
        "unanswered": list(asked.unanswered),
        "modes": {each.mode: mode_result(each) for each in measured},
    }


def mode_result(measured: ModeResult) -> Json:
    return {
        "metrics": estimates(measured.metrics),
        "missed": measured.missed,
        "stages": {**measured.stages},
        "examples": [
            {"query": each.query, "id": each.memory_id, **encode.why_not(each.left_out)} for each in measured.examples
        ],
        "wrong": measured.wrong,
        "notes": list(measured.notes),
    }


def estimates(by_name: Mapping[str, Estimate]) -> Json:
    return {name: {**each._asdict()} for name, each in by_name.items()}
