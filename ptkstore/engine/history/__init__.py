"""What was done, told and asked for, as people see it."""
