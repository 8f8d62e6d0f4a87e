"""How text is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdzoo.sequences import split_tokens

BY_HAND = {
    "punctuation stands alone": ("Hi, Anna (from U.S.)!", "Hi|,|Anna|(|from|U|.|S|.|)|!"),
    "any white space": (" a\tb\u00a0c\n\u2003d ", "a|b|c|d"),
    "symbols of ASCII": ("4% $5 a+b=c", "4|%|$|5|a|+|b|=|c"),
    "emoji and what joins them stay": ("ok 👩\u200d👩\u200d👧 🇫🇷", "ok|👩\u200d👩\u200d👧|🇫🇷"),
    "combining characters stay": ("Zoe\u0308 said", "Zoe\u0308|said"),
    "quotes of other languages": ("«Да», 「はい」", "«|Да|»|,|「|は|い|」"),
    "letters of scripts without spaces": ("在2026年,Tokyoの東京タワーへ", "在|2026|年|,|Tokyo|の|東|京|タ|ワ|ー|へ"),
    "their combining characters and digits": ("ไม่ได้ ๑๒ は\u3099", "ไ|ม่|ไ|ด้|๑๒|は\u3099"),
    "Korean has spaces": ("서울에서 만나", "서울에서|만나"),
    "a middle dot and a combining character after it": ("ア・イ.\u0301a", "ア|・|イ|.|\u0301a"),
    "nothing": (" \n ", ""),
}


@pytest.mark.parametrize(("text", "tokens"), BY_HAND.values(), ids=BY_HAND)
def test_text_is_cut_at_white_space_and_around_punctuation(text, tokens):
    assert split_tokens(text)[0] == (tokens.split("|") if tokens else [])


@given(st.text(max_size=30))
def test_offsets_give_tokens_and_leave_only_white_space(text):
    tokens, offsets = split_tokens(text)
    assert offsets.shape == (len(tokens), 2)
    assert [text[start:end] for start, end in offsets.tolist()] == tokens
    rest = list(text)
    for start, end in offsets.tolist():
        rest[start:end] = " " * (end - start)
    assert "".join(rest).strip() == ""
    assert not any(letter.isspace() for token in tokens for letter in token)
