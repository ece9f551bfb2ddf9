"""Statistics with a promise: released with noise, and with how far from the truth they may be.

The error of a sum is known from the records that it was made of; it takes no test slice, and more
records always help, so there is no REJECT. ACCEPT says that the absolute error is at most the
tolerance, with the stated confidence, sampling and noise together. Import from the modules:

``told``       what all of them tell
``means``      the mean of a number
``variances``  its variance
``cells``      the shares of the cells of a histogram
"""
