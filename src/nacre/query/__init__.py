"""Pure functions that understand what was asked."""
