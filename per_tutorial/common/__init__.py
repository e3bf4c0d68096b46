"""What all other folders use: arguments, files, tables, states, provenance and lazy names."""
