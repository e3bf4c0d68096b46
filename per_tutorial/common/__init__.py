"""What all other folders use: arguments, files, data, memory, provenance and lazy names."""
