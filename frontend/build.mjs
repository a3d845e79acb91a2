/**
 * Builds the page's script and style into the Python package, where they are shipped; with --tests, the tests into build/.
 *
 * With --check nothing is written: the exit status says whether what is shipped is what the source gives.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const assets = path.resolve(here, "../src/compile_inspect/reporters/html/assets");
const common = { bundle: true, target: "es2022", legalComments: "none", absWorkingDir: here, logLevel: "warning" };

/**
 * ASCII only: a server that names another charset than the page's own makes other characters of all others, and then the
 * hashes of the page's policy do not fit its script and style any more.
 */
const charset = "ascii";

async function bundle() {
  const script = await build({
    ...common,
    entryPoints: ["src/main.tsx"],
    format: "iife",
    minify: true,
    charset,
    jsx: "automatic",
    jsxImportSource: "preact",
    write: false,
  });
  const style = await build({ ...common, entryPoints: ["src/styles/page.css"], minify: true, charset, write: false });
  const built = { "report.js": safe(script.outputFiles[0].text), "report.css": safe(style.outputFiles[0].text) };
  for (const [name, text] of Object.entries(built)) mustBeAscii(name, text);
  return built;
}

function mustBeAscii(name, text) {
  const at = text.search(/[^\x00-\x7f]/);
  if (at < 0) return;
  const around = JSON.stringify(text.slice(Math.max(0, at - 40), at + 40));
  throw new Error(`${name} holds ${JSON.stringify(text.charAt(at))}, which is not ASCII: ${around}`);
}

/** The script stands inside of a page: it must not hold what ends its element. */
function safe(text) {
  return (
    text
      .replaceAll(/<\/(?=script|style)/gi, "<\\/")
      .replaceAll("<!--", "<\\!--")
      .trim() + "\n"
  );
}

async function tests() {
  const folder = path.join(here, "build/tests");
  await rm(folder, { recursive: true, force: true });
  const found = (await readdir(path.join(here, "tests"))).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: found.map((name) => `tests/${name}`),
    outdir: folder,
    format: "esm",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
}

if (process.argv.includes("--tests")) {
  await tests();
} else {
  const built = await bundle();
  for (const [name, text] of Object.entries(built)) {
    const file = path.join(assets, name);
    if (process.argv.includes("--check")) {
      const shipped = await readFile(file, "utf8").catch(() => "");
      if (shipped !== text) {
        console.error(`${name} is not what the source gives: run make frontend`);
        process.exitCode = 1;
      }
    } else {
      await writeFile(file, text);
      console.log(`${name}: ${Math.round(text.length / 1024)} KiB`);
    }
  }
}
