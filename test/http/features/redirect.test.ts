// On the memory harness.
import { describe, expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { STREAMS } from "../../../src/log/event-log.ts";
import { type AppHarness, type Given, openApp, post } from "../../harness/memory/app.ts";
import { addedOf } from "../../harness/memory/new-events.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const TARGET = "https://shop.example/offer?a=b";
const ANN = { id: "101", username: "ann" };
const SHARED: NewEvent = { type: "LinkAdded", data: { domain: "go.example", code: "spring", target: TARGET } };
/** A code in the form of recipients' own links. */
const OWN = "7HxQp2MvkZ9bC";

/** A message to Ann with her own link. */
const INTENT: NewEvent = {
  type: "DirectMessageAttempted",
  data: {
    attempt_id: "a",
    run_id: "r",
    recipient: ANN,
    text: `Hi: https://go.example/${OWN}`,
    links: ["go.example/spring"],
    personal_links: [{ code: OWN, link: "go.example/spring" }],
    variant: "A",
    day: "2026-03-01",
  },
};

async function open(given: Given = { redirects: "before" }): Promise<AppHarness> {
  const world = await openApp({ ...given, hosts: ["localhost", "go.example"] });
  await world.append(STREAMS.outreach, SHARED);
  return world;
}

function follow(world: AppHarness, code: string, headers: Record<string, string> = {}, method = "GET") {
  const request = new Request(`http://go.example/l/${code}`, {
    method,
    headers: { host: "go.example", "user-agent": BROWSER, ...headers },
  });
  return world.app.handle(request);
}

describe("the redirect", () => {
  test("leads to the target that the log knows, once the click is durable", async () => {
    await using world = await open();
    const { status, headers } = await follow(world, "spring");
    expect([status, headers.get("location"), headers.get("cache-control")]).toEqual([302, TARGET, "no-store"]);
    const [click] = await world.events("LinkClicked");
    expect(click).toMatchObject({
      stream: "link-go.example/spring",
      data: { event: "click", domain: "go.example", short_code: "spring", original_url: TARGET, ip: "127.0.0.1" },
    });
    expect(click?.data).toMatchObject({ user_agent: BROWSER, bot: false, channels: ["ads", "chat", "messaging"] });
  });

  test.each(["/l/spring/", "//l//spring", "/l/spring//?utm_source=dm", "/l/%2Fspring", "/l/%73pring"])(
    "leads on from %s as without its slashes, and records the address of the visitor",
    async (path) => {
      await using world = await open();
      const request = new Request(`http://go.example${path}`, { headers: { host: "go.example" } });
      const requestIP = (one: Request) => (one === request ? { address: "203.0.113.9" } : null);
      Object.assign(world.app, { server: { pendingRequests: 0, requestIP, timeout() {} } });
      const { status, headers } = await world.app.handle(request);
      expect([status, headers.get("location")]).toEqual([302, TARGET]);
      const [click] = await world.events("LinkClicked");
      expect(click).toMatchObject({
        stream: "link-go.example/spring",
        data: { short_code: "spring", ip: "203.0.113.9" },
      });
    },
  );

  test("is off by default, and knows no other code: a plain page, and nothing is recorded", async () => {
    await using off = await open({});
    expect((await follow(off, "spring")).status).toBe(404);
    await using world = await open();
    const response = await follow(world, "summer");
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining("There is no such link.")]);
    expect(await world.events("LinkClicked")).toEqual([]);
  });

  test("finds a link that another instance has just added", async () => {
    await using world = await open();
    await world.eventLog.append(STREAMS.outreach, [{ ...SHARED, data: { ...SHARED.data, code: "new" } }], {});
    expect((await follow(world, "new")).status).toBe(302);
  });

  test("answers before the click is durable where that is configured", async () => {
    await using world = await open({ redirects: "after" });
    expect((await follow(world, "spring")).status).toBe(302);
    await world.projector.until(2);
    expect((await world.events("LinkClicked")).length).toBe(1);
  });

  test.each([
    ["HEAD", {}, "HEAD", { bot: true, probe: "head", channels: [] }],
    ["a prefetch", { "sec-purpose": "prefetch;prerender" }, "GET", { bot: true, probe: "prefetch", channels: [] }],
    ["an older prefetch", { purpose: "prefetch" }, "GET", { bot: true, probe: "prefetch", channels: [] }],
    ["a bot", { "user-agent": "Twitterbot/1.0" }, "GET", { bot: true }],
  ] as const)("records %s apart", async (_name, headers, method, expected) => {
    await using world = await open();
    expect((await follow(world, "spring", headers, method)).status).toBe(302);
    const [click] = await world.events("LinkClicked");
    expect(click?.data).toMatchObject(expected);
    expect(click?.data).not.toHaveProperty("visitor");
  });

  test.each(["sec-gpc", "dnt"])("records nothing of a visitor who sends %s", async (header) => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    await follow(world, OWN, { [header]: "1" });
    const [click] = await world.events("LinkClicked");
    expect(click?.data).toMatchObject({ anonymous: true, bot: false });
    for (const member of ["ip", "user_agent", "visitor"]) expect(click?.data).not.toHaveProperty(member);
    expect(await world.events("PersonalLinkClicked")).toEqual([]);
  });
});

