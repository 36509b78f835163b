import { expect } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import { ask, openApp, type AppHarness, type Given } from "../harness/memory/app.ts";
import { addedOf, clickOf } from "../harness/memory/new-events.ts";

const disposed = disposedAfterEach();

/** Opens a service whose console requires no token; closed after the test. */
export async function openConsole(given: Given = {}): Promise<AppHarness> {
  return disposed(await openApp({ tokens: false, ...given }));
}

/** Returns an existing page once the whole log is folded. */
export async function pageAt(harness: AppHarness, path: string, status = 200): Promise<string> {
  await harness.projector.until((await harness.store.head()).position);
  const response = await ask(harness.app, path);
  expect([path, response.status]).toEqual([path, status]);
  return response.text();
}

export function click(code: string, bot = false, ip = "203.0.113.1"): NewEvent {
  return clickOf({ short_code: code, original_url: "https://example.com", ip, user_agent: "Firefox", bot });
}

export function person(username: string, basis: "opt_in" | "none" = "opt_in", name?: string): NewEvent {
  return addedOf({ username }, { basis, ...(name === undefined ? {} : { name }) });
}

/** The rows of all tables as text, with separated cells. */
export async function rowsOf(page: string): Promise<readonly string[]> {
  const rows: string[][] = [];
  const rewriter = new HTMLRewriter().on("tbody tr", { element: () => void rows.push([]) }).on("tbody th, tbody td", {
    element: () => void rows.at(-1)?.push(""),
    text({ text }) {
      const row = rows.at(-1);
      if (row !== undefined && row.length > 0) row[row.length - 1] += text;
    },
  });
  await rewriter.transform(new Response(page)).text();
  return rows.map((row) => row.join(" | "));
}

/** The text and the link targets of each element that matches the selector. */
export async function textsAt(page: string, selector: string): Promise<readonly Shown[]> {
  const found: { text: string; links: string[] }[] = [];
  const rewriter = new HTMLRewriter()
    .on(selector, {
      element: () => void found.push({ text: "", links: [] }),
      text({ text }) {
        const last = found.at(-1);
        if (last !== undefined) last.text += decoded(text);
      },
    })
    .on(`${selector} a`, { element: (link) => void found.at(-1)?.links.push(link.getAttribute("href") ?? "") });
  await rewriter.transform(new Response(page)).text();
  return found;
}

interface Shown {
  readonly text: string;
  readonly links: readonly string[];
}

function decoded(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}
