// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import type { NewEvent } from "../../../src/log/event-log.ts";
import { STREAMS } from "../../../src/log/event-log.ts";
import { type AppHarness, type Given, openApp, post } from "../../harness/in-process/app.ts";
import { addedOf } from "../../harness/in-process/make-recipient-and-click-events.ts";
import { createRandom } from "../../harness/random.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const TARGET = "https://shop.example/offer?a=b";
const ANN = { id: "101", username: "ann" };
const SHARED: NewEvent = { type: "LinkAdded", data: { domain: "go.example", code: "spring", target: TARGET } };
/** Short code as a recipient's personal link has it. */
const OWN = "7HxQp2MvkZ9bC";

/** Event of a message to Ann that contains her personal link. */
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
  test("leads to the recorded target, and records the click", async () => {
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
    "serves %s like /l/spring, and records the visitor's address",
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

  test("is off by default, and answers an unknown code with 404 and no event", async () => {
    await using off = await open({});
    expect((await follow(off, "spring")).status).toBe(404);
    await using world = await open();
    const response = await follow(world, "summer");
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining("There is no such link.")]);
    expect(await world.events("LinkClicked")).toEqual([]);
  });

  test("finds a link that another instance has just appended", async () => {
    await using world = await open();
    await world.eventLog.append(STREAMS.outreach, [{ ...SHARED, data: { ...SHARED.data, code: "new" } }], {});
    expect((await follow(world, "new")).status).toBe(302);
  });

  test("records the click also when it answers first", async () => {
    await using world = await open({ redirects: "after" });
    expect((await follow(world, "spring")).status).toBe(302);
    await world.projector.until(2);
    expect((await world.events("LinkClicked")).length).toBe(1);
  });

  test.each([
    ["a HEAD request", {}, "HEAD", { bot: true, probe: "head", channels: [] }],
    ["a prefetch", { "sec-purpose": "prefetch;prerender" }, "GET", { bot: true, probe: "prefetch", channels: [] }],
    ["an older prefetch", { purpose: "prefetch" }, "GET", { bot: true, probe: "prefetch", channels: [] }],
    ["a bot", { "user-agent": "Twitterbot/1.0" }, "GET", { bot: true }],
  ] as const)("records %s as no visitor", async (_name, headers, method, expected) => {
    await using world = await open();
    expect((await follow(world, "spring", headers, method)).status).toBe(302);
    const [click] = await world.events("LinkClicked");
    expect(click?.data).toMatchObject(expected);
    expect(click?.data).not.toHaveProperty("visitor");
  });

  test.each(["sec-gpc", "dnt"])("records an anonymous click of a visitor who sends %s", async (header) => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    await follow(world, OWN, { [header]: "1" });
    const [click] = await world.events("LinkClicked");
    expect(click?.data).toMatchObject({ anonymous: true, bot: false });
    for (const member of ["ip", "user_agent", "visitor"]) expect(click?.data).not.toHaveProperty(member);
    expect(await world.events("PersonalLinkClicked")).toEqual([]);
  });
});

describe("a redirect that adds parameters", () => {
  const env = { CLICK_PARAM: "rl_click", PASS_QUERY: "utm_*" };
  const landed = async (world: AppHarness, query: string, headers?: Record<string, string>): Promise<URL> =>
    new URL((await follow(world, `spring${query}`, headers)).headers.get("location") ?? "");

  test.each(["before", "after"] as const)("gives the click's id, recorded %s the answer", async (redirects) => {
    await using world = await open({ redirects, env });
    const { href } = await landed(world, "?utm_source=poster&utm_source=b&x=1&rl_click=forged");
    await world.projector.until(2);
    const [click] = await world.events("LinkClicked");
    expect(href).toBe(`${TARGET}&utm_source=poster&utm_source=b&rl_click=${click?.id}`);
    expect(click?.data.original_url).toBe(TARGET);
  });

  test("leads only to the target in the log, with 1,000 hostile queries", async () => {
    await using world = await open({ redirects: "before", env });
    const hostile = [
      "&",
      "=",
      "#",
      "?",
      "/",
      "\\",
      "@",
      ":",
      "%0d%0aLocation: x",
      "%00",
      "%",
      "%ff",
      "//evil.example",
      "utm_a",
      "utm_a=",
      "ä",
    ];
    const random = createRandom(48);
    for (let at = 0; at < 1_000; at++) {
      const parts = Array.from({ length: 1 + (at % 9) }, () => hostile[Math.floor(random() * hostile.length)]);
      const url = await landed(world, `?${parts.join("")}`);
      expect([url.origin, url.pathname, url.hash]).toEqual(["https://shop.example", "/offer", ""]);
      const names = [...url.searchParams.keys()];
      expect([names[0], names.at(-1)]).toEqual(["a", "rl_click"]);
      expect(names.slice(1, -1).every((name) => name.startsWith("utm_"))).toBe(true);
    }
  });

  test("records Meta's ids from query and cookies, unless the visitor asks not to be tracked", async () => {
    await using world = await open();
    const fbp = "fb.1.1795168800750.1098115397";
    const cookie = `other=1; _fbp=${fbp}; _fbc=broken`;
    await landed(world, "?fbclid=IwAR0_-aB", { cookie });
    await landed(world, "?fbclid=IwAR0_-aB", { cookie, "sec-gpc": "1" });
    const [first, second] = await world.events("LinkClicked");
    expect(first?.data).toMatchObject({ fbp, fbclid: "IwAR0_-aB" });
    expect(first?.data).not.toHaveProperty("fbc");
    for (const member of ["fbp", "fbclid"]) expect(second?.data).not.toHaveProperty(member);
  });
});

