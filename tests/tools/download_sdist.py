"""Fetch the source distribution that requirements.txt pins, check its digest and unpack it.

    python download_sdist.py REQUIREMENTS PACKAGE FOLDER

The archive is taken straight from the index that pip is set up to use. pip itself would first run the
package's build to learn its metadata, which takes minutes and needs a build tool chain.
"""

import hashlib
import html.parser
import io
import json
import os
import pathlib
import re
import ssl
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request

WANTED_PAGE = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"


class Links(html.parser.HTMLParser):
    """The file links of an index page that came as HTML."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def handle_starttag(self, tag, attrs):
        address = dict(attrs).get("href") if tag == "a" else None
        if address:
            path = urllib.parse.urlsplit(address).path
            self.found[urllib.parse.unquote(path.rsplit("/", 1)[-1])] = address


def pip_setting(name):
    """What pip would use for an option: the environment first, then its configuration files."""
    from_environment = os.environ.get("PIP_" + name.replace("-", "_").upper())
    if from_environment:
        return from_environment
    for section in ("download", "install", "global"):
        asked = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", f"{section}.{name}"], capture_output=True, text=True
        )
        if asked.returncode == 0 and asked.stdout.strip():
            return asked.stdout.strip()
    return None


def default_index():
    """pip's own idea of where packages live when nothing is configured."""
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


def pins(requirements, package):
    """The version and the digest that the requirements file names for a package."""
    text = pathlib.Path(requirements).read_text(encoding="utf-8")
    name = re.escape(package)
    version = re.search(rf"^{name}==(\S+)$", text, re.MULTILINE)
    digest = re.search(rf"^# sdist: {name} sha256=([0-9a-f]{{64}})$", text, re.MULTILINE)
    if not version or not digest:
        sys.exit(f"{requirements} pins no version or no sdist digest for {package}")
    return version[1], digest[1]


def fetch(address, context, accept="*/*"):
    """One download: the body and its content type."""
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=180, context=context) as reply:
        return reply.read(), reply.headers.get("Content-Type", ""), reply.url


def main(requirements, package, folder):
    version, digest = pins(requirements, package)
    archive = f"{package}-{version}.tar.gz"
    index = (pip_setting("index-url") or default_index()).rstrip("/")
    context = ssl.create_default_context(cafile=pip_setting("cert"))

    body, kind, page = fetch(f"{index}/{package}/", context, WANTED_PAGE)
    if "json" in kind:
        addresses = {entry["filename"]: entry["url"] for entry in json.loads(body)["files"]}
    else:
        links = Links()
        links.feed(body.decode("utf-8", "replace"))
        addresses = links.found
    if archive not in addresses:
        sys.exit(f"{archive} is not in pip's index")

    content, _, _ = fetch(urllib.parse.urljoin(page, addresses[archive]), context)
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        sys.exit(f"{archive}: expected sha256 {digest}, found {found}")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as unpacked:
        # The filter came to Python 3.11 in 3.11.4; the digest has already said what is inside.
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        unpacked.extractall(folder, **safe)
    print(pathlib.Path(folder) / f"{package}-{version}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
