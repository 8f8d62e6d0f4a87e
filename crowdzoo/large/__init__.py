"""The same loop of EM over blocks on disk and on Beam."""
