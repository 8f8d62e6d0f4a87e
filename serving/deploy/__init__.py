"""Files that run TensorFlow Serving in containers: for Docker Compose, Kubernetes and KServe."""
