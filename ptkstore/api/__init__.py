"""What everybody speaks: the words of a store, with no engine and no server behind them.

Pure values.
"""
