"""Rerankers: each module scores texts against a question in its own way. They do not import each other."""
