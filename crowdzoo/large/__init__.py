"""The same loop of EM over blocks on Beam."""
