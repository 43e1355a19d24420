"""JSON, in both directions. Every door uses it."""
