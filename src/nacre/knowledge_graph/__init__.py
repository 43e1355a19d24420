"""The knowledge graph of the MCP reference server, kept as memories."""
