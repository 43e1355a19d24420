"""Text analysis: tokens, passages, snippets, near-duplicates, extracted facts. Pure functions."""
