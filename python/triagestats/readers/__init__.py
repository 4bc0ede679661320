"""Readers of the result files of evaluation harnesses: a module a format, all returning a ResponseTable.

A format is a module with a `READER` (a `Reader` of rows.py: whether a file is one of its own, told from the
content, and the rows of such files) and a public function that is `read_as(READER, path, **options)` of
reading.py; read.py lists all readers. bounded.py reads files, recognise.py finds them, and assemble.py makes
rows a ResponseTable. Nothing of a harness is imported, and nothing is written to the disk.
"""
