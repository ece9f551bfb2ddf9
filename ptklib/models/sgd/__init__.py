"""Training by noisy gradients: dense nets, with a price for the whole run before it starts.

`network` is what is trained and `whole` the grids on which it is computed; `clipped` sums the
clipped gradients of a batch without any rounding (the proof of the engine is there), `heads` says
where they come from. `plan` prices a run, `members` draws its batches, `noise` its noise, `run`
makes its steps and `checkpoint` keeps them. `plain` trains the same net without privacy.
"""
