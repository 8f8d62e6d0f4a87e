"""Parts that the algorithms share: blocks of annotations, compiled kernels, threads."""
