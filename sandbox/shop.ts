import { randomInt } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Call } from "./demo-history.ts";
import { countPixel, type MetaState } from "./meta.ts";

/** Pages of a shop that a link leads to. */
interface Shop extends AsyncDisposable {
  readonly url: string;
}

interface ShopOptions {
  /** Meta, which gets the events of the pages' pixel. */
  readonly meta: () => MetaState;
  /** Calls the service that the shop reports purchases to. */
  readonly call: Call;
}

const CLICK_ID = /^[0-9a-f-]{36}$/;

/**
 * Starts a shop on loopback, as an operator would build it: a page and a thank-you page with Meta's pixel, and a server
 * that reports the purchase. Page and service give each event the same id, so Meta counts it once.
 */
export async function startShop({ meta, call }: ShopOptions): Promise<Shop> {
  let orders = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url: path = "/", method, headers } = request;
    const { pathname, searchParams } = new URL(path, "http://shop.example");
    // The pixel's script would set its cookie in the browser, for the shop's domain and all below it.
    if (headers.cookie?.includes("_fbp=") !== true)
      response.setHeader("set-cookie", `_fbp=fb.1.${Date.now()}.${randomInt(1e9, 1e10)}; Path=/; Max-Age=7776000`);
    // Path of the pixel on this server; Meta's own address for it is https://www.facebook.com/tr.
    if (pathname === "/tr") return respond(response, countPixel(meta(), searchParams));
    const click_id = CLICK_ID.exec(searchParams.get("rl_click") ?? "")?.[0] ?? "";
    if (method !== "POST") {
      const form = `<form method="post" action="/?rl_click=${click_id}"><button>Buy for 24.90 EUR</button></form>`;
      return respond(response, `<h1>A shop</h1>${form}${pixel("PageView", click_id)}`);
    }
    const external_id = `order-${++orders}`;
    const sale = { name: "Purchase", click_id, value: "24.90", currency: "EUR", external_id };
    await call("/api/tracking/conversion", JSON.stringify(sale), { "content-type": "application/json" });
    respond(response, `<h1>Thank you</h1>${pixel("Purchase", external_id)}`);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch(() => respond(response, "<h1>The purchase could not be reported</h1>"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Meta's pixel for a browser without scripts: an image whose address is the event. */
function pixel(event: string, id: string): string {
  return `<img alt="" width="1" height="1" src="/tr?ev=${event}&amp;eid=${id}">`;
}

function respond(response: ServerResponse, body: string): void {
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
  response.end(`<!doctype html><html lang="en"><title>A shop</title>${body}</html>`);
}
