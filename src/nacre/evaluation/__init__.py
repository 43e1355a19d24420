"""Evaluation on questions with known answers: metrics, reports, and tuning of the recipe."""
