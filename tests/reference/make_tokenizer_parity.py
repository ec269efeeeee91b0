"""Writes tokenizer_parity.json: what Hugging Face's tokenizers make of texts, for tests/host/test_tokenizer_parity.cpp.

    python3 tests/reference/make_tokenizer_parity.py tests/reference/tokenizer_parity.json

With a folder that has a tokenizer.json and a file with a text a line it compares more instead of writing: ids are
printed, a line for each text, as `tokenize FOLDER FILE` of that test's program prints them.

    python3 tests/reference/make_tokenizer_parity.py FOLDER FILE > ids
"""

import json
import os
import sys

from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer, Tokenizer
from tokenizers.processors import BertProcessing, TemplateProcessing

CORPUS = [
    "the quick brown fox jumps over the lazy dog", "The cat's café isn't naïve: 3.14 and 42!",
    "I'll say you're right, they've gone; we'd go?", "fiancée über straße Ångström résumé", "中文字符 日本語 한국어 русский язык",
    "@user #hashtag http://example.com 😀😂 lol", "don't can't won't shouldn't", "a an and the they then there these those",
]
HOSTILE = [
    "", " ", "\n\t\r ", "a", "A\u0301B\u0301", "e\u0301e\u0323\u0302", "\u1ec7\u0302", "İstanbul ıI", "ΣΑΣ ὈΔΥΣΣΕΎΣ ς", "ﬁ ﬀ ½ ²",
    "\u200b\u200c\u200d\ufeffzero\u200bwidth", "soft\u00adhyphen", "\u202eright to left\u202c", "שלום עולם مرحبا", "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ☃️",
    "\x00\x01\x02a\x1f\x7f\x80\x9fb", "\ufffd\ufffe\uffff", "\ue000\U000f0000", "中a文b", "㐀豈𠀀𪜀", "ひらがなカタカナ한글",
    "...!!!???", "$+<=>^`|~", "«quoted» “double” ‘single’ — dash…", "a_b-c.d,e", "  leading and trailing  ", "tab\tnew\nline\r\nend",
    "\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000spaces", "[CLS] [SEP][MASK]x[PAD] [UNK] [mask]", "<|endoftext|>x<|endoftext|>",
    "x" * 100, "y" * 101, "the" * 200, "don't I'LL 'tis ''s 's", "1234567 ١٢٣ ⅷ ①", "a" * 3000, "é" * 300, "\u0301" * 5, "a\u0301" * 120,
]


def encoded(tokenizer, texts):
    return [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


def fixture():
    texts = CORPUS + HOSTILE
    result = {"texts": texts, "cases": []}
    for lower in (True, False):
        words = BertWordPieceTokenizer(lowercase=lower, strip_accents=None)
        words.train_from_iterator(CORPUS, vocab_size=260, min_frequency=1, show_progress=False)
        cls, sep = (words.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        if lower:
            words.post_processor = BertProcessing(("[SEP]", sep), ("[CLS]", cls))
        else:
            words.post_processor = TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0",
                                                      pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                                                      special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
        pairs = encoded_pairs(words)
        result["cases"].append({"file": json.loads(words.to_str()), "ids": encoded(words, texts), "pairs": pairs,
                                "decoded": [words.decode(ids) for ids in encoded(words, texts)]})
    merged = ByteLevelBPETokenizer()
    merged.train_from_iterator(CORPUS, vocab_size=420, min_frequency=1, show_progress=False,
                               special_tokens=["<|endoftext|>"])
    result["cases"].append({"file": json.loads(merged.to_str()), "ids": encoded(merged, texts), "pairs": encoded_pairs(merged),
                            "decoded": [merged.decode(ids) for ids in encoded(merged, texts)]})
    return result


def encoded_pairs(tokenizer):
    """Pairs of texts, cut to several lengths, with their segments."""
    result = []
    for longest in (3, 4, 5, 8, 9, 12, 30):
        tokenizer.enable_truncation(longest, strategy="longest_first")
        for first, second in [(CORPUS[0], CORPUS[1]), ("a", CORPUS[2]), (CORPUS[3], "the"), (CORPUS[0], None), ("", "")]:
            both = tokenizer.encode(first, second) if second is not None else tokenizer.encode(first)
            result.append({"longest": longest, "first": first, "second": second, "ids": both.ids,
                           "segments": both.type_ids})
    tokenizer.no_truncation()
    return result


def main():
    if len(sys.argv) == 3:
        tokenizer = Tokenizer.from_file(os.path.join(sys.argv[1], "tokenizer.json"))
        with open(sys.argv[2], encoding="utf-8-sig", errors="replace", newline="\n") as file:
            for line in file:
                print(*tokenizer.encode(line.rstrip("\n"), add_special_tokens=False).ids)
    else:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            json.dump(fixture(), file, ensure_ascii=True, separators=(",", ":"))
            file.write("\n")


main()
