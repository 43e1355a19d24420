"""Embedders: each module turns texts into vectors in its own way. They do not import each other."""
