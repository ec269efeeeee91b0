#!/usr/bin/env python3
"""Writes the machine code that NVIDIA's driver made of pipelines, from a file of Halfstep's cache.

    HALFSTEP_CACHE=cache bin/bench gemm --dtype f16         # on the machine with the GPU
    tests/bench/nvidia_code.py cache/pipelines-* code       # there or elsewhere: code/0.sass, code/1.sass, ...

The driver shows no disassembly to `bench shaders`, but what VkPipelineCache holds has the code, compressed by zstd. Its
format is not documented: streams are found by zstd's magic number, and a stream's code is what nvdisasm can decode before
and after its first EXIT. Needs PyPI's zstandard, and nvdisasm, which CUDA and PyPI's triton have.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import zstandard
except ImportError:
    sys.exit("error: expected PyPI's zstandard in this Python, got none. Hint: pip install zstandard")

INSTRUCTION = 16  # bytes
EXIT = re.compile(rb"\x4d[\x09-\xf9]\0{8}\x80\x03", re.DOTALL)
NOP = re.compile(rb"\x18\x79\0{11}\xc0\x0f\0", re.DOTALL)  # what code is padded with


def streams(cache):
    """What each zstd stream in the bytes of a cache holds."""
    for start in re.finditer(re.escape(zstandard.FRAME_HEADER), cache):
        try:
            yield zstandard.ZstdDecompressor().decompressobj().decompress(cache[start.start():])
        except zstandard.ZstdError:
            pass  # bytes that are the number by chance


def decoded(arguments, code):
    """nvdisasm's text of machine code; None if some of it is none."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run([arguments.nvdisasm, "--binary", arguments.architecture, file.name],
                              capture_output=True, text=True)
    return None if done.stderr else done.stdout


def disassembly(arguments, stream):
    """Of the code in a stream, from its first instruction to its padding; None if it has none."""
    exits = [found.start() for found in EXIT.finditer(stream)]
    padding = [found.end() for found in NOP.finditer(stream)]
    if not exits or not padding:
        return None
    start, end = exits[0], padding[-1]
    for step in (100 * INSTRUCTION, INSTRUCTION):  # few runs of the program where there is much code
        while start >= step and decoded(arguments, stream[start - step:end]):
            start -= step
    return decoded(arguments, stream[start:end])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=pathlib.Path, help="a file pipelines-... of the cache")
    parser.add_argument("folder", type=pathlib.Path, help="where the code is written")
    parser.add_argument("--nvdisasm", default="nvdisasm", help="the program (%(default)s)")
    parser.add_argument("--architecture", default="SM90", help="the GPU's, as nvdisasm names it (%(default)s)")
    arguments = parser.parse_args()
    if not shutil.which(arguments.nvdisasm):
        sys.exit(f"error: expected the program {arguments.nvdisasm}, got none. Hint: CUDA and PyPI's triton have it")
    try:
        cache = arguments.cache.read_bytes()
        arguments.folder.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        sys.exit(f"error: {failure}")
    written = False
    for number, stream in enumerate(streams(cache)):
        text = disassembly(arguments, stream)
        if text is None:
            continue
        (arguments.folder / f"{number}.sass").write_text(text)
        names = collections.Counter(re.findall(r"^\s+/\*\w+\*/\s+(?:@!?U?P\w+ )?(\w+)", text, re.MULTILINE))
        most = ", ".join(f"{count} {name}" for name, count in names.most_common(8))
        print(f"{number}.sass: {sum(names.values())} instructions, {most}")
        written = True
    if not written:
        sys.exit(f"error: expected pipelines of NVIDIA's driver in {arguments.cache}, got none")


if __name__ == "__main__":
    main()
