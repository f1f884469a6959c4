"""When things happen by themselves: the words of `every` and `when`, and the calendar arithmetic of schedules."""
