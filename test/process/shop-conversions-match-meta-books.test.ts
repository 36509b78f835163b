// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { createCaller } from "../../sandbox/demo-history.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { startShop } from "../../sandbox/shop.ts";
import { GROUPINGS } from "../../src/history/results-figures.ts";
import { X_PRICES } from "../../src/networks/x/x-api.ts";
import { authorize, BEARER, openInstallation, until, TOKEN } from "../harness/process.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

test("a person who clicks and buys is one PageView and one Purchase at Meta, and one conversion in Results", async () => {
  await using world = await openInstallation();
  const service = await world.host({ LINK_BASE: "https://go.example", REDIRECTS: "on", CLICK_PARAM: "rl_click" });
  const { meta } = world.sandbox;
  await using shop = await startShop({ meta: () => meta, call: createCaller(service.url, TOKEN) });
  const added = await service.post("/api/links/add", { code: "shop", target: `${shop.url}/` }, BEARER);
  expect(added.status).toBe(200);

  const headers = { "user-agent": BROWSER };
  const clicked = await service.get("/l/shop", { headers });
  const landing = clicked.headers.get("location")!;
  /** Opens a page of the shop as a browser does: with the images in it. */
  const open = async (url: string, method = "GET") => {
    const html = await (await fetch(url, { method })).text();
    for (const [, path] of html.matchAll(/<img [^>]*src="([^"]+)"/g))
      await fetch(new URL(path!.replaceAll("&amp;", "&"), url));
    return html;
  };
  const [, action = ""] = /action="([^"]+)"/.exec(await open(landing))!;
  expect(await open(new URL(action, landing).href, "POST")).toContain("Thank you");
  await until(
    async () => (await (await service.get("/api/health")).json()) as { channels: Record<string, { pending: number }> },
    ({ channels }) => Object.values(channels).every(({ pending }) => pending === 0),
  );

  expect(meta.accepted).toBe(4);
  const names = [...meta.events.kept].map(({ event_name, event_id }) => `${event_name} ${event_id}`).sort();
  expect(names).toEqual([`PageView ${new URL(landing).searchParams.get("rl_click")}`, "Purchase order-1"]);
  const sent = JSON.stringify(meta.requests.kept);
  expect(sent).toContain('"custom_data":{"value":24.9,"currency":"EUR"}');
  const answer = (await (await service.get("/social/results?by=link", { headers: BEARER })).json()) as {
    rows: readonly { link: string; conversions: object }[];
  };
  const values = [{ currency: "EUR", value: "24.90", per_message: null }];
  expect(answer.rows).toMatchObject([
    { link: expect.stringMatching(/shop$/), conversions: { total: 1, reversed: 0, values } },
  ]);
});

test("a click of a browser that has been on a page with the pixel carries the pixel's cookie to Meta", async () => {
  await using world = await openInstallation();
  const service = await world.host({ LINK_BASE: "https://go.example", REDIRECTS: "on", CLICK_PARAM: "rl_click" });
  const { meta } = world.sandbox;
  await using shop = await startShop({ meta: () => meta, call: createCaller(service.url, TOKEN) });
  await service.post("/api/links/add", { code: "shop", target: `${shop.url}/` }, BEARER);
  const [VISITORS, VISITS] = [10, 12];
  /** Cookies of the pixel that the browsers hold. */
  const cookies = new Set<string>();
  await Promise.all(
    Array.from({ length: VISITORS }, async () => {
      const headers: Record<string, string> = { "user-agent": BROWSER };
      for (let visit = 0; visit < VISITS; visit++) {
        const clicked = await service.get("/l/shop", { headers });
        const page = await fetch(clicked.headers.get("location")!, { headers });
        const [cookie] = page.headers.get("set-cookie")?.split(";") ?? [];
        if (cookie === undefined) continue;
        cookies.add(cookie);
        headers["cookie"] = cookie;
      }
    }),
  );
  await until(
    async () => (await (await service.get("/api/health")).json()) as { channels: Record<string, { pending: number }> },
    ({ channels }) => Object.values(channels).every(({ pending }) => pending === 0),
  );
  const sent = [...meta.events.kept].map(({ user_data }) => (user_data as { fbp?: string }).fbp);
  expect(sent).toHaveLength(VISITORS * VISITS);
  // The shop sets the cookie `_fbp` at a browser's first visit, which is after the first click was sent. So each
  // visitor's first click lacks the cookie, and all later clicks have it.
  const carried = sent.filter((fbp) => fbp !== undefined);
  expect(carried.length).toBe(VISITORS * (VISITS - 1));
  expect(carried.length / sent.length).toBeGreaterThanOrEqual(0.9);
  expect(new Set(carried.map((fbp) => `_fbp=${fbp}`))).toEqual(cookies);
});

