"""What keeps programs from running on this machine, found before somebody runs one."""
