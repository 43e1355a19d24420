"""The multilingual model of Nacre: model.onnx and pieces.bin. `nacre.embedders.use_multilingual` runs it."""
