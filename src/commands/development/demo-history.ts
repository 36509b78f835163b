import type { Config } from "../../config/config.ts";
import { type Clock, sleep } from "../../platform/clock.ts";
import type { Logger } from "../../platform/logger.ts";
import { JSON_BODY } from "../../networks/safe-fetch.ts";
import type { loadSandbox } from "./dev-dependencies.ts";

type Sandbox = Awaited<ReturnType<Awaited<ReturnType<typeof loadSandbox>>["startSandbox"]>>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A clock that the demo sets back, for the service and the sandbox alike. */
export interface MovedClock {
  readonly now: Clock;
  /** Sets the clock this many days and hours back from now; negative hours bring it forward. */
  setBack(days: number, hours?: number): void;
}

export function createMovedClock(): MovedClock {
  let behindMs = 0;
  return {
    now: () => Date.now() - behindMs,
    setBack: (days, hours = 0) => void (behindMs = days * DAY_MS + hours * HOUR_MS),
  };
}

const NAMES = ["Alma", "Boris", "Chen", "Dalia", "Emre", "Freya", "Goran", "Hana", "Ivo", "Jonas", "Kira", "Luca"];
const CONTACTS = NAMES.map((name, at) => {
  return { id: String(1_700_000_000_000_100_000n + BigInt(at) * 1_000n), username: `${name.toLowerCase()}_demo`, name };
});

/** Every third recipient granted tracking, so that the console shows who clicked. */
const LIST = [
  "username,name,basis,product,tracking,tracking_at,tracking_source",
  ...CONTACTS.map(({ username, name }, at) => {
    const tracking = at % 3 === 0 ? "granted,2026-01-05,the order form" : ",,";
    return `${username},${name},opt_in,the design kit,${tracking}`;
  }),
].join("\n");

/** Runs: how many days ago each was, the replies an hour later, and the number of clicks after those. */
const RUNS: readonly { readonly daysAgo: number; readonly replies: readonly string[]; readonly clicks: number }[] = [
  { daysAgo: 14, replies: ["Thanks, that is just what I was looking for!"], clicks: 3 },
  { daysAgo: 10, replies: ["How much is it for a team of five?", "STOP"], clicks: 2 },
  { daysAgo: 6, replies: ["Not now, maybe in spring."], clicks: 3 },
  { daysAgo: 2, replies: [], clicks: 1 },
];

const PER_RUN = 3;

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/**
 * Makes the service write two weeks of outreach to a new log: an authorization, runs, replies, an opt-out and clicks,
 * all through its own endpoints. `token` must be allowed to import and read.
 */
export async function makeHistory(config: Config, sandbox: Sandbox, clock: MovedClock, token: string, logger: Logger) {
  const { startService } = await import("../../service/service.ts");
  for (const contact of CONTACTS) sandbox.x.people.set(contact.id, { ...contact, receives_your_dm: true });
  clock.setBack(RUNS[0]?.daysAgo ?? 0, 2);
  {
    await using service = await startService(config, logger, { clock: clock.now });
    const call = createCaller(service.url, token);
    await call("/social/recipients", LIST, { "content-type": "text/csv" });
    const us = await authorize(call, sandbox);
    let seen = 0;
    for (const { daysAgo, replies, clicks } of RUNS) {
      clock.setBack(daysAgo);
      const wait = { ...JSON_BODY, prefer: "wait=30" };
      await call("/social/run", JSON.stringify({ limit: PER_RUN }), wait);
      const sent = sandbox.x.messages.kept.slice(seen).filter(({ sender_id }) => sender_id === us);
      clock.setBack(daysAgo, -1);
      for (const [at, text] of replies.entries()) {
        const inbound = JSON.stringify({ from: sent[at]?.recipient_id, to: us, text });
        await call(`${sandbox.url}/_sandbox/inbound`, inbound, JSON_BODY);
      }
      for (const { text } of sent.slice(0, clicks)) {
        clock.setBack(daysAgo, -2);
        const [link = ""] = /https?:\S+\/l\/\S+/.exec(text) ?? [];
        await call(link, undefined, { "user-agent": BROWSER });
      }
      seen = sandbox.x.messages.kept.length;
      await untilDispatched(call);
    }
    // A run reads the replies since the run before it; this one reads any after the last of RUNS.
    clock.setBack(1);
    await call("/social/run", JSON.stringify({ limit: 1 }), { ...JSON_BODY, prefer: "wait=30" });
  }
  clock.setBack(0);
}

const POLL_MS = 20;

/** Waits until no dispatch is pending: the clock must not jump while a request is in flight. */
async function untilDispatched(call: Call): Promise<void> {
  for (;;) {
    const { channels } = JSON.parse((await call("/api/health")).text) as { channels?: { ads?: { pending: number } } };
    if (channels?.ads?.pending === 0) return;
    await sleep(POLL_MS, NEVER);
  }
}

const NEVER = new AbortController().signal;

/** Calls the demo's service by a path, or the sandbox by its full address. Throws for a status of 400 or more. */
type Call = (
  address: string,
  body?: string,
  headers?: Record<string, string>,
) => Promise<{ readonly headers: Headers; readonly text: string }>;

function createCaller(url: string, token: string): Call {
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

/** Passes the sandbox's consent page as a browser does. Returns the account's id. */
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
