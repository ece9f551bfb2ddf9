"""The empirical audit: run every mechanism on worst-case neighbouring inputs and bound its epsilon
from below.

Everything here runs on inputs that are invented from public parameters. No function takes data of a
stream, and none opens a store, a file or a grant. Noise is that of production (the system's
source), drawn by the code that production runs. Import from the modules:

``tape``         records what a training releases, and runs another training that is told the same
``likelihood``   what a release tells apart: log-likelihood ratios and residues
``subject``      something to audit: a claim, a neighbouring pair, and many runs of both sides
``mechanisms``   the mechanisms of ``ptklib.privacy.mechanisms``, and those that kinds of PTK bring
``pairs``        the worst neighbouring pairs that can be found for a PTK
``kinds``        PTKs, through everything their training releases
``validators``   the validators, at stakes of both kinds
``running``      the audit of many subjects: one confidence for all of them together
``report``       what was run, what was found, and in which words
``page``         the same as a page of HTML that needs nothing else
"""
