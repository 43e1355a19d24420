"""Facts: supersession, confidence, and how they are built and compared."""
