// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { findPerson } from "../../../projections/contact-identity.ts";
import { OPT_OUT_WORDS } from "../../../src/http/features/opt-out-page-translations.ts";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { forgetPerson } from "../../../src/privacy/forget-person-or-address.ts";
import { createOptOutCode } from "../../../src/template/short-link.ts";
import { ask, openApp, TOKEN, type AppHarness, type Ask, type Given } from "../../harness/in-process/app.ts";
import { countCases } from "../../harness/case-count.ts";
import { LOG_ENGINES } from "../../harness/in-process/temporary-log.ts";

const codeOf = (number: number): string => createOptOutCode(`secret ${number}`);
const idOf = (number: number): string => String(1_000_000 + number);

/** Returns the message to a recipient, whose text links their page to opt out. */
function message(number: number, more: object = {}): NewEvent {
  const recipient = { id: idOf(number), username: `user_${number}` };
  const about = { attempt_id: `a${number}`, run_id: "r", variant: "A", basis: "dm_first", day: "2026-03-01" } as const;
  const text = `Hi http://localhost/o/${codeOf(number)}`;
  const data = { ...about, recipient, text, links: [], opt_out_code: codeOf(number), account_id: "1", ...more };
  return { type: "DirectMessageAttempted", data };
}

const sentTo = (number: number): NewEvent => {
  const recipient = { id: idOf(number), username: `user_${number}` };
  const data = {
    attempt_id: `a${number}`,
    run_id: "r",
    recipient,
    message_id: `m${number}`,
    settled_by: "answer",
  } as const;
  return { type: "DirectMessageSent", data };
};

async function open(given: Given = {}, numbers: readonly number[] = [1, 2]): Promise<AppHarness> {
  const world = await openApp({ tokens: false, ...given });
  await world.authorize();
  for (const number of numbers) await world.append("outreach", message(number), sentTo(number));
  return world;
}

const BROWSER = { accept: "text/html", "sec-fetch-site": "same-origin" };

function press(world: AppHarness, number: number, wish?: string, headers: Ask["headers"] = BROWSER) {
  const form = { ...headers, "content-type": "application/x-www-form-urlencoded" };
  return ask(world.app, `/o/${codeOf(number)}`, { method: "POST", headers: form, body: wish ? `do=${wish}` : "" });
}

const see = (world: AppHarness, number: number, more: Ask = {}) =>
  ask(world.app, `/o/${codeOf(number)}`, { ...more, headers: { ...BROWSER, ...more.headers } });

/** Returns the numbers of the suppressed recipients, to which no run would write. */
function suppressed({ projector }: AppHarness): number[] {
  const { people } = projector.state("contacts");
  return [...people.values()].filter((one) => one.suppressed).map(({ id }) => Number(id) - 1_000_000);
}

describe.each(LOG_ENGINES)("the page to opt out, in a log %s", (engine) => {
  test("suppresses its recipient once, with its source, and reveals no name", async () => {
    await using world = await open({ engine });
    const page = await see(world, 1);
    const text = await page.text();
    expect([page.status, text]).toEqual([200, expect.stringContaining("No more messages from us?")]);
    expect(text).toContain("@we");
    expect(text).not.toContain("user_1");
    expect(text).not.toContain("Do not record my clicks");
    for (const _ of [1, 2, 3]) {
      const done = await press(world, 1, "stop");
      expect([done.status, await done.text()]).toEqual([
        200,
        expect.stringContaining("We will not write to you again"),
      ]);
    }
    const events = await world.events("RecipientSuppressed");
    expect(events.map(({ data }) => data)).toEqual([
      {
        recipient: { id: idOf(1), username: "user_1" },
        reason: "opt_out_page",
        hashes: [expect.any(String), expect.any(String)],
      },
    ]);
    expect(suppressed(world)).toEqual([1]);
    // The opt-out is also kept with the keys, so it outlasts a loss of the log.
    expect(await world.deps.keyring.keptOptOuts()).toEqual([...world.deps.hashesOf({ id: idOf(1) })]);
  });

  test("of a forgotten recipient answers like a page that no message links, and the recipient stays suppressed", async () => {
    await using world = await open({ engine });
    await press(world, 1, "stop");
    const forget = (number: number) =>
      forgetPerson(world.deps, (contacts) => findPerson(contacts, { id: idOf(number) }), {
        metadata: {},
        signal: new AbortController().signal,
      });
    await forget(1);
    await forget(2);
    const unknown = await see(world, 99);
    const expected = [404, await unknown.text()];
    for (const number of [1, 2]) {
      const [page, done] = [await see(world, number), await press(world, number, "stop")];
      expect([page.status, await page.text()]).toEqual(expected);
      expect([done.status, await done.text()]).toEqual(expected);
    }
    expect(await world.events("RecipientSuppressed")).toHaveLength(1);
    const { hashes } = world.projector.state("contacts");
    for (const number of [1, 2])
      expect(world.deps.hashesOf({ id: idOf(number) }).every((one) => hashes.has(one))).toBe(true);
  });
});

