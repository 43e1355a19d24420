"""Hooks of agents' clients: what is known goes into a prompt, and what was said is remembered, each time."""
