/** Whether the page is being printed: what is folded away on the screen then has to be there, as paper has nothing to click. */
import { useEffect, useState } from "preact/hooks";

type Listener = (printing: boolean) => void;
const listeners = new Set<Listener>();
let listening = false;

function listen(): void {
  if (listening) return;
  listening = true;
  window.addEventListener("beforeprint", () => listeners.forEach((listener) => listener(true)));
  window.addEventListener("afterprint", () => listeners.forEach((listener) => listener(false)));
}

export function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    listen();
    listeners.add(setPrinting);
    return () => void listeners.delete(setPrinting);
  }, []);
  return printing;
}
