"""Rerankers: each module is one way to read a question and a text together. None imports another."""
