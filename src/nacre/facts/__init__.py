"""Which facts are current, and how far each is believed."""
