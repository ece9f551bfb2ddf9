"""What those who work on the project use and no user needs: set-up, locks, the layer check, test
servers, pages made from the code.

``environment`` and ``pip_settings`` run before anything is installed and import the standard
library alone.
"""
