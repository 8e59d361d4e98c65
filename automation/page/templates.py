"""Render the page's templates: everything put into them is text, whatever it holds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

import jinja2

from automation.page import words
from automation.page.deeds import Offer
from automation.page.plot import HEIGHT, WIDTH
from sluicegate.web.roles import Role

_STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """Hold one file that is served as it is."""

    media_type: str
    body: bytes


def static_files() -> dict[str, StaticFile]:
    """Give the files by name."""
    folder = files("automation.page").joinpath("static")
    return {name: StaticFile(kind, folder.joinpath(name).read_bytes()) for name, kind in _STATIC.items()}


class Templates:
    """Hold the templates; `build` names this version of page and files, so that old pages notice a newer one."""

    def __init__(self) -> None:
        self.static = static_files()
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("automation.page"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.build = self._digest()
        self._environment.globals |= {"build": self.build, "plot_width": WIDTH, "plot_height": HEIGHT, "may": may}
        self._environment.filters |= {
            "clock": words.clock,
            "day": words.day_and_clock,
            "machine": words.machine,
            "seconds": words.seconds,
            "coded": words.with_code,
        }

    def render(self, name: str, **values: object) -> str:
        """Render the template of this name."""
        return self._environment.get_template(f"{name}.html.j2").render(**values)

    def _digest(self) -> str:
        loader, digest = self._environment.loader, hashlib.sha256()
        if loader is not None:
            for name in loader.list_templates():
                digest.update(loader.get_source(self._environment, name)[0].encode())
        for name, file in sorted(self.static.items()):
            digest.update(name.encode() + file.body)
        return digest.hexdigest()[:16]


def may(role: Role, offers: tuple[Offer, ...]) -> tuple[Offer, ...]:
    """Give the offers that this role may take."""
    return tuple(offer for offer in offers if role.allows(offer.deed.role))
