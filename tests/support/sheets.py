#!/usr/bin/python3
"""Contact sheets of pictures, for eyes: each SVG as headless Chromium shows it, light and dark, several to a PNG.

    tests/support/sheets.py FOLDER PICTURE.svg...       writes FOLDER/light_1.png, FOLDER/dark_1.png and so on
"""
import base64
import html
import os
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from browser import Browser  # noqa: E402

WIDTH, HEIGHT = 1900, 1500


def size(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    return int(root.get("width")), int(root.get("height"))


def capture(browser, width, height):
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    return browser.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"]


def shelves(pictures):
    """Lists of pictures that fit on a sheet in lines, each picture at its own size or the sheet's width."""
    sheet, x, y, line = [], 0, 0, 0
    for path in pictures:
        width, height = size(path)
        scale = min(1, (WIDTH - 8) / width)
        width, height = width * scale + 8, height * scale + 28
        if x + width > WIDTH:
            x, y, line = 0, y + line, 0
        if sheet and y + height > HEIGHT:
            yield sheet
            sheet, x, y, line = [], 0, 0, 0
        sheet.append(path)
        x, line = x + width, max(line, height)
    if sheet:
        yield sheet


def main(folder, pictures):
    os.makedirs(folder, exist_ok=True)
    browser = Browser(WIDTH, HEIGHT)
    try:
        for scheme in ("light", "dark"):
            browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            for number, sheet in enumerate(shelves(pictures), 1):
                parts = []
                for path in sheet:
                    browser.open(os.path.abspath(path))
                    name = html.escape(os.path.basename(path))
                    image = f'<img src="data:image/png;base64,{capture(browser, *size(path))}">'
                    parts.append(f"<figure><figcaption>{name}</figcaption>{image}</figure>")
                style = ("body{margin:0;background:#888;font:14px sans-serif}figure{display:inline-block;margin:4px;"
                         "vertical-align:top}img{max-width:100%}")
                with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as page:
                    page.write(f"<!doctype html><meta charset=utf-8><style>{style}</style>{''.join(parts)}")
                    page.flush()
                    browser.open(page.name)
                    height = browser.run("document.documentElement.scrollHeight")
                    with open(os.path.join(folder, f"{scheme}_{number}.png"), "wb") as file:
                        file.write(base64.b64decode(capture(browser, WIDTH, height)))
    finally:
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