/** Stored events, as they are on disk, that contain this text. */
async function storedWith(world: AppHarness, text: string): Promise<readonly string[]> {
  const stored = await Array.fromAsync(world.store.readStored({}), (event) => JSON.stringify(event));
  return stored.filter((event) => event.includes(text));
}

describe("a click on a recipient's own link", () => {
  const clickBoth = async (world: AppHarness): Promise<void> => {
    expect((await follow(world, OWN)).headers.get("location")).toBe(TARGET);
    const body = { event: "click", domain: "go.example", short_code: OWN, original_url: TARGET, ip: "192.0.2.1" };
    expect((await post(world.app, "/api/tracking/event", body)).status).toBe(202);
  };

  test("counts for the shared link, and is theirs while they grant tracking", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    await clickBoth(world);
    const clicks = await world.events("LinkClicked");
    expect(clicks.map(({ data }) => data.short_code)).toEqual(["spring", "spring"]);
    const own = await world.events("PersonalLinkClicked");
    expect(own.map(({ position, data }) => [position - 1, data.code])).toEqual(
      clicks.map(({ position }) => [position, OWN]),
    );
  });

  test.each(["denied", "unknown", undefined] as const)("is anonymous with tracking %p", async (tracking) => {
    await using world = await open();
    const consent = tracking === undefined ? {} : { tracking };
    await world.append(STREAMS.outreach, addedOf(ANN, consent), INTENT);
    await clickBoth(world);
    expect((await world.events("LinkClicked")).map(({ data }) => data.short_code)).toEqual(["spring", "spring"]);
    expect(await world.events("PersonalLinkClicked")).toEqual([]);
  });

  test("is anonymous once its key was deleted, whatever the log says of consent", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    const { keyring } = world.deps.encryptedLog;
    const keys = keyring.refsOf({ id: `link:${OWN}` });
    await world.append(STREAMS.outreach, {
      type: "PersonForgotten",
      data: { hashes: [], keys: [...keys], scope: "tracking" },
    });
    await clickBoth(world);
    expect(await world.events("PersonalLinkClicked")).toEqual([]);
  });

  const ESCAPED = OWN.replace(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`);

  test.each([
    ["www.go.example", OWN],
    ["go.example:8443", OWN],
    ["GO.example.", OWN],
    ["https://go.example:443/", `/${OWN}/`],
    ["go.example", `${OWN}?utm_source=dm`],
    ["go.example", ESCAPED],
    ["go.example", `https://go.example/${OWN}`],
    ["go.example", `${OWN}.`],
    ["go.example", `${OWN}/favicon.ico`],
  ])("is theirs, and its code in no record, for a click on %j with %j", async (domain, short_code) => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    const click = { event: "click", domain, short_code, original_url: `https://go.example/${OWN}` };
    expect((await post(world.app, "/api/tracking/event", click)).status).toBe(202);
    expect(await world.events("LinkClicked")).toMatchObject([
      { stream: "link-go.example/spring", data: { domain: "go.example", short_code: "spring", original_url: TARGET } },
    ]);
    expect(await world.events("PersonalLinkClicked")).toMatchObject([{ data: { code: OWN } }]);
    expect(await storedWith(world, OWN)).toEqual([]);
  });

  test("of a forgotten recipient is posted by another shortener: its code is not recorded", async () => {
    await using world = await open();
    const post13 = (domain: string) =>
      post(world.app, "/api/tracking/event", { event: "click", domain, short_code: OWN, original_url: TARGET });
    const ours = ["go.example", "GO.example", "www.go.example", "go.example:8443", "go.example.", "reach.go.example"];
    for (const domain of ours) expect((await post13(domain)).status).toBe(202);
    const clicks = await world.events("LinkClicked");
    expect(clicks.map(({ data }) => data.short_code)).toEqual([...Array(5).fill("forgotten"), OWN]);
  });

  test("is told from other links by their hosts: nothing looks through all links of the log", async () => {
    await using world = await open();
    const { shared } = world.projector.state("links");
    const refuse = (): never => {
      throw new Error("all links were read");
    };
    for (const way of ["values", "entries", "keys", "forEach", Symbol.iterator])
      Object.assign(shared, { [way]: refuse });
    const click = { event: "click", domain: "go.example", short_code: OWN, original_url: TARGET };
    expect((await post(world.app, "/api/tracking/event", click)).status).toBe(202);
    expect(await world.events("LinkClicked")).toMatchObject([{ data: { short_code: "forgotten" } }]);
  });

  test("by a neighbouring code is none", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    const last = OWN.slice(0, -1);
    for (const code of [`${last}D`, last, `${OWN}1`, OWN.toLowerCase(), `a${OWN.slice(1)}`])
      expect((await follow(world, code)).status).toBe(404);
    expect([...(await world.events("LinkClicked")), ...(await world.events("PersonalLinkClicked"))]).toEqual([]);
  });

  test("of another domain does not count as theirs", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    const click = { event: "click", domain: "other.example", short_code: OWN, original_url: TARGET };
    expect((await post(world.app, "/api/tracking/event", click)).status).toBe(202);
    expect(await world.events("PersonalLinkClicked")).toEqual([]);
    expect(await storedWith(world, OWN)).toEqual([]);
  });

  test("leaves its code nowhere in the clear", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    await clickBoth(world);
    expect(await storedWith(world, OWN)).toEqual([]);
    expect(world.logged.filter((line) => line.includes(OWN))).toEqual([]);
  });
});

describe("the place of a visitor", () => {
  const places = async (world: AppHarness) => (await world.events("LinkClicked")).map(({ data }) => data.visitor);

  test("is the same for the same visitor and link, all day, and another tomorrow", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, { ...SHARED, data: { ...SHARED.data, code: "summer" } });
    for (const code of ["spring", "spring", "summer"]) await follow(world, code);
    await follow(world, "spring", { "user-agent": `${BROWSER} Other` });
    world.now += 24 * 3_600_000;
    await follow(world, "spring");
    const [first, again, ...others] = await places(world);
    expect(first).toBeNumber();
    expect([again]).toEqual([first]);
    expect(new Set([first, ...others]).size).toBe(1 + others.length);
  });

  test("is recorded only for links that a message or an operator gave out", async () => {
    await using world = await open();
    const click = { event: "click", original_url: TARGET, ip: "192.0.2.1", domain: "go.example" };
    for (const short_code of ["unknown", "spring"])
      await post(world.app, "/api/tracking/event", { ...click, short_code });
    expect(await places(world)).toEqual([undefined, expect.any(Number)]);
  });
});
