"""What was recorded, as tables: for people, for other programs, and for spreadsheets."""
