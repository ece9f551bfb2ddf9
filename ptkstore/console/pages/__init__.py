"""All pages, in the order of the navigation. A page is one module here and one template."""

from ptkstore.console.pages import (
    audit,
    budget,
    deliveries,
    doctor,
    events,
    operations,
    overview,
    personal,
    plan,
    ptk,
    ptks,
    what_if,
)

__all__ = ["PAGES"]

PAGES = (
    *overview.PAGES,
    *plan.PAGES,
    *what_if.PAGES,
    *ptks.PAGES,
    *ptk.PAGES,
    *budget.PAGES,
    *operations.PAGES,
    *events.PAGES,
    *deliveries.PAGES,
    *doctor.PAGES,
    *audit.PAGES,
    *personal.PAGES,
)
