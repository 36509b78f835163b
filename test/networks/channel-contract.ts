import { describe, expect, test } from "bun:test";
import { loadConfig } from "../../src/config/config.ts";
import type { ClickChannel } from "../../events/channel-and-lane-names.ts";
import type { Channel, Click, Dispatch, DispatchResult } from "../../src/networks/network.ts";
import { plainText } from "../../src/networks/sanitize-and-truncate-text.ts";
import { connectNetworks } from "../../src/service/connect-networks.ts";
import type { Fault, FaultKind } from "../../sandbox/faults.ts";
import type { Network } from "../../sandbox/network-origins-and-refusals.ts";
import type { Rendered } from "../../sandbox/render-chat-markup.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { settingsOf, type Choice } from "../../sandbox/service-settings.ts";

/** Network under test, with those of its properties that matter for the contract of a channel. */
export interface Subject {
  readonly network: Network;
  readonly channel: ClickChannel;
  readonly choice: Choice;
  /** True if the network recognises a message that is sent again under the same id. */
  readonly deduplicates: boolean;
  /** True if the status of the network's answer alone proves that it accepted a dispatch. */
  readonly statusSuffices?: true;
  /** Pause of the channel after a 429 without a Retry-After header, in ms. */
  readonly pauseMs?: number;
  readonly permanent: readonly FaultKind[];
  /** Returns settings with a credential that the network does not know. */
  readonly wrong: (settings: Record<string, string>) => Record<string, string>;
  /** Returns the texts that arrived at the sandbox; undefined if the channel sends no text of ours. */
  readonly texts?: (sandbox: Sandbox) => readonly Rendered[];
  readonly arrived: (sandbox: Sandbox) => number;
  readonly secrets: (sandbox: Sandbox) => readonly string[];
  /** Sets a rate limit of the sandbox's network; undefined if the sandbox has none for it. */
  readonly limit?: (sandbox: Sandbox, most: number) => void;
  /** True if the network can check a credential without a message. */
  readonly checks: boolean;
}

/** Timeout in ms for a network that answers, long enough for a busy machine. */
const TIMEOUT_MS = 60_000;
/** Timeout in ms for a network that does not answer, long enough for the request to arrive. */
const BRIEF_MS = 1_000;

/** Patterns of the names of each channel's settings. */
const OWN: Readonly<Record<ClickChannel, RegExp>> = {
  ads: /^META_/,
  "ads-openai": /^OPENAI_/,
  "ads-snap": /^SNAP_/,
  chat: /^CHAT_/,
  messaging: /^(?:MESSAGING|TELEGRAM|LINE|WHATSAPP)_/,
};

const HOSTILE = "<!channel> @everyone @here *_~`[]()<users/all> <b>";
const FORMATTED = [
  "*bold* **bolder** _slanted_ __under__ ~gone~ ~~gone~~ `code` ```block``` ||secret||",
  "[bank](https://evil.example/a) <https://evil.example/b|bank> <https://evil.example/c> <mailto:a@evil.example|me>",
  "<@123> <@!123> <@&123> <#123> </cmd:123> <id:guide> <t:0:R> <a:wave:123> :smile: <users/123> <!here|x> <at>all</at>",
  "# head",
  "-# small",
  "- item",
  "* item",
  "1. one",
  "> quoted",
  ">>> all",
  "\\*not bold\\* {{DATE(2026-11-20T10:00:00Z, SHORT)}} {{{TIME(2026-11-20T10:00:00Z)}} ${x} @{x} &lt;b&gt; &amp;",
  "https://shop.example/a_b_c/*x*?q=1&r=~2~#_top_ and https://e.example/<@123>_x_ end",
].join("\n");
const CONTROL = "a\0b\x1b[31mc\x07\u202ed\r\ne\tf\x7f";

/** Declares the tests that every channel must pass, against the sandbox over real HTTP. */
export function describeChannel(subject: Subject): void {
  describe(`${subject.network} as the ${subject.channel} channel`, () => {
    describeDelivery(subject);
    describeFaults(subject);
    describeCredential(subject);
  });
}

function openAt(sandbox: Sandbox, subject: Subject, change = (settings: Record<string, string>) => settings): Channel {
  const settings = Object.entries(change(settingsOf(sandbox, subject.choice)));
  // All networks of the sandbox have the same origin. Only the settings of the channel under test may allow calls to
  // it.
  const own = settings.filter(([name]) => OWN[subject.channel].test(name));
  const config = loadConfig(Object.fromEntries(own), () => "");
  const channel = connectNetworks(config).channels.find(({ name }) => name === subject.channel);
  if (channel === undefined) throw new Error(`no ${subject.channel} channel`);
  expect(channel.network).toBe(subject.network);
  return channel;
}

async function send(sandbox: Sandbox, subject: Subject, dispatch: Dispatch, timeoutMs = TIMEOUT_MS) {
  const result = await openAt(sandbox, subject).send(dispatch, { timeoutMs, now: sandbox.clock.now() });
  expectSecrecy(sandbox, subject, result);
  return result;
}

