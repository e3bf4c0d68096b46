"""Attacks on the package: each tries to break a promise, and lists where it could."""
