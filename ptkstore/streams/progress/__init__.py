"""How far a stream has come: what it accepted, how far it is sealed, and the way back after a
crash.
"""
