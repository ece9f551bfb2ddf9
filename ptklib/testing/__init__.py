"""Public test tools: what a test of a PTK or of the library itself may use, and production code may
not.
"""
