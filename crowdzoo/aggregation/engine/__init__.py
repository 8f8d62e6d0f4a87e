"""What the algorithms share: blocks of annotations, compiled kernels, threads."""
