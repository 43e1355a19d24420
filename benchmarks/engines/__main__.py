"""A process that tells whether an engine is installed, and which: python -m benchmarks.engines ENGINE."""

from __future__ import annotations

import json
import sys

from benchmarks.engines import loaded

try:
    engine = loaded(sys.argv[1])
    print(json.dumps({"version": engine.version(), "configuration": engine.configuration}))
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
