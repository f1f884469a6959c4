"""Budgets: limits of calls, reservations, and what was spent."""
