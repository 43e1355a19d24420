"""What the parts run on: caches, threads, native packages."""
