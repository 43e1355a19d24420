"""python -m benchmarks.scenarios"""

from __future__ import annotations

from benchmarks.scenarios import main

if __name__ == "__main__":
    main()
