"""Embedders: each module is one way to turn texts into vectors. None imports another."""
