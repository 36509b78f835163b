import type { Config } from "../../config/config.ts";
import { type Clock, sleep } from "../../platform/clock.ts";
import type { Logger } from "../../platform/logger.ts";
import { loadSandbox } from "./dev-dependencies.ts";

type Sandbox = Awaited<ReturnType<Awaited<ReturnType<typeof loadSandbox>>["startSandbox"]>>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A clock that the demo sets back, for the service and the sandbox alike. */
export interface MovedClock {
  readonly now: Clock;
  /** Shows the time of so many days and hours ago. */
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

/** Runs: how many days ago, the replies that came an hour later, and the clicks after them. */
const RUNS: readonly { readonly daysAgo: number; readonly replies: readonly string[]; readonly clicks: number }[] = [
  { daysAgo: 14, replies: ["Thanks, that is just what I was looking for!"], clicks: 3 },
  { daysAgo: 10, replies: ["How much is it for a team of five?", "STOP"], clicks: 2 },
  { daysAgo: 6, replies: ["Not now, maybe in spring."], clicks: 3 },
  { daysAgo: 2, replies: [], clicks: 1 },
];

const PER_RUN = 3;

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/**
 * Lets the service write two weeks of outreach to a new log: an authorization, runs, replies, an opt-out and clicks, all
 * by its own endpoints. `token` may import and read.
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
      const wait = { "content-type": "application/json", prefer: "wait=30" };
      await call("/social/run", JSON.stringify({ limit: PER_RUN }), wait);
      const sent = sandbox.x.messages.kept.slice(seen).filter(({ sender_id }) => sender_id === us);
      clock.setBack(daysAgo, -1);
      for (const [at, text] of replies.entries()) await reply(sandbox.url, sent[at]?.recipient_id ?? "", us, text);
      for (const { text } of sent.slice(0, clicks)) {
        clock.setBack(daysAgo, -2);
        const [link = ""] = /https?:\S+\/l\/\S+/.exec(text) ?? [];
        await fetch(link, { redirect: "manual", headers: { "user-agent": BROWSER } });
      }
      seen = sandbox.x.messages.kept.length;
      await untilDispatched(call);
    }
    // A run reads what came after the last one, the opt-out among it.
    clock.setBack(1);
    await call("/social/run", JSON.stringify({ limit: 1 }), { "content-type": "application/json", prefer: "wait=30" });
  }
  clock.setBack(0);
}

/** A recipient answers on the sandbox's X. */
async function reply(url: string, from: string, to: string, text: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  await fetch(`${url}/_sandbox/inbound`, { method: "POST", headers, body: JSON.stringify({ from, to, text }) });
}

const POLL_MS = 20;

/** The clock must not jump while a request is under way. */
async function untilDispatched(call: Call): Promise<void> {
  for (;;) {
    const { channels } = (await (await call("/api/health")).json()) as { channels?: { ads?: { pending: number } } };
    if (channels?.ads?.pending === 0) return;
    await sleep(POLL_MS, NEVER);
  }
}

const NEVER = new AbortController().signal;

type Call = (path: string, body?: string, headers?: Record<string, string>) => Promise<Response>;

/** Calls an endpoint of the demo's own service. Throws where it refuses. */
function createCaller(url: string, token: string): Call {
  return async (path, body, headers = {}) => {
    const init = body === undefined ? {} : { method: "POST", body };
    const answer = await fetch(url + path, {
      ...init,
      redirect: "manual",
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    if (answer.status >= 400) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  };
}

/** Goes the way of a browser through the sandbox's consent page. Answers the account's id. */
async function authorize(call: Call, sandbox: Sandbox): Promise<string> {
  const account = [...sandbox.x.people.values()].find(({ can_authorize }) => can_authorize === true)?.id ?? "";
  const begun = await call("/social/auth");
  const consent = new URL(begun.headers.get("location") ?? "");
  const form = new URLSearchParams(consent.search);
  form.set("account", account);
  form.set("decision", "authorize");
  const decided = await fetch(consent.origin + consent.pathname, { method: "POST", body: form, redirect: "manual" });
  const { pathname, search } = new URL(decided.headers.get("location") ?? "");
  const cookie = begun.headers.get("set-cookie")?.split(";")[0] ?? "";
  await call(pathname + search, undefined, { cookie, accept: "application/json" });
  return account;
}
