// Makes the calls that it reads as lines of JSON, and prints how each ended. Runs on any runtime.
import { createInterface } from "node:readline";
import { inspect } from "node:util";
import { createSafeFetch, NetworkFault } from "../../../src/networks/safe-fetch.ts";
import { unpooledFetch } from "../../../src/networks/unpooled-fetch.ts";
import type { Asked, Ended } from "../bun-and-deno-clients.ts";

const underWay = new Map<number, AbortController>();

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line) as Asked;
  if ("abort" in asked) underWay.get(asked.abort)?.abort();
  else void call(asked).then((ended) => console.log(JSON.stringify(ended)));
}

async function call({ id, url, allowedOrigins, ca, headers, ...request }: Exclude<Asked, { abort: number }>) {
  const controller = new AbortController();
  underWay.set(id, controller);
  const trusting = ca === undefined ? {} : { fetch: (to: string, init: RequestInit) => unpooledFetch(to, init, ca) };
  const safeFetch = createSafeFetch({ allowedOrigins, ...trusting });
  return safeFetch(url, { ...request, ...(headers && { headers }), signal: controller.signal }).then(
    ({ headers: given, ...answer }): Ended => ({ id, answer: { ...answer, headers: [...given] } }),
    (fault: NetworkFault): Ended => {
      const { kind, certainlyNotSent } = fault;
      return { id, fault: { kind, certainlyNotSent, shown: inspect(fault, { depth: 10, showHidden: true }) } };
    },
  );
}
