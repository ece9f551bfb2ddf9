"""The way in: who calls, may they, is there a place, was it asked before; and the audit log of
it.
"""
