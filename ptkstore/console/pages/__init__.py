"""All pages, in the order of the navigation. A page is one module here and one template."""

from ptkstore.console.pages import overview, personal, plan

__all__ = ["PAGES"]

PAGES = (*overview.PAGES, *plan.PAGES, *personal.PAGES)
