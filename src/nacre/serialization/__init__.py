"""Values to JSON and back. The command line and the MCP server use the same functions."""
