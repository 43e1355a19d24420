"""Immutable segments, made from the rows, that large stores are searched through."""
