"""How well the texts of an SVG can be read: the contrast of each with what is drawn below it (WCAG 2's ratio), light and dark.
Knows what npumemctl's pictures use: rectangles, texts, patterns of rectangles and strokes, classes, one media query."""

import colorsys
import re
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 0.6  # of the font's size
DARK = re.compile(r"@media\(prefers-color-scheme:dark\)\{((?:[^{}]*\{[^{}]*\})*)\s*\}")


def rules(style, scheme):
    """(names of a selector, declarations), in the order of the file."""
    text = style if scheme == "dark" else DARK.sub("", style)
    if scheme == "dark":
        text = DARK.sub(lambda match: match[1], text)
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        declarations = dict(one.split(":", 1) for one in body.split(";") if one)
        for selector in selectors.split(","):
            yield selector.strip(), declarations


def colour(value):
    """(red, green, blue) from 0 to 1; None for none."""
    if value == "none":
        return None
    if found := re.fullmatch(r"hsl\((\d+),(\d+)%,(\d+)%\)", value):
        hue, saturation, lightness = map(int, found.groups())
        return colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)
    digits = value.removeprefix("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    return tuple(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))


def luminance(rgb):
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ratio(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def blend(over, below, opacity):
    return tuple(opacity * a + (1 - opacity) * b for a, b in zip(over, below))


class Picture:
    def __init__(self, path, scheme):
        self.root = xml.etree.ElementTree.parse(path).getroot()
        self.rules = list(rules("".join(style.text for style in self.root.iter(SVG + "style")), scheme))
        self.patterns = {pattern.get("id"): pattern for pattern in self.root.iter(SVG + "pattern")}
        self.size = float(self.root.get("font-size"))
        self.styles = {}

    def style(self, element):
        """The declarations that hold for it: a class is stronger than an element's name, the later one than the earlier."""
        key = element.tag, element.get("class", "")
        if key not in self.styles:
            names = [element.tag.removeprefix(SVG)], ["." + name for name in key[1].split()]
            self.styles[key] = {}
            for strength in names:
                for selector, declarations in self.rules:
                    if selector in strength:
                        self.styles[key].update(declarations)
        attributes = {name: element.get(name) for name in ("fill", "stroke") if element.get(name)}
        return {**attributes, **self.styles[key]}

    def fills(self, element, below):
        """What colours it has where these lie below."""
        fill = self.style(element).get("fill", "#000")
        if not fill.startswith("url"):
            return {colour(fill)} if fill != "none" else below
        ground, strokes = set(below), set()
        for part in self.patterns[fill[5:-1]]:
            style = self.style(part)
            if part.tag == SVG + "rect":
                ground = {colour(style["fill"])}
            else:
                strokes |= {blend(colour(style["stroke"]), one, float(style.get("stroke-opacity", 1))) for one in ground}
        return ground | strokes

    def texts(self):
        """(text, its colour, the colours below it). A text's own is of the last rectangle that has all of its middle line."""
        boxes = []
        for element in self.root:
            if element.tag == SVG + "rect":
                left, top = float(element.get("x", 0)), float(element.get("y", 0))
                boxes.append((left, top, left + float(element.get("width")), top + float(element.get("height")), element))
            if element.tag != SVG + "text":
                continue
            style = self.style(element)
            size = float(style.get("font-size", f"{self.size}px").removesuffix("px"))
            wide, x = LETTER * size * len(element.text), float(element.get("x"))
            x -= {"middle": wide / 2, "end": wide}.get(style.get("text-anchor"), 0)
            y = float(element.get("y")) - 0.35 * size
            below = set()
            for left, top, right, bottom, box in boxes:
                if top <= y <= bottom and left < x + wide and x < right:
                    found = self.fills(box, below)
                    below = found if left <= x and x + wide <= right else below | found
            yield element.text, colour(style["fill"]), below


def worst(path, scheme):
    """(ratio, text) of what is read worst."""
    return min((ratio(own, one), text) for text, own, below in Picture(path, scheme).texts() for one in below)