function expectSecrecy(sandbox: Sandbox, subject: Subject, said: unknown): void {
  const words = JSON.stringify(said);
  for (const secret of subject.secrets(sandbox)) expect(words).not.toContain(secret);
}

/** Kinds of dispatches to networks for people, which are all kinds except those to webhooks. */
type Kind = Exclude<Dispatch["kind"], "event">;

function dispatches(): Record<Kind, Dispatch> {
  const base = { id: Bun.randomUUIDv7(), time: new Date().toISOString() };
  const link = { domain: "go.example", shortCode: "a_b*c", clicks: 3, bots: 1, first: base.time, last: base.time };
  const links = Array.from({ length: 200 }, (_, at) => ({ ...link, shortCode: `${link.shortCode}${at}` }));
  const click: Click = {
    ...base,
    kind: "click",
    event: "click",
    domain: "go.example",
    shortCode: "autumn_sale",
    originalUrl: "https://shop.example/a_b?x=*1*",
    normalizedUrl: "https://shop.example/a_b?x=*1*",
    ip: "203.0.113.77",
    userAgent: "Mozilla/5.0 (X11; Linux)",
    bot: false,
  };
  return {
    click,
    conversion: { ...base, kind: "conversion", name: "Purchase", value: "24.90", currency: "EUR", click },
    notification: { ...base, kind: "notification", message: "disk is full", service: "backup", level: "error" },
    message: { ...base, kind: "message", text: "hello\nthere" },
    digest: { ...base, kind: "digest", clicks: 600, bots: 200, links },
    test: { ...base, kind: "test" },
  };
}

const message = (text: string): Dispatch => ({ ...dispatches().message, text }) as Dispatch;

function describeDelivery(subject: Subject): void {
  const kinds: readonly Kind[] =
    subject.texts === undefined
      ? ["click", "conversion", "test"]
      : ["click", "notification", "message", "digest", "test"];

  test.each(kinds)("a %s is delivered", async (kind) => {
    await using sandbox = await startSandbox();
    expect(await send(sandbox, subject, dispatches()[kind])).toMatchObject({ outcome: "delivered" });
    expect(subject.arrived(sandbox)).toBe(1);
  });

  const { texts, limit } = subject;
  if (texts !== undefined) {
    test.each([HOSTILE, FORMATTED, CONTROL])("%j arrives unchanged, as plain text", async (text) => {
      await using sandbox = await startSandbox();
      expect(await send(sandbox, subject, message(text))).toMatchObject({ outcome: "delivered" });
      expect(texts(sandbox)).toEqual([{ text: plainText(text), marks: [] }]);
    });

    test.each(["a", "*", "<", "é", "😀", "\\", '"', "\n", "https://shop.example/a_b?", "{{DATE("])(
      "a long text of %j is cut between characters and delivered",
      async (part) => {
        await using sandbox = await startSandbox();
        const text = `-${part.repeat(40_000)}.`;
        expect(await send(sandbox, subject, message(text))).toMatchObject({ outcome: "delivered" });
        const [shown] = texts(sandbox);
        expect(shown?.marks).toEqual([]);
        expect(shown?.text.isWellFormed()).toBe(true);
        expect(shown?.text).toEndWith("…");
        // Line breaks are ignored, because networks put the sections of a message on separate lines.
        const flat = (words: string): string => words.replaceAll("\n", "");
        expect(flat(text)).toStartWith(flat(shown?.text.slice(0, -1) ?? "nothing"));
      },
    );
  }

  if (limit !== undefined) {
    test("a message over the limit is retryable and is delivered later", async () => {
      await using sandbox = await startSandbox();
      limit(sandbox, 1);
      expect(await send(sandbox, subject, dispatches().test)).toMatchObject({ outcome: "delivered" });
      const later = dispatches().test;
      expect(await send(sandbox, subject, later)).toMatchObject({ outcome: "retryable" });
      expect(subject.arrived(sandbox)).toBe(1);
      sandbox.clock.advance(10 * 60_000);
      expect(await send(sandbox, subject, later)).toMatchObject({ outcome: "delivered" });
    });
  }
}

