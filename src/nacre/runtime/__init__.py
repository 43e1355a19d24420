"""Shared runtime support: caches, threads, native packages, ONNX models."""
