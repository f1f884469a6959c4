"""Budgets: limits of calls, reservations, and spending."""