function describeFaults(subject: Subject): void {
  const { network, deduplicates, pauseMs } = subject;
  const unsure: DispatchResult["outcome"] = deduplicates ? "retryable" : "in_doubt";
  const spoiled = subject.statusSuffices === true ? "delivered" : unsure;

  const under = async (sandbox: Sandbox, fault: Omit<Fault, "network">, timeoutMs: number) => {
    sandbox.faults.add({ network, count: 1, ...fault });
    const dispatch = dispatches().test;
    const result = await send(sandbox, subject, dispatch, timeoutMs);
    expect(sandbox.faults.list()).toEqual([]);
    // A network that does not deduplicate must not have received the message if the channel allows a retry: the retry
    // would be a duplicate.
    if (result.outcome === "retryable") {
      if (!deduplicates) expect(subject.arrived(sandbox)).toBe(0);
      expect(await send(sandbox, subject, dispatch)).toMatchObject({ outcome: "delivered" });
      expect(subject.arrived(sandbox)).toBe(1);
    }
    return result;
  };

  test("a 429 is retryable after its Retry-After", async () => {
    await using sandbox = await startSandbox();
    const result = await under(sandbox, { kind: "429", retryAfter: 7 }, TIMEOUT_MS);
    expect(result).toMatchObject({ outcome: "retryable", retryAfterMs: 7_000 });
    expect(result).not.toHaveProperty("mayHaveArrived");
  });

  test("a 429 is retryable after a Retry-After that is a date hours ahead", async () => {
    await using sandbox = await startSandbox();
    // The network's clock is ahead of ours. The wait must be counted from the network's time.
    sandbox.clock.advance(600_000);
    const result = await under(sandbox, { kind: "429", retryAfter: 7_200, asDate: true }, TIMEOUT_MS);
    expect(result).toMatchObject({ outcome: "retryable", retryAfterMs: 7_200_000 });
  });

  test("a 429 without Retry-After is retryable", async () => {
    await using sandbox = await startSandbox();
    const result = await under(sandbox, { kind: "429" }, TIMEOUT_MS);
    expect(result.outcome).toBe("retryable");
    expect(result.outcome === "retryable" ? result.retryAfterMs : "").toBe(pauseMs);
  });

  test.each<[FaultKind, DispatchResult["outcome"], number]>([
    ["500", unsure, TIMEOUT_MS],
    ["502_html", unsure, TIMEOUT_MS],
    ["redirect", unsure, TIMEOUT_MS],
    ["reset_before", unsure, TIMEOUT_MS],
    ["reset_after_delivery", unsure, TIMEOUT_MS],
    ["timeout_before", unsure, BRIEF_MS],
    ["timeout_after_delivery", unsure, BRIEF_MS],
    ["slow_body", spoiled, BRIEF_MS],
    ["huge_body", spoiled, TIMEOUT_MS],
    ["cut_body", spoiled, TIMEOUT_MS],
    ["invalid_json", spoiled, TIMEOUT_MS],
  ])("the fault %s ends in time as %s", async (kind, outcome, timeoutMs) => {
    await using sandbox = await startSandbox();
    const result = await under(sandbox, { kind }, timeoutMs);
    expect(result.outcome).toBe(outcome);
    // If the first attempt may have arrived, the result must say so, because a retry could then be a duplicate.
    if (result.outcome === "retryable") expect(result.mayHaveArrived).toBe(true);
  });

  test("states a deduplication window only if the network deduplicates", async () => {
    await using sandbox = await startSandbox();
    const { recognisesMs } = openAt(sandbox, subject);
    expect(recognisesMs === undefined).toBe(!deduplicates);
  });

  test("a refused connection is retryable and certainly delivered nothing", async () => {
    const sandbox = await startSandbox();
    await sandbox[Symbol.asyncDispose]();
    const result = await send(sandbox, subject, dispatches().test);
    expect(result.outcome).toBe("retryable");
    expect(result).not.toHaveProperty("mayHaveArrived");
  });

  test.each(["token_revoked", ...subject.permanent] as FaultKind[])(
    "the fault %s refuses the whole channel",
    async (kind) => {
      await using sandbox = await startSandbox();
      sandbox.faults.add({ network, kind });
      expect(await send(sandbox, subject, dispatches().test)).toMatchObject({ outcome: "refused", channel: true });
      expect(subject.arrived(sandbox)).toBe(0);
    },
  );
}

function describeCredential(subject: Subject): void {
  const checked = async (sandbox: Sandbox, channel: Channel) => {
    const verdict = await channel.check(TIMEOUT_MS);
    expectSecrecy(sandbox, subject, verdict);
    return verdict.ok;
  };

  test("an unknown credential refuses the whole channel", async () => {
    await using sandbox = await startSandbox();
    const channel = openAt(sandbox, subject, subject.wrong);
    const result = await channel.send(dispatches().test, { timeoutMs: TIMEOUT_MS, now: sandbox.clock.now() });
    expectSecrecy(sandbox, subject, result);
    expect(result).toMatchObject({ outcome: "refused", channel: true });
    if (subject.checks) expect(await checked(sandbox, channel)).toBe(false);
  });

  test("the check passes without posting a message", async () => {
    await using sandbox = await startSandbox();
    expect(await checked(sandbox, openAt(sandbox, subject))).toBe(true);
    expect(subject.arrived(sandbox)).toBe(0);
  });

  test("the check fails while the network does not listen", async () => {
    const sandbox = await startSandbox();
    await sandbox[Symbol.asyncDispose]();
    expect(await checked(sandbox, openAt(sandbox, subject))).toBe(false);
  });

  test("the credential changes with its setting and is never shown", async () => {
    await using sandbox = await startSandbox();
    const [one, other] = [openAt(sandbox, subject), openAt(sandbox, subject, subject.wrong)];
    expect(one.credential.reveal()).not.toBe(other.credential.reveal());
    for (const secret of subject.secrets(sandbox)) expect(Bun.inspect(one, { depth: 9 })).not.toContain(secret);
  });
}
