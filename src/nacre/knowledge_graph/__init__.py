"""The knowledge graph of the MCP reference server, stored as memories."""
