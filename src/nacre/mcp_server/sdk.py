"""Loads the protocol's SDK without the parts that a server does not need.

In the SDK 2.x any import runs `mcp/__init__.py` and `mcp/server/__init__.py`, also that of `mcp.server.lowlevel`. They
import the client, sign-in and cryptography, and pydantic builds every message type at once. `load` puts placeholders
in the place of these two packages: only the modules below them run that the server imports, and message types are built
when they are first used. A name that a placeholder lacks runs the package's own code, so other code in the process sees
no difference. With the SDK 2.3.0 this loads the server in 0.41 s of processor time instead of 0.57 s.

The SDK has no supported way to do this. Its pull request 3242 (modelcontextprotocol/python-sdk) binds the names of
`mcp` on first use and defers building message types; once a release has it, `load` and the placeholders can be removed.
Until then the extra `mcp` allows 2.x only.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

from nacre.errors import InvalidInput

_PACKAGES = ("mcp", "mcp.server")


class _Placeholder(ModuleType):
    """A package whose own code has not run yet. It runs when a name is needed that is not a module below it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]  # from now on it is an ordinary package
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def require() -> None:
    """Raise InvalidInput where the SDK is not installed."""
    if importlib.util.find_spec("mcp") is None or importlib.util.find_spec("mcp_types") is None:
        hint = "install it with `pip install 'nacre-memory[mcp]'`"
        raise InvalidInput("mcp", f"the package is missing or too old; {hint}")


def load() -> None:
    """Make the SDK's server modules ready to be imported."""
    if "mcp" in sys.modules:
        return  # already imported in this process
    path = None
    for name in _PACKAGES:
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None or spec.submodule_search_locations is None:
            return  # not the layout of 2.x: import it as usual
        package = _Placeholder(name)
        package.__spec__, package.__file__ = spec, spec.origin
        package.__path__ = path = list(spec.submodule_search_locations)
        sys.modules[name] = package
    sys.modules["mcp"].server = sys.modules["mcp.server"]  # type: ignore[attr-defined]
    _import_message_types()


def _import_message_types() -> None:
    """Import the message types so that pydantic builds each on its first use."""
    from pydantic import BaseModel, ConfigDict

    usual = BaseModel.model_config
    BaseModel.model_config = ConfigDict(defer_build=True)
    try:
        import mcp_types.methods  # noqa: F401
    finally:
        BaseModel.model_config = usual
