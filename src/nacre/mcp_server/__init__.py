"""The agent's door: a server for the Model Context Protocol."""