interface Worth {
  readonly conversions: {
    readonly total: number;
    readonly values: readonly { readonly currency: string; readonly value: string }[];
  };
  readonly cost_usd: string | null;
}

/** Sums rows up in the smallest units. All currencies of the test have two decimal places, and costs have six. */
function sumUp(rows: readonly Worth[]) {
  const units = (text: string | null): number => Number((text ?? "0").replace(".", ""));
  const values: Record<string, number> = {};
  for (const { conversions } of rows)
    for (const { currency, value } of conversions.values) values[currency] = (values[currency] ?? 0) + units(value);
  return {
    conversions: rows.reduce((sum, row) => sum + row.conversions.total, 0),
    millionths: rows.reduce((sum, row) => sum + units(row.cost_usd), 0),
    values,
  };
}

/** Returns the price of what X charges for, in millionths of a dollar. */
function toMillionths({ sends, users, followers, posts, messages }: Sandbox["x"]["billed"]): number {
  const { send, user, follower, post, message } = X_PRICES;
  return sends * send + users * user + followers * follower + posts * post + messages * message;
}

test("the rows of every dimension sum to the books of Meta and of X", async () => {
  await using world = await openInstallation();
  const csv = "username,basis\nada_ships,opt_in\ngrace_codes,opt_in\nlinus_t,opt_in\n";
  await world.command("recipients", "import", world.file("people.csv", csv));
  const service = await world.host();
  await authorize(service, world.sandbox);
  const { meta, x } = world.sandbox;
  // X has already charged for the look-up of the account. The results count only what runs cost, so the run's cost is
  // measured from here.
  const before = toMillionths(x.billed);
  const run = await service.post("/social/run", {}, { prefer: "wait=60", ...BEARER });
  expect(await run.json()).toMatchObject({ sent: expect.any(Number) });
  // Clicks on the messages' own link would be suspected to be fetches by X, and would not be attributed. So these
  // clicks are on another link.
  const click = { event: "click", domain: "go.example", original_url: "https://shop.example/", user_agent: BROWSER };
  for (const [at, short_code] of ["spring", "spring", "other", "spring"].entries()) {
    const clicked = await service.post("/api/tracking/event", { ...click, short_code }, BEARER);
    const { id: click_id } = (await clicked.json()) as { id: string };
    const currency = at === 1 ? "USD" : "EUR";
    const sale = { name: "Purchase", click_id, value: `${at + 1}.10`, currency, external_id: `order-${at}` };
    expect((await service.post("/api/tracking/conversion", sale, BEARER)).status).toBe(202);
  }
  await until(
    async () => (await (await service.get("/api/health")).json()) as { channels: Record<string, { pending: number }> },
    ({ channels }) => Object.values(channels).every(({ pending }) => pending === 0),
  );
  const purchases = [...meta.events.kept].filter(({ event_name }) => event_name === "Purchase");
  const values: Record<string, number> = {};
  for (const { custom_data } of purchases) {
    const { currency, value } = custom_data as { currency: string; value: number };
    values[currency] = (values[currency] ?? 0) + Math.round(value * 100);
  }
  const books = { conversions: 4, millionths: toMillionths(x.billed) - before, values };
  expect(purchases).toHaveLength(4);
  expect(x.billed.sends).toBeGreaterThan(0);
  for (const by of GROUPINGS) {
    const answer = await service.get(`/social/results?by=${by}`, { headers: BEARER });
    const { rows, other, total } = (await answer.json()) as { rows: Worth[]; other: Worth; total: Worth };
    expect([by, sumUp([...rows, other])]).toEqual([by, books]);
    expect([by, sumUp([total])]).toEqual([by, books]);
  }
});
