"""Reports: results for readers."""
