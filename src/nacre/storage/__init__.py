"""Stores: each module keeps memories somewhere. None imports another."""
