"""What all other folders use: arguments, files, memory, provenance and lazy names."""
