"""Any sentence-transformers style folder with an ONNX graph, as an embedder."""
