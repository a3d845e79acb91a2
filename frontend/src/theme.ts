/** Light, dark, or as the system has it; remembered where the browser lets a local page remember anything. */

export type Theme = "system" | "light" | "dark";
export const THEME_TITLES: Record<Theme, string> = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const ORDER: Theme[] = ["system", "light", "dark"];
const KEY = "compile-inspect-theme";

export function nextTheme(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
}

export function storedTheme(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return ORDER.find((theme) => theme === found) ?? "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A page opened from a file may not be allowed to; the choice then lasts as long as the page.
  }
}
