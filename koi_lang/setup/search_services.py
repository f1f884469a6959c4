"""Services that search the web with a key of the person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SearchService:
    """A service, the variable of its key, and where it is asked."""

    name: str
    key: str
    address: str


# In the order in which a key is looked for.
SEARCH_SERVICES = (
    SearchService("brave", "BRAVE_SEARCH_API_KEY", "https://api.search.brave.com/res/v1/web/search"),
    SearchService("tavily", "TAVILY_API_KEY", "https://api.tavily.com/search"),
)


def search_service(name: str) -> SearchService | None:
    """The service of a name."""
    return next((service for service in SEARCH_SERVICES if service.name == name.lower()), None)
