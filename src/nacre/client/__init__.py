"""The verbs of the engine on a server, with the same signatures and results: for threads and for async programs."""
