// On the process harness.
import { expect, test } from "bun:test";
import { createCaller } from "../../sandbox/demo-history.ts";
import { startShop } from "../../sandbox/shop.ts";
import { BEARER, openInstallation, until, TOKEN } from "../harness/process.ts";

const BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

test("a person who clicks and buys is one PageView and one Purchase at Meta, and one conversion in Results", async () => {
  await using world = await openInstallation();
  const service = await world.serve({ LINK_BASE: "https://go.example", REDIRECTS: "on", CLICK_PARAM: "rl_click" });
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
  const service = await world.serve({ LINK_BASE: "https://go.example", REDIRECTS: "on", CLICK_PARAM: "rl_click" });
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
  // A browser gets the cookie at its first visit, whose click comes before it.
  const carried = sent.filter((fbp) => fbp !== undefined);
  expect(carried.length).toBe(VISITORS * (VISITS - 1));
  expect(carried.length / sent.length).toBeGreaterThanOrEqual(0.9);
  expect(new Set(carried.map((fbp) => `_fbp=${fbp}`))).toEqual(cookies);
});
