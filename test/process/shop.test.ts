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
