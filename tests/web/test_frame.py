"""What all pages share: headers, scripts under an address that changes with them, errors."""

from __future__ import annotations

import gzip
import json
import re
from http.client import HTTPConnection
from pathlib import Path

import pytest
import zstandard

from baton.web import rendering
from baton.web.assets import Assets

from .asking import ask

PAGES = ("/conversations", "/status")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_lets_no_script_run_but_those_of_the_server(address: str, path: str) -> None:
    answer = ask(address + path)
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    ((nonce, of_styles),) = re.findall(
        r"script-src 'nonce-([\w-]{20,})'; style-src 'nonce-([\w-]{20,})';", policy
    )
    assert of_styles == nonce
    # What was written into the page by somebody else has no nonce, and another page another one.
    assert nonce not in ask(address + path).headers["Content-Security-Policy"]
    scripts = re.findall(r"<script(?![^>]*json)[^>]*>", answer.text)
    assert scripts
    assert all(f'nonce="{nonce}"' in script for script in scripts)
    # htmx acts on elements with the nonce alone, and nothing else makes elements of text.
    fetching = re.findall(r"<[^>]+\shx-get=[^>]*>", answer.text)
    assert fetching or path != "/status"
    assert all(f'hx-nonce="{nonce}"' in element for element in fetching)
    assert "require-trusted-types-for 'script'; trusted-types htmx" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # Nothing that the policy would stop anyway.
    assert not re.search(r"<[^>]+\s(style|on\w+|hx-on[^=]*)\s*=", answer.text)
    (sheet,) = re.findall(r"<style[^>]*>", answer.text)
    assert sheet == f'<style nonce="{nonce}">'


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, zstd;q=0", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("gzip;q=0.0, br", None),
        ("", None),
    ],
)
def test_a_page_is_packed_as_the_client_can_read_it(
    address: str, accepted: str, packed: str | None
) -> None:
    connection = HTTPConnection(address.removeprefix("http://"), timeout=30)
    headers = {"Accept": "text/html", "Accept-Encoding": accepted}
    connection.request("GET", "/conversations", headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    assert answer.headers["Content-Encoding"] == packed
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert answer.headers["Content-Length"] == str(len(body))
    if packed is not None:
        body = zstandard.decompress(body) if packed == "zstd" else gzip.decompress(body)
    assert body.endswith(b"</html>")


def test_scripts_may_be_kept_for_good_and_are_fetched_again_when_they_change(address: str) -> None:
    page = ask(address + "/conversations")
    assert page.headers["Cache-Control"] == "no-cache, private"
    (script,) = re.findall(r'src="(/static/[^"]+/lists\.js)"', page.text)
    kept = ask(address + script)
    assert kept.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in kept.headers["Cache-Control"]
    old = ask(address + re.sub(r"static/\w+", "static/000000000000", script))
    assert old.text == kept.text
    assert old.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("path", [*PAGES, "/issues", "/review", "/evaluations", "/playground"])
def test_a_page_has_its_styles_and_loads_one_script(address: str, path: str) -> None:
    page = ask(address + path).text
    # Nothing is fetched before the page can be painted.
    (style,) = re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    assert ":root" in style
    assert "/*" not in style
    assert 'rel="stylesheet"' not in page
    (script,) = re.findall(r'<script type="module" src="([^"]+)"', page)
    text = ask(address + script).text
    # Keys and times are in each of them, once, and no other module is asked for.
    assert text.count("export function addKey") == 0
    assert len(re.findall(r"^function addKey\(", text, re.MULTILINE)) == 1
    assert not re.search(r"^(import|export)\b|\bimport\(", text, re.MULTILINE)


def test_every_script_of_a_page_can_be_combined() -> None:
    assets = Assets()
    folder = Path(rendering.__file__).parent
    for file in sorted((folder / "static").glob("*.js")):
        if file.name == "theme.js":  # it is in each page
            continue
        made = assets.made(f"page/{file.name}")
        assert made is not None
        there: set[str] = set()
        opened = ""
        for line in made.body.decode().splitlines():
            if needed := re.search(r'= MODULES\["([^"]+)"\];$', line):
                # What is imported was put before: a ring of modules would find nothing there.
                assert needed[1] in there, line
            if put := re.match(r'MODULES\["([^"]+)"\] = \(', line):
                assert put[1] not in there
                opened = put[1]
            if line.startswith("return {") and opened:
                there.add(opened)


def test_the_report_is_drawn_by_the_same_modules(address: str) -> None:
    (static,) = re.findall(r'src="(/static/\w+/)page/app.js', ask(address + "/status").text)
    assert ask(f"{address}{static}report/dom.js").status == 200


@pytest.mark.parametrize(
    "name",
    [
        "../app.py",
        "theme.js",
        "%2e%2e/app.py",
        "nothing.js",
        "templates/base.html",
        "page/nothing.js",
        "page/../app.py",
        "page/app.css",
        "app.css+app.css",
    ],
)
def test_only_scripts_and_styles_are_given_out(address: str, name: str) -> None:
    assert ask(f"{address}/static/x/{name}").status == 404


def test_the_start_leads_to_the_conversations(address: str) -> None:
    answer = ask(address + "/?project=default")
    assert (answer.status, answer.headers["Location"]) == (303, "/conversations?project=default")


def test_a_browser_gets_a_page_for_what_there_is_not_and_a_program_json(address: str) -> None:
    page = ask(address + "/nothing")
    assert page.status == 404
    assert "There is nothing at /nothing" in page.text
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    data = ask(address + "/nothing", accept="*/*")
    assert (data.status, json.loads(data.text)["error"]) == (404, "there is nothing at /nothing")


def test_an_error_says_what_is_wrong_and_what_to_do(address: str) -> None:
    page = ask(address + "/conversations?project=nonsense")
    assert page.status == 404
    assert "There is no project <code>nonsense</code>" in page.text
    assert "Name one of those that <code>baton serve keys list</code> shows." in page.text


def test_a_page_of_another_name_or_site_gets_nothing(address: str) -> None:
    assert ask(address + "/conversations", headers={"Host": "evil.example"}).status == 421
    assert ask(address + "/conversations", headers={"Origin": "http://evil.example"}).status == 403


def test_a_cookie_is_not_for_scripts_and_not_for_other_sites(address: str) -> None:
    cookie = ask(address + "/conversations").headers["Set-Cookie"]
    assert re.match(r"baton_\d+=", cookie)
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    name = cookie.partition(";")[0]
    again = ask(address + "/conversations", headers={"Cookie": name})
    assert "Set-Cookie" not in again.headers
    broken = ask(address + "/conversations", headers={"Cookie": name[:-4] + "AAAA"})
    assert "Set-Cookie" in broken.headers
