"""Seal: the checksum that ends every line and every small file.

`crc` is the last member of an object: eight hexadecimal digits, the CRC-32 of all bytes before the comma in front of
it. It detects accidental changes, not deliberate ones.
"""

from __future__ import annotations

import re
import zlib

_TAIL = len(b',"crc":"00000000"}\n')
_LOOSE = re.compile(rb',\s*"crc":\s*"([0-9a-f]{8})"\s*\}\s*')


def sealed_line(text: bytes) -> bytes:
    """The text of an object as a line with its checksum.

    >>> sealed_line(b'{"a":1}')
    b'{"a":1,"crc":"a702fc6e"}\\n'
    """
    return text[:-1] + b',"crc":"%08x"}\n' % zlib.crc32(text[:-1])


def line_is_intact(line: bytes) -> bool:
    """Whether a line ends with the checksum of its text."""
    return line[-_TAIL:] == b',"crc":"%08x"}\n' % zlib.crc32(line[:-_TAIL])


def texts_if_intact(lines: list[bytes]) -> list[bytes] | None:
    """The texts of many lines without their checksums and closing braces, or None if any was changed."""
    texts = [line[:-_TAIL] for line in lines]
    # Joined into one text: formatting and comparing line by line takes longer than the checksums.
    expected = b',"crc":"%08x"}\n' * len(lines) % tuple(map(zlib.crc32, texts))
    return texts if expected == b"".join([line[-_TAIL:] for line in lines]) else None


def line_is_sealed(line: bytes) -> bool:
    """Whether a line ends with a checksum, right or wrong."""
    return line[-_TAIL:].startswith(b',"crc":"')


def sealed_file(text: bytes) -> bytes:
    """The text of an object, over several lines, with its checksum."""
    body = text.rstrip()[:-1].rstrip()
    return body + b',\n "crc": "%08x"\n}\n' % zlib.crc32(body)


def file_is_intact(text: bytes) -> bool | None:
    """Whether a file ends with the checksum of its text; None if it ends with none."""
    start = text.rfind(b",", 0, text.rfind(b'"crc"') + 1)
    found = _LOOSE.fullmatch(text, start) if start >= 0 else None
    return None if found is None else int(found[1], 16) == zlib.crc32(text[:start])
