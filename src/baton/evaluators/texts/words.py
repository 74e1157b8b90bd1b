"""Splitting text of any script into words, the way Google ADK 2.13 does for ROUGE."""

from __future__ import annotations

import unicodedata

# Written without spaces, and each character a word: kana, CJK ideographs, Hangul syllables.
_WORD_EACH = ((0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7AF))
# Written without spaces, with marks that belong to the letter before: Thai, Lao, Myanmar, Khmer.
_UNSPACED = ((0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))


class _Spacing(dict[int, str]):
    """What to write for a character (by code point) so that white space parts the words."""

    def __missing__(self, code: int) -> str:
        made = self[code] = _spaced(chr(code))
        return made


def _spaced(char: str) -> str:
    code = ord(char)
    if any(first <= code <= last for first, last in _WORD_EACH):
        return f" {char} "
    mark = unicodedata.category(char).startswith("M")
    if not mark and any(first <= code <= last for first, last in _UNSPACED):
        return f" {char}"
    return char if mark or char.isalnum() else " "


_SPACING = _Spacing()


def words(text: str) -> list[str]:
    """Return the words of a text in order, their case as it is; all else only parts them.

    A word is a run of letters, digits and combining marks. A CJK ideograph, kana or Hangul
    syllable is a word each; a Thai, Lao, Khmer or Myanmar letter starts one.
    """
    return text.translate(_SPACING).split()
