"""Use the page as a browser without JavaScript does: open a confirmation, fill its form in, send it, be led back."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from tests.html_tree import Element, parsed

# What a browser says of a form of this very page.
OWN = {"Sec-Fetch-Site": "same-origin"}


class Form:
    """Hold a confirmation page's form."""

    def __init__(self, client: httpx.AsyncClient, address: str, html: str) -> None:
        self.client = client
        self.page = parsed(html)
        form = self.page.one("form")
        self.address = form.attributes["action"]
        self.fields = {one.attributes["name"]: one.attributes["value"] for one in form.all("input")}
        assert form.attributes["method"] == "post"
        assert self.address == address

    async def send(
        self, reason: str = "a test", actor: str = "ann", *, headers: Mapping[str, str] | None = None, token: str = ""
    ) -> httpx.Response:
        """Send it; gives the answer itself, redirect or not."""
        sent = self.fields | {"actor": actor, "reason": reason} | ({"token": token} if token else {})
        own = OWN | {"Origin": str(self.client.base_url).rstrip("/")}
        return await self.client.post(self.address, data=sent, headers=own if headers is None else headers)


async def opened(client: httpx.AsyncClient, address: str) -> Form:
    """Open a confirmation that can be sent."""
    answer = await client.get(address)
    assert answer.status_code == 200, answer.text
    return Form(client, address, answer.text)


async def refused(client: httpx.AsyncClient, address: str) -> str:
    """Open a confirmation that has no form, and give what it says."""
    answer = await client.get(address)
    page = parsed(answer.text)
    assert page.all("form") == []
    return page.one("main").text


async def done(client: httpx.AsyncClient, address: str, reason: str = "a test") -> Element:
    """Confirm a deed, follow the way back, and give the section that says what became of it."""
    answer = await (await opened(client, address)).send(reason)
    assert answer.status_code == 303, answer.text
    back = await client.get(answer.headers["location"])
    assert back.status_code == 200
    return parsed(back.text).one("section", class_="outcome")
