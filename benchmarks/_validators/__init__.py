"""Parts of the benchmark of the validators: populations, verdicts in bulk, power, adaptive
pipelines.
"""
