"""Nacre as the memory of agent frameworks: one module for each, loaded only when it is imported.

They call the public verbs of `Nacre` only. The extra of the same name installs what a module needs.
"""
