"""A CUDA kernel that trains many small networks over many steps a launch: its source, its build, and who calls it."""
