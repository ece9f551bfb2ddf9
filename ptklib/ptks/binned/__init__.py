"""What kinds that learn a label from binned inputs share: public bins, what is learned, records as
small whole numbers, exact counts, and noise for a part of a budget.
"""
