import { setTimeout as wait } from "node:timers/promises";
import type { Sandbox } from "./sandbox.ts";
import { deliver } from "./x/messages.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Clock for the demo's service and sandbox. The demo sets it back to make a history of the last two weeks. */
export interface MovedClock {
  readonly now: () => number;
  /** Sets the clock to this many days and hours before the real time; negative hours set it later. */
  setBack(days: number, hours?: number): void;
  /** Stops the clock at this time, in ms since the epoch, until it is set back. */
  freezeAt(ms: number): void;
}

export function createMovedClock(): MovedClock {
  let behindMs = 0;
  let frozenAt: number | undefined;
  return {
    now: () => frozenAt ?? Date.now() - behindMs,
    setBack(days, hours = 0) {
      behindMs = days * DAY_MS + hours * HOUR_MS;
      frozenAt = undefined;
    },
    freezeAt: (ms) => void (frozenAt = ms),
  };
}

const NAMES = ["Alma", "Boris", "Chen", "Dalia", "Emre", "Freya", "Goran", "Hana", "Ivo", "Jonas", "Kira", "Luca"];
const CONTACTS = NAMES.map((name, at) => {
  return { id: String(1_700_000_000_000_100_000n + BigInt(at) * 1_000n), username: `${name.toLowerCase()}_demo`, name };
});

/** Recipients to import, as CSV. Every third one granted tracking, so that the console shows who clicked. */
const LIST = [
  "username,name,basis,product,tracking,tracking_at,tracking_source",
  ...CONTACTS.map(({ username, name }, at) => {
    const tracking = at % 3 === 0 ? "granted,2026-01-05,the order form" : ",,";
    return `${username},${name},opt_in,the design kit,${tracking}`;
  }),
].join("\n");

/**
 * Runs of the history: how many days ago each was, the replies that came an hour later, and the number of clicks after
 * these.
 */
const RUNS: readonly { readonly daysAgo: number; readonly replies: readonly string[]; readonly clicks: number }[] = [
  { daysAgo: 14, replies: ["Thanks, that is just what I was looking for!"], clicks: 3 },
  { daysAgo: 10, replies: ["How much is it for a team of five?", "STOP"], clicks: 2 },
  { daysAgo: 6, replies: ["Not now, maybe in spring."], clicks: 3 },
  { daysAgo: 2, replies: [], clicks: 1 },
];

const PER_RUN = 3;

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/** The demo's service while it runs. */
export interface RunningService extends AsyncDisposable {
  readonly url: string;
}

/**
 * Lets the service that `start` starts write two weeks of outreach to a new log: an authorization, runs, replies, an
 * opt-out and clicks, all through its own endpoints. `token` must be allowed to import and read.
 */
export async function makeHistory(
  start: () => Promise<RunningService>,
  sandbox: Sandbox,
  clock: MovedClock,
  token: string,
): Promise<void> {
  for (const contact of CONTACTS) sandbox.x.people.set(contact.id, { ...contact, receives_your_dm: true });
  clock.setBack(RUNS[0]?.daysAgo ?? 0, 2);
  {
    await using service = await start();
    const call = createCaller(service.url, token);
    await importList(call, LIST);
    const us = await authorize(call, sandbox);
    let seen = 0;
    for (const { daysAgo, replies, clicks } of RUNS) {
      clock.setBack(daysAgo);
      await run(call, PER_RUN);
      const sent = sandbox.x.messages.kept.slice(seen).filter(({ sender_id }) => sender_id === us);
      clock.setBack(daysAgo, -1);
      for (const [at, text] of replies.entries()) deliver(sandbox.x, sent[at]?.recipient_id ?? "", us, text);
      for (const { text } of sent.slice(0, clicks)) {
        clock.setBack(daysAgo, -2);
        const [link = ""] = /https?:\S+\/l\/\S+/.exec(text) ?? [];
        await call(link, undefined, { "user-agent": BROWSER });
      }
      seen = sandbox.x.messages.kept.length;
      await untilDispatched(call);
    }
    // Each run reads the replies since the run before it. A last run, one day before the present, reads the replies
    // that followed the last of RUNS.
    clock.setBack(1);
    await run(call, 1);
  }
  clock.setBack(0);
}

/** Imports a list of recipients in CSV into the demo's service. */
export async function importList(call: Call, list: string): Promise<void> {
  await call("/social/recipients", list, { "content-type": "text/csv" });
}

/** Makes an outreach run and waits until it has ended. */
async function run(call: Call, limit: number): Promise<void> {
  await call("/social/run", JSON.stringify({ limit }), { "content-type": "application/json", prefer: "wait=30" });
}

const POLL_MS = 20;

/** Waits until no delivery is pending. The clock must not jump while a request is in flight. */
async function untilDispatched(call: Call): Promise<void> {
  for (;;) {
    const { channels } = JSON.parse((await call("/api/health")).text) as { channels?: { ads?: { pending: number } } };
    if (channels?.ads?.pending === 0) return;
    await wait(POLL_MS);
  }
}

/** Calls the demo's service by a path, or the sandbox by a full URL. Throws for a status of 400 or more. */
export type Call = (
  address: string,
  body?: string,
  headers?: Record<string, string>,
) => Promise<{ readonly headers: Headers; readonly text: string }>;

export function createCaller(url: string, token: string): Call {
  return async (address, body, headers = {}) => {
    const target = new URL(address, url);
    const authorization: Record<string, string> = target.origin === url ? { authorization: `Bearer ${token}` } : {};
    const init = body === undefined ? {} : { method: "POST", body };
    const all = { ...authorization, ...headers };
    // oxlint-disable-next-line no-restricted-globals -- between the demo's own servers, whose redirects are answers
    const answer = await fetch(target, { ...init, headers: all, redirect: "manual" });
    const text = await answer.text();
    if (answer.status >= 400) throw new Error(`${target.pathname}: ${answer.status} ${text}`);
    return { headers: answer.headers, text };
  };
}

/** Submits the sandbox's consent page as a browser does, to authorize the service. Returns the account's id. */
async function authorize(call: Call, sandbox: Sandbox): Promise<string> {
  const account = [...sandbox.x.people.values()].find(({ can_authorize }) => can_authorize === true)?.id ?? "";
  const begun = await call("/social/auth");
  const consent = new URL(begun.headers.get("location") ?? "");
  const form = new URLSearchParams(consent.search);
  form.set("account", account);
  form.set("decision", "authorize");
  const decided = await call(consent.origin + consent.pathname, form.toString(), {
    "content-type": "application/x-www-form-urlencoded",
  });
  const { pathname, search } = new URL(decided.headers.get("location") ?? "");
  const cookie = begun.headers.get("set-cookie")?.split(";")[0] ?? "";
  await call(pathname + search, undefined, { cookie, accept: "application/json" });
  return account;
}
