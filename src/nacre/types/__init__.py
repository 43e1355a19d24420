"""The values that flow through Nacre. All are frozen; every default stands here."""
