#!/usr/bin/env python3
"""show_field.py FIELD.pgm [PICTURE.png]: prints a grey picture, as heat writes it, in characters, and writes it in colours."""

import struct
import sys
import zlib

RAMP = " .:-=+*#%@"  # cold to hot
COLUMNS, ROWS = 64, 24


def read_pgm(path):
    with open(path, "rb") as file:
        kind, size, most, pixels = file.read().split(b"\n", 3)
    width, height = map(int, size.split())
    if kind != b"P5" or most != b"255" or len(pixels) != width * height:
        sys.exit(f"{path} is not a binary PGM file of 8 bits")
    return width, height, pixels


def in_characters(width, height, pixels):
    """A line of text for each row: means of the places that a character stands for."""
    columns, rows = min(COLUMNS, width), min(ROWS, height)
    for row in range(rows):
        lines = range(row * height // rows, (row + 1) * height // rows)
        text = ""
        for column in range(columns):
            places = range(column * width // columns, (column + 1) * width // columns)
            values = [pixels[line * width + place] for line in lines for place in places]
            text += RAMP[sum(values) * len(RAMP) // (len(values) * 256)]
        yield text


def heat_colours():
    """256 colours: black, red, yellow, white."""
    return bytes(min(255, max(0, value * 3 - part * 255)) for value in range(256) for part in range(3))


def write_png(path, width, height, pixels):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    lines = b"".join(b"\0" + pixels[row * width:(row + 1) * width] for row in range(height))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
                   chunk(b"PLTE", heat_colours()) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    field = read_pgm(sys.argv[1])
    print("\n".join(in_characters(*field)))
    if len(sys.argv) == 3:
        write_png(sys.argv[2], *field)


if __name__ == "__main__":
    main()
