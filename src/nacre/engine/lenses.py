"""The lenses of a space: saved, listed and dropped."""

from __future__ import annotations

import json

from nacre import validation
from nacre.engine.parts import Parts
from nacre.errors import InvalidInput
from nacre.query import lenses
from nacre.query.lenses import Lens


class LensService:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store = parts.store
        self._space = parts.access.space

    def save(self, lens: Lens) -> Lens:
        checked = lenses.validate(lens, self._parts.limits)
        body = json.dumps(lenses.to_json(checked), ensure_ascii=False)
        self._parts.screening.label("lens", body)
        self._store.put_lens(self._space, checked.name, body)
        return checked

    def drop(self, name: str) -> None:
        name = validation.looked_up("name", name)
        if name in lenses.BUILT_IN:
            raise InvalidInput("name", f"{name} is built in and cannot be dropped")
        if not self._store.drop_lens(self._space, name):
            raise lenses.unknown(name, [each.name for each in self.all()])

    def get(self, name: str) -> Lens:
        name = validation.looked_up("name", name)
        found = {each.name: each for each in self.all()}.get(name)
        if found is None:
            raise lenses.unknown(name, [each.name for each in self.all()])
        return found

    def all(self) -> list[Lens]:
        """The built-in lenses, then those of the space, by name."""
        own = [lenses.from_json(json.loads(body)) for body in self._store.lenses(self._space).values()]
        return [*lenses.BUILT_IN.values(), *sorted(own, key=lambda each: each.name)]
