"""Models of response tables, one family a file."""
