"""How much noise each period of a training gets, what the whole run costs, and which run to choose.

Everything here is computed from public quantities before any data is read. Import from the modules:

``base``         the protocol of a schedule, and its JSON form
``decays``       uniform, listed, time, exponential, step and polynomial decay
``validation``   decay driven by the accuracy on a validation set: public, or every look charged
``runs``         a whole training, by how its batches are drawn, and its one cost
``calibration``  the least noise for a promise
``solving``      how many epochs a schedule affords, and the decay that affords so many
``estimates``    prices for comparison and planning that are not costs and cannot become any
``planning``     the run that public quantities call for: rate, steps, noise, clipping, step size
"""
