"""Parts of the service's benchmark."""
