"""Whether two pages are the same, apart from how their pictures are compressed."""

from __future__ import annotations

import base64
import binascii
import re
from itertools import zip_longest

from thesis_cli.base.figures import difference

_PICTURE = re.compile(r'(?<=src=")data:image/png;base64,([^"]*)(?=")')


def page_change(old: str, new: str) -> str:
    """What differs between two pages, in words; empty if nothing that a reader sees.

    Versions of zlib and Pillow compress a picture and choose its colours differently, so pictures
    are compared by their pixels, and all else by bytes.
    """
    if old == new:
        return ""
    lines = zip_longest(_PICTURE.sub("picture", old).split("\n"), _PICTURE.sub("picture", new).split("\n"))
    for number, (a, b) in enumerate(lines, 1):
        if a != b:
            return f"line {number} differs"
    for place, (a, b) in enumerate(zip(_PICTURE.findall(old), _PICTURE.findall(new), strict=True), 1):
        if a == b:
            continue
        try:
            words = difference(base64.b64decode(a, validate=True), base64.b64decode(b))
        except binascii.Error:
            words = "it is damaged"
        if words:
            return f"picture {place} differs: {words}"
    return ""
