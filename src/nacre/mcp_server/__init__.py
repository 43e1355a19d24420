"""A server for the Model Context Protocol: how agents use Nacre."""
