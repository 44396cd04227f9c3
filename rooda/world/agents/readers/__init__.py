"""One reader per CLI: a function that takes one JSON record, or one plain line, into what is gathered."""
