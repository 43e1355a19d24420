"""The server: every verb over HTTP, the page, and the agents' endpoint, on one port."""