test("1,000 requests of programs and previews suppress no recipient", async () => {
  await using world = await open({ rateLimitPerMinute: 2_000 });
  const { position } = await world.store.head();
  const kinds: readonly Ask[] = [
    {},
    { method: "HEAD" },
    { headers: { "sec-purpose": "prefetch" } },
    { headers: { purpose: "preview", "user-agent": "Twitterbot/1.0" } },
    { headers: { "sec-fetch-site": "cross-site", "user-agent": "Slackbot-LinkExpanding 1.0" } },
  ];
  for (let sent = 0; sent < 1_000; sent++) expect((await see(world, 1, kinds[sent % kinds.length])).status).toBe(200);
  expect((await world.store.head()).position).toBe(position);
  expect(suppressed(world)).toEqual([]);
});

test("each of 10,000 codes suppresses its recipient and no other", async () => {
  const count = countCases(10_000);
  await using world = await openApp({ tokens: false, rateLimitPerMinute: 100_000 });
  for (let at = 0; at < count; at += 500)
    await world.append(
      "outreach",
      ...Array.from({ length: 500 }, (_, one) => [message(at + one), sentTo(at + one)]).flat(),
    );
  const order = Array.from({ length: count }, (_, number) => (number * 7_919) % count);
  for (const [nth, number] of order.entries()) {
    expect((await press(world, number, "stop")).status).toBe(200);
    if (nth % 1_000 === 500) expect(new Set(suppressed(world))).toEqual(new Set(order.slice(0, nth + 1)));
  }
  const events = await world.events("RecipientSuppressed");
  expect(events.map(({ data }) => data.recipient?.id)).toEqual(order.map(idOf));
  expect(new Set(events.flatMap(({ data }) => data.hashes ?? [])).size).toBe(2 * count);
});

test("a handle that another person has by now is not suppressed", async () => {
  await using world = await open();
  const renamed = { id: idOf(1), username: "newname" };
  const heir = { id: "77", username: "user_1" };
  const skip = (recipient: object) =>
    ({ type: "DirectMessageSkipped", data: { run_id: "r", recipient, reason: "protected" } }) as NewEvent;
  await world.append("outreach", skip(renamed), skip(heir));
  expect((await press(world, 1)).status).toBe(200);
  const [event] = await world.events("RecipientSuppressed");
  expect(event?.data.recipient).toEqual(renamed);
  expect(findPerson(world.projector.state("contacts"), { id: "77" })?.suppressed).toBe(false);
});

test("while tracking is granted, a second button revokes it once, and messages go on", async () => {
  await using world = await open();
  const granted = { recipient: { id: idOf(1) }, tracking: "granted" } as const;
  await world.append("outreach", { type: "ConsentRecorded", data: granted });
  expect(await (await see(world, 1)).text()).toContain("Do not record my clicks");
  for (const _ of [1, 2])
    expect(await (await press(world, 1, "untrack")).text()).toContain("no longer record your clicks");
  const [, denied, ...more] = await world.events("ConsentRecorded");
  expect(denied?.data).toMatchObject({ tracking: "denied", tracking_source: "opt_out_page" });
  expect([more, suppressed(world)]).toEqual([[], []]);
  expect(await (await see(world, 1)).text()).not.toContain("Do not record my clicks");
});

