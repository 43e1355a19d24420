"""Query understanding: lexer, parser, filters, dates, intent, spelling, entities, lenses. Pure functions."""
