"""What a node is asked before it gets work; sent as code, since a node may lack the package."""


def describe_package(name: str) -> tuple[str, int]:
    """The version of a package, and a checksum of its modules, where this runs.

    Raises:
        ImportError: the package is not installed.
    """
    import zlib
    from importlib import import_module
    from pathlib import Path

    package = import_module(name)
    checksum = 0
    for folder in package.__path__:
        for path in sorted(Path(folder).rglob("*.py")):
            checksum = zlib.crc32(path.read_bytes(), checksum)
    return package.__version__, checksum