test("the answer is one self-contained page of at most 10 KB in each language", async () => {
  await using world = await open();
  await world.append("outreach", {
    type: "ConsentRecorded",
    data: { recipient: { id: idOf(1) }, tracking: "granted" },
  });
  for (const [language, words] of Object.entries(OPT_OUT_WORDS)) {
    const page = await see(world, 1, {
      headers: { "accept-language": `xx, ${language.toUpperCase()}-CH;q=0.9, en;q=0.8` },
    });
    const text = await page.text();
    expect(text).toContain(`<html lang="${language}">`);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(10_000);
    expect(text).toContain(words.stop);
    expect(text).not.toMatch(/<script|https?:|src=|\{account\}|\{word\}/);
    expect(Object.fromEntries(page.headers)).toMatchObject({
      "content-language": language,
      "x-robots-tag": "noindex",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-\S+'; img-src data:; form-action 'self'/,
      ),
    });
    expect(page.headers.get("set-cookie")).toBeNull();
  }
  expect(await (await see(world, 1, { headers: { "accept-language": "xx" } })).text()).toContain('lang="en"');
});

test("the button works from any page and without Sec-Fetch headers, under a strict policy", async () => {
  await using world = await open({ tokens: true, authPolicy: "strict" });
  expect((await press(world, 1, "stop", { origin: "null", accept: "text/html" })).status).toBe(200);
  expect((await press(world, 2, undefined, { "sec-fetch-site": "cross-site" })).status).toBe(200);
  expect(suppressed(world)).toEqual([1, 2]);
});

test("addresses are limited like callers without a token", async () => {
  await using world = await open({ rateLimitPerMinute: 3, trustedProxies: ["127.0.0.1"] });
  const headers = { ...BROWSER, "x-forwarded-for": "192.0.2.1" };
  for (const _ of [1, 2, 3]) expect((await see(world, 1, { headers })).status).toBe(200);
  const limited = await press(world, 1, "stop", headers);
  expect([limited.status, await limited.text()]).toEqual([429, expect.stringContaining("Not recorded yet")]);
  expect(limited.headers.get("retry-after")).not.toBeNull();
});

test("while the log is unreachable, the answer is 503 and never says that the opt-out is done", async () => {
  let isAway = false;
  const refuse = async () => {
    throw Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" });
  };
  await using world = await open({
    store: (store) => ({
      ...store,
      append: (...args) => (isAway ? refuse() : store.append(...args)),
      head: () => (isAway ? refuse() : store.head()),
      streamHead: (stream) => (isAway ? refuse() : store.streamHead(stream)),
    }),
  });
  isAway = true;
  expect((await see(world, 1)).status).toBe(200);
  for (const number of [1, 99]) {
    const answer = await press(world, number, "stop");
    const text = await answer.text();
    expect(answer.status).toBeGreaterThanOrEqual(500);
    expect(text).toContain("Please try again in a minute");
    expect(text).not.toContain("Done.");
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  }
  isAway = false;
  expect(suppressed(world)).toEqual([]);
  expect((await press(world, 1, "stop")).status).toBe(200);
});

test("the answer waits until a message on its way has arrived or failed", async () => {
  await using world = await open({}, []);
  await world.append("outreach", message(1));
  const answered = press(world, 1, "stop");
  await world.deps.projector.until((await world.store.head()).position);
  const first = await Promise.race([answered.then(() => "answered"), Bun.sleep(200).then(() => "waits")]);
  expect([first, suppressed(world)]).toEqual(["waits", [1]]);
  await world.append("outreach", sentTo(1));
  expect((await answered).status).toBe(200);
});

test("the code of the page is hidden from readers of events", async () => {
  await using world = await open({ tokens: true });
  const listed = await ask(world.app, "/api/audit/history?subject=@user_1", { token: TOKEN });
  const text = await listed.text();
  expect(listed.status).toBe(200);
  expect(text).toContain("/o/hidden-");
  expect(text).not.toContain(codeOf(1));
});
