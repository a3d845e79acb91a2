/**
 * Paths of modules as people write them.
 *
 * Dynamo names a module by how it got there, `L['self']._modules['blocks'].0.norm`; a reader looks for
 * `self.blocks.0.norm`. Only what is shown is shortened: whatever compares paths uses them as they came.
 */

const NOISE = new Set(["L", "G", "__dict__", "_modules", "_orig_mod"]);

/** Splits at dots and subscripts, and drops the parts that only say how the path was taken. */
export function moduleParts(path: string): string[] {
  if (path === "") return [];
  const parts: string[] = [];
  for (const match of path.matchAll(/\[\s*(?:'([^']*)'|"([^"]*)"|([^\]]*))\s*\]|([^.[]+)/g)) {
    const text = match[1] ?? match[2] ?? match[3] ?? match[4] ?? "";
    if (text !== "" && !(NOISE.has(text) && (match[4] !== undefined || text === "_modules"))) parts.push(text);
  }
  return parts.length > 0 ? parts : [path];
}

export function moduleText(path: string): string {
  return moduleParts(path).join(".");
}
