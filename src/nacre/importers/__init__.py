"""Readers of what other programs have kept: each turns a file or a folder into memories to remember."""
