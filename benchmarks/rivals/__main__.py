"""Print the version and configuration of an engine as JSON, or that it is not installed.

python -m benchmarks.rivals ENGINE
"""

from __future__ import annotations

import json
import sys

from benchmarks.rivals import speed_engine

try:
    engine = speed_engine(sys.argv[1])
    print(json.dumps({"version": engine.version(), "configuration": engine.configuration}))
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
