"""An example of methods that are not crowdzoo's own."""
