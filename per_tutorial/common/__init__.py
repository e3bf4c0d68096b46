"""What all other rooms use: arguments, files, tables, states, provenance and lazy names."""
