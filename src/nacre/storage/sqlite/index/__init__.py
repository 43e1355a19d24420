"""The index of a store: segments with postings and vectors, derived from the rows and kept in files."""
