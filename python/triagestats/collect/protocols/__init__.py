"""Ways of asking, one family a module."""
