"""The EM loop over blocks on Beam."""
