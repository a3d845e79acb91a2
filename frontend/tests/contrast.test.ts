/** Everything that is to be read stands out from what is behind it: 4.5 to 1 at least, as WCAG 2 asks for small text. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

type Color = readonly [red: number, green: number, blue: number];
type Theme = Map<string, string>;

// The tests are run from the folder of the front end.
const base = readFileSync("src/styles/base.css", "utf8");
const sections = readFileSync("src/styles/sections.css", "utf8");

/** What a block gives names to; blocks here hold no others. */
function names(style: string, selector: string): Theme {
  const start = style.indexOf(`${selector} {`);
  assert.ok(start >= 0, selector);
  const block = style.slice(start, style.indexOf("}", start));
  return new Map([...block.matchAll(/--([\w-]+):\s*([^;]+);/g)].map((found) => [found[1] ?? "", found[2] ?? ""]));
}

function theme(selector: string): Theme {
  return new Map([
    ...names(base, ":root"),
    ...names(base, selector),
    ...names(sections, ":root"),
    ...names(sections, selector),
  ]);
}

const THEMES: [string, Theme][] = [
  ["light", theme(":root")],
  ["dark", theme(':root[data-theme="dark"]')],
  ["dark as the system", theme(':root:not([data-theme="light"])')],
];

function color(theme: Theme, name: string): Color {
  const value = theme.get(name) ?? "";
  assert.match(value, /^#[0-9a-f]{6}$/, name);
  return [1, 3, 5].map((at) => parseInt(value.slice(at, at + 2), 16)) as unknown as Color;
}

function mix(over: Color, under: Color, share: number): Color {
  return over.map((value, index) => value * share + (under[index] ?? 0) * (1 - share)) as unknown as Color;
}

function hsl(hue: number, saturation: number, lightness: number): Color {
  const reach = saturation * Math.min(lightness, 1 - lightness);
  const channel = (offset: number): number => {
    const at = (offset + hue / 30) % 12;
    return 255 * (lightness - reach * Math.max(-1, Math.min(at - 3, 9 - at, 1)));
  };
  return [channel(0), channel(8), channel(4)];
}

function luminance(color: Color): number {
  const [red, green, blue] = color.map((value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Color;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function ratio(first: Color, second: Color): number {
  const [dark, light] = [luminance(first), luminance(second)].sort((one, other) => one - other) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

const TOKENS = ["text", "quiet", "comment", "keyword", "string", "number", "name-function", "name-type"];
/** Inside of what is lit these names have other values. */
const LIT = names(base, ".lit > .kernel-head");

function inLit(theme: Theme, name: string): Color {
  const instead = /^var\(--([\w-]+)\)$/.exec(LIT.get(name) ?? "")?.[1];
  return color(theme, instead ?? name);
}

/** Pairs that are too close, in words. */
function tooClose(pairs: [name: string, front: Color, back: Color][]): string[] {
  return pairs.flatMap(([name, front, back]) => {
    const found = ratio(front, back);
    return found < 4.5 ? [`${name}: ${found.toFixed(2)}`] : [];
  });
}

for (const [name, theme] of THEMES) {
  const of = (wanted: string): Color => color(theme, wanted);

  test(`${name}: code and text on all grounds`, () => {
    const pairs = ["ground", "raised", "sunken"].flatMap((ground) =>
      [...TOKENS, "accent"].map((token): [string, Color, Color] => [`${token} on ${ground}`, of(token), of(ground)]),
    );
    assert.deepEqual(tooClose(pairs), []);
  });

  test(`${name}: what is lit or chosen`, () => {
    const pairs = [...TOKENS, "accent"].flatMap((token): [string, Color, Color][] => [
      [`${token} on lit`, inLit(theme, token), of("lit")],
      [`${token} on weakly lit`, inLit(theme, token), mix(of("lit"), of("ground"), 0.4)],
      [`${token} on chosen`, inLit(theme, token), of("chosen")],
      // Buttons in it have a ground of their own.
      [`${token} of lit on raised`, inLit(theme, token), of("raised")],
      [`${token} of lit on sunken`, inLit(theme, token), of("sunken")],
    ]);
    assert.deepEqual(tooClose(pairs), []);
  });

  test(`${name}: tones, changes and buttons`, () => {
    const pairs: [string, Color, Color][] = [
      ...["good", "warn", "bad"].flatMap((tone): [string, Color, Color][] => [
        [`${tone} on ground`, of(tone), of("ground")],
        [`${tone} on raised`, of(tone), of("raised")],
        [`${tone} on its own ground`, of(tone), of(`${tone}-ground`)],
        [`text on the ground of ${tone}`, of("text"), of(`${tone}-ground`)],
        [`accent on the ground of ${tone}`, of("accent"), of(`${tone}-ground`)],
      ]),
      ["pressed button, match of a search", of("ground"), of("accent")],
      ["tip", of("ground"), of("text")],
    ];
    assert.deepEqual(tooClose(pairs), []);
  });

  test(`${name}: the colors of kernels, whatever their hue`, () => {
    const lightness = Number(theme.get("group-lightness")?.replace("%", "")) / 100;
    const pairs: [string, Color, Color][] = [];
    for (let hue = 0; hue < 360; hue += 3) {
      const head = mix(hsl(hue, 0.55, lightness), of("ground"), 0.45);
      for (const token of ["text", "quiet"]) pairs.push([`${token} on the head of hue ${hue}`, of(token), head]);
      const stretch = mix(hsl(hue, 0.55, lightness), of("ground"), 0.25);
      for (const token of TOKENS) pairs.push([`${token} on a stretch of hue ${hue}`, of(token), stretch]);
      pairs.push([`text in a box of hue ${hue}`, of("text"), hsl(hue, 0.6, lightness)]);
    }
    assert.deepEqual(tooClose(pairs), []);
  });

  test(`${name}: phases and series`, () => {
    const pairs: [string, Color, Color][] = [];
    for (let number = 0; number < 8; number += 1) {
      const series = of(`series-${number}`);
      pairs.push([`series ${number}`, series, of("ground")]);
      if (number > 4) continue;
      pairs.push([`name of a phase on series ${number}`, of("text"), mix(series, of("ground"), 0.48)]);
    }
    assert.deepEqual(tooClose(pairs), []);
  });
}

test("both dark themes are one, and paper has the names of all colors", () => {
  assert.deepEqual([...(THEMES[1]?.[1] ?? [])], [...(THEMES[2]?.[1] ?? [])]);
  const paper = names(readFileSync("src/styles/print.css", "utf8"), ':root:not([data-theme="light"])');
  const colors = [...names(base, ":root")].flatMap(([name, value]) => (value.startsWith("#") ? [name] : []));
  assert.deepEqual(
    colors.filter((name) => !paper.has(name)),
    [],
  );
});
