"""Backups of a store as files, and stores made from them."""
