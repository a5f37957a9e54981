"""The daemon beside the specification (npumem.reference): random cases, python3 -m npumem.conform --random SECONDS."""
