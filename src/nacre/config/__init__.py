"""Settings, and how they become an engine."""
