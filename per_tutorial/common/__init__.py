"""Three small rooms that all others use: arguments, files and tables, provenance."""
