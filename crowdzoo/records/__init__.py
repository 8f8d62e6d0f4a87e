"""A crowd as tf.Examples."""
