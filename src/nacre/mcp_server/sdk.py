"""How is the protocol's SDK loaded before a client loses patience?

`import mcp` takes most of a second: the packages `mcp` and `mcp.server` import their client, sign-in, cryptography
and more, whether used or not, and every message type is compiled at once. Here the two packages are laid out hollow,
so that only the modules a server needs are run, and message types are compiled when they are first used.
Whatever else is asked of a hollow package fills it as usual, so other code in the process sees no difference.
`benchmarks/agent.py` measures what it saves.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from nacre.errors import InvalidInput

_HOLLOW = ("mcp", "mcp.server")


class _Hollow(ModuleType):
    """A package whose own code has not run yet. It runs when a name is asked for that no module below it is."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on it is an ordinary package
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def require() -> None:
    """Raise InvalidInput where the SDK is not installed."""
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        raise InvalidInput("mcp", "the package is missing or too old; install it with `pip install 'nacre[mcp]'`")


def load() -> None:
    """Make the SDK's server modules ready to be imported."""
    if "mcp" in sys.modules:
        return  # the process has it already
    path = None
    for name in _HOLLOW:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.submodule_search_locations is None:
            return  # laid out otherwise than we know: it is imported as it comes
        package = _Hollow(name)
        package.__spec__, package.__file__ = spec, spec.origin
        package.__path__ = path = list(spec.submodule_search_locations)
        sys.modules[name] = package
    sys.modules["mcp"].server = sys.modules["mcp.server"]  # type: ignore[attr-defined]
    _compiling_late()


def _compiling_late() -> None:
    """Import the message types while pydantic is told to compile each on its first use."""
    from pydantic import BaseModel, ConfigDict

    usual = BaseModel.model_config
    BaseModel.model_config = ConfigDict(defer_build=True)
    try:
        import mcp_types.methods  # noqa: F401
    finally:
        BaseModel.model_config = usual
