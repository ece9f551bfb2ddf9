"""Pipelines: a model that is released only when it is good, trained again until it is.

A pipeline is a PTK or model, a quality target and a limit of privacy. *Privacy-adaptive training*
trains it, tests what came of it on records that no training touches, and trains again with more
budget or more records until the test accepts, or until there is nothing left to try. What is
released keeps its target with the confidence that was asked for, however many attempts it took.

``pipeline``    what is asked for: the PTK, the target, eta, the limit, the strategy
``split``       which tags are trained on, looked at and tested on, for as long as the stream lives
``attempts``    what was tried, what a strategy may know of it, and what it says next
``strategy``    which attempt comes next: ``planned`` (the default), ``conserve``, ``aggressive``;
                all of them in ``strategies``
``bench``       where attempts are charged and run; the protocol
``advancing``   attempt after attempt, until an end or until more data is needed
``held``        a bench in memory: records, their tags and a book of their own
"""
