"""Pure functions over texts: words, passages, snippets."""
