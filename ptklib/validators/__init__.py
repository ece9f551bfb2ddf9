"""Validators: is the quality that a trained state promises there, on records that its training did
not touch? And how far off may a statistic be?

A validator is a frozen configuration of public numbers. Its price is known before any record is; it
looks at a charged slice once, releases a few noisy numbers, and gives a verdict:
ACCEPT, where the promise holds with the stated confidence; RETRY, where it is not shown, which says
nothing against the state; REJECT, where no state of that kind could keep the promise. Where nothing
was promised the loss itself is told, with an interval. Import from the modules:

``verdict``    the three verdicts, and what confidence attempts leave each other
``attempts``   that confidence as a value to keep beside a pipeline
``noises``     Laplace or Gaussian: what it costs, and how much evidence is enough with it
``threshold``  how much evidence is enough, with the noise on it counted exactly
``noisy_law``  the law of two noises and of a binomial number with them

``betting``    what a test of a mean loss is: the scores of losses, their noise, their price
``supposed``   what losses are supposed to look like
``power``      how many records a test needs, and which stake it should play, before any data
``pilot``      what losses look like, from a few records
``piloted``    the bet that finds its stake by a pilot: the default for losses
``accuracy``   the test of an accuracy by the law of noisy counts: the default for accuracies
``rejecting``  no state of this class can keep the promise
``interval``   how large a mean loss is, where nothing was promised of it
``loss``       a bet and an interval, of one state on the records of its slice

``sums``       means, variances and histograms with a promise: the default for statistics
``published``  the published tests, corrected: what all of them are measured against
"""
