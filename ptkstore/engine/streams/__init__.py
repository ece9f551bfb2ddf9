"""New streams."""
