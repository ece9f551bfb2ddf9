"""The privacy core: amounts, costs, filters, exact noise, mechanisms. Import from the modules;
nothing is re-exported.

``amounts``     exact integer budget arithmetic
``costs``       what a mechanism costs, as a value: sum, convert, print, store
``calibration`` the noise for a target cost, and back
``filters``     which costs one point may still carry: basic, strong, Renyi, Gaussian-DP
``source``      cryptographic random bits
``sampler``     exact discrete Laplace and integer-rounded Gaussian noise from those bits
``fixed_point`` real statistics as integers with a known sensitivity
``mechanisms``  the releases built of these
``bisection``   the whole number at which an answer changes
``frozen``      values that compute fields of their own while they are made
"""
