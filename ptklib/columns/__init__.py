"""Columns of records, as configurations declare them: `keys` (domains that list what there is),
`numbers` (values between public bounds), and the bytes it takes to read them (`working`).
"""
