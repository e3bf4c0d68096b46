"""What depends on the machine: the faster precision, whether updates are compiled, and how they are."""
