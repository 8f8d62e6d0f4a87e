"""TFX components: thin; each calls crowdzoo for the work."""
