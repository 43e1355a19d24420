"""Pure functions that turn candidates into a ranking with reasons. The same on every store."""
