"""The tests of the published platform (Lecuyer et al. 2019, listing 2 and appendix B), corrected:
the reference that the validators of this house are measured against.

They release a noisy number of records and a noisy sum, set a share of eta aside for each of the two
draws and one for the records, and use inequalities of Bernstein, Clopper and Pearson, and
Hoeffding. What is corrected of the text: noise and corrections scale with the bound of the losses
in every term, losses are clipped one by one and not their sum, two-sided quantiles where both sides
are needed, and a number of records that may be none is RETRY and never a divisor. Import from the
modules:

``loss``       listing 2: ACCEPT, and REJECT by the loss of an exact minimiser
``accuracy``   appendix B.2
``sums``       appendix B.3
"""
