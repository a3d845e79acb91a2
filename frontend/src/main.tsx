/** Unpacks the data in the page and shows it. */
import { render } from "preact";
import { App } from "./app";
import type { Page } from "./data";

async function unpack(text: string): Promise<Page> {
  const packed = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text()) as Page;
}

function fail(message: string): void {
  const paragraph = document.createElement("p");
  paragraph.textContent = message;
  document.getElementById("page")?.replaceChildren(paragraph);
}

async function start(): Promise<void> {
  const holder = document.getElementById("page");
  const text = document.getElementById("data")?.textContent?.trim();
  if (!holder || !text)
    return fail("This page contains no data: the file is truncated. Create it again with compile-inspect report.");
  if (typeof DecompressionStream === "undefined")
    return fail("This browser is too old for this page. Use a browser from 2023 or later.");
  try {
    const page = await unpack(text);
    // Until now it held the line that says why there is nothing to see where this script may not run.
    holder.replaceChildren();
    render(<App page={page} />, holder);
  } catch (error) {
    fail(`This page cannot be shown (${String(error)}): the file may be damaged. Create it again with compile-inspect report.`);
    throw error;
  }
}

void start();
