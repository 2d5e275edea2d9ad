"""The looks of a page that a program can check: names, contrast, sizes and themes."""

from __future__ import annotations

from typing import Literal

from playwright.async_api import ViewportSize

Theme = Literal["light", "dark"]
"What the person set their system to."

THEMES: tuple[Theme, ...] = ("light", "dark")
"Both."

SIZES = {"wide": (1366, 860), "narrow": (390, 844)}
"A laptop and a phone, in CSS pixels."

NAMELESS = """() => [...document.querySelectorAll("a, button, input, select, textarea")]
  .filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label")
    || [...(one.labels ?? [])].some((label) => label.textContent.trim())))
  .map((one) => one.outerHTML)"""
"Controls that a screen reader could not name."

PALE = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b]
    .map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255];
  };
  const pale = [];
  for (const one of document.querySelectorAll("main *, nav *, header *")) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !one.checkVisibility() || one.closest(":disabled, svg")) continue;
    const [a, b] = [light(rgb(getComputedStyle(one).color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) pale.push(`${one.className || one.tagName} ${ratio.toFixed(2)}`);
  }
  return [...new Set(pale)];
}"""
"Texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3)."


WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? []
  : [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.outerHTML.slice(0, 120))"""
"Elements that make the page wider than its window: only wide things may scroll."


def viewport(name: str) -> ViewportSize:
    """Return the size of a window by its name in `SIZES`."""
    width, height = SIZES[name]
    return {"width": width, "height": height}
