"""Validators: is the quality that a trained state promises there, on records that its training did
not touch?

A validator looks at a charged test slice once, through one noisy number, and gives a verdict:
ACCEPT, where the promise holds with the stated confidence; RETRY, where it is not shown, which says
nothing against the state; REJECT, where no state of that kind could keep the promise. Where nothing
was promised the loss itself is told, with an interval. Import from the modules:

``verdict``    the three verdicts, and what confidence attempts leave each other
``threshold``  how much evidence is enough, with the noise on it counted exactly
``betting``    what a test of a mean loss is: the scores of losses, their noise, their price
``power``      how many records a test needs, and which stake it should play, before any data
``interval``   how large a mean loss is, where nothing was promised of it
``loss``       both, of one state on the records of its slice
"""
