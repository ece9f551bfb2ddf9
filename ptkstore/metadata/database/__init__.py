"""The databases under the metadata, their schema, and the transactions on them."""
