"""Tables that an engine holds: the group-by to totals runs there, and only totals arrive."""
