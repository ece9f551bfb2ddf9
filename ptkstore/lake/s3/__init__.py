"""A lake in a bucket of any S3 server."""
