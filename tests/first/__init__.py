"""What people meet in their first minutes: keys, models, the doctor, and the errors that come first."""