/** Returns the stored events, encrypted as they are on disk, that contain this text. */
async function storedWith(world: AppHarness, text: string): Promise<readonly string[]> {
  const stored = await Array.fromAsync(world.store.readStored({}), (event) => JSON.stringify(event));
  return stored.filter((event) => event.includes(text));
}

describe("a click on a personal link", () => {
  const clickBoth = async (world: AppHarness): Promise<void> => {
    expect((await follow(world, OWN)).headers.get("location")).toBe(TARGET);
    const body = { event: "click", domain: "go.example", short_code: OWN, original_url: TARGET, ip: "192.0.2.1" };
    expect((await post(world.app, "/api/tracking/event", body)).status).toBe(202);
  };

  test("counts for the shared link, and for the recipient who granted tracking", async () => {
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

  test("is anonymous once its key is deleted, despite granted tracking", async () => {
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
  ])("is recognized on %j with %j, and its code is not stored in the clear", async (domain, short_code) => {
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

  test("is recorded without its code on the service's hosts if the recipient was forgotten", async () => {
    await using world = await open();
    const post13 = (domain: string) =>
      post(world.app, "/api/tracking/event", { event: "click", domain, short_code: OWN, original_url: TARGET });
    const ours = ["go.example", "GO.example", "www.go.example", "go.example:8443", "go.example.", "reach.go.example"];
    for (const domain of ours) expect((await post13(domain)).status).toBe(202);
    const clicks = await world.events("LinkClicked");
    expect(clicks.map(({ data }) => data.short_code)).toEqual([...Array(5).fill("forgotten"), OWN]);
  });

  test("is recognized without a scan of all links", async () => {
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

  test("does not exist for a similar code", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    const last = OWN.slice(0, -1);
    for (const code of [`${last}D`, last, `${OWN}1`, OWN.toLowerCase(), `a${OWN.slice(1)}`])
      expect((await follow(world, code)).status).toBe(404);
    expect([...(await world.events("LinkClicked")), ...(await world.events("PersonalLinkClicked"))]).toEqual([]);
  });

  test("does not count for the recipient on another domain", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    const click = { event: "click", domain: "other.example", short_code: OWN, original_url: TARGET };
    expect((await post(world.app, "/api/tracking/event", click)).status).toBe(202);
    expect(await world.events("PersonalLinkClicked")).toEqual([]);
    expect(await storedWith(world, OWN)).toEqual([]);
  });

  test("leaves its code in the clear neither in the log nor in the logger's lines", async () => {
    await using world = await open();
    await world.append(STREAMS.outreach, addedOf(ANN, { tracking: "granted" }), INTENT);
    await clickBoth(world);
    expect(await storedWith(world, OWN)).toEqual([]);
    expect(world.logged.filter((line) => line.includes(OWN))).toEqual([]);
  });
});

describe("the visitor number of a click", () => {
  const places = async (world: AppHarness) => (await world.events("LinkClicked")).map(({ data }) => data.visitor);

  test("is the same for one visitor and link within a day, and changes the next day", async () => {
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

  test("is recorded only for known links", async () => {
    await using world = await open();
    const click = { event: "click", original_url: TARGET, ip: "192.0.2.1", domain: "go.example" };
    for (const short_code of ["unknown", "spring"])
      await post(world.app, "/api/tracking/event", { ...click, short_code });
    expect(await places(world)).toEqual([undefined, expect.any(Number)]);
  });
});
