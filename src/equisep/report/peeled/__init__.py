"""Tables and drawings of the Layer-Peeled Model."""
