import { expect } from "bun:test";
import type { NewEvent } from "../../src/log/event-log.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import { ask, openApp, post, TOKEN, type AppHarness, type Given } from "../harness/in-process/app.ts";
import { addedOf, clickOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const disposed = disposedAfterEach();

/** Opens an app with an X app, whose console requires no token. The app closes after the test. */
export async function openConsole(given: Given = {}): Promise<AppHarness> {
  return disposed(await openApp({ tokens: false, ...given, env: { X_CLIENT_ID: "app", ...given.env } }));
}

/** Returns a page once the whole log is folded. Throws if its status is not the expected one. */
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

/** Returns the rows of all tables in the page as text, with ` | ` between the cells. */
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

/** Returns the text and the link targets of each element that matches the selector. */
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

/**
 * Presses "Start run…" on a page, as a browser without script does: with what the form's fields show, and these
 * changes. Returns the text of the confirmation, and the fields that its button sends.
 */
export async function confirmStart(harness: AppHarness, path: string, changes: Readonly<Record<string, string>> = {}) {
  const { action, fields } = await formOn(await pageAt(harness, path), 'form[method="get"].action');
  for (const [name, value] of Object.entries(changes)) fields.set(name, value);
  fields.set("confirm", "start-run");
  const page = await pageAt(harness, `${action}?${fields}`);
  const sent = await formOn(page, "section.confirm form");
  expect(sent.action).toBe("/console/run/start");
  const { form_token, back, ...selection } = Object.fromEntries(sent.fields);
  expect([typeof form_token, back]).toEqual(["string", "/"]);
  return { text: (await textsAt(page, "section.confirm"))[0]!.text, selection };
}

/** Reads a form's action and the values of its fields. */
async function formOn(page: string, form: string) {
  let action = "";
  let select = "";
  const fields = new URLSearchParams();
  const rewriter = new HTMLRewriter()
    .on(form, { element: (found) => void (action = found.getAttribute("action") ?? "") })
    .on(`${form} input`, {
      element: (input) => fields.set(input.getAttribute("name")!, input.getAttribute("value") ?? ""),
    })
    .on(`${form} select`, { element: (found) => void (select = found.getAttribute("name")!) })
    .on(`${form} option`, {
      element(option) {
        // A browser chooses the first option if none is selected.
        if (fields.has(select) && !option.hasAttribute("selected")) return;
        fields.set(select, option.getAttribute("value") ?? "");
      },
    });
  await rewriter.transform(new Response(page)).text();
  return { action, fields };
}

interface Shown {
  readonly text: string;
  readonly links: readonly string[];
}

function decoded(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** Signs a browser in. Returns its cookie and the token of its forms. */
export async function signIn(harness: AppHarness) {
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await (await ask(harness.app, "/people/import", { headers: { cookie } })).text();
  const form_token = /name="form_token" value="([^"]+)"/.exec(page)?.[1] ?? "";
  /** Follows the redirect that answers a form. Returns the resulting page with its notice. */
  const follow = async (answer: Response): Promise<string> => {
    expect(answer.status).toBe(303);
    const notice = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
    const to = answer.headers.get("location") ?? "";
    return (await ask(harness.app, to, { headers: { cookie: `${cookie}; ${notice}` } })).text();
  };
  return { cookie, form_token, follow };
}

/** Opens the console with an operator who is signed in. */
export async function openSignedIn(given: Given = {}) {
  const harness = await openConsole({ tokens: true, ...given });
  return { harness, ...(await signIn(harness)) };
}
