"""The verbs, and the services behind them."""
