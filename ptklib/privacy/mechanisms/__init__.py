"""The releases: the only ways by which anything computed from a stream may leave it.

Every mechanism is a frozen object made of public parameters. It is checked, and its ``cost`` is
known, **before any data is seen**; only ``release`` (or a session's ``ask``) takes data, and there
is no argument for which it returns a value without noise. Each class carries its proof note: unit,
sensitivity, neighbours, cost. Import from the modules:

``release``          integer vectors with Laplace or Gaussian noise, and counts
``selection``        one of several candidates: exponential mechanism, report-noisy-max
``large_margin``     one of very many candidates, when few are near the top
``above_threshold``  the first of many queries that exceeds a threshold
``gibbs``            the exact weighted draw that the selections share
``inputs``           checks of parameters and data that the mechanisms share
"""
