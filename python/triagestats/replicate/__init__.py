"""Published studies re-run from their released tables: what was printed beside what the library finds."""
