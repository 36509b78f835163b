// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createX, X_PRICES } from "../../src/networks/x/x-api.ts";
import { createMeter } from "../../src/outreach/network-cost-in-usd.ts";
import { LIST_ID } from "../../sandbox/x/people.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { safeFetchTo } from "../harness/in-process/local-test-servers.ts";
import { authorized, personId, postJson } from "./call-simulated-x.ts";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox({ x: { dmLimit: 100, dmReadLimit: 100 } });
});
afterEach(() => sandbox[Symbol.asyncDispose]());

async function metered() {
  const apiUrl = sandbox.urls.xApi;
  const x = createX({ apiUrl, safeFetch: safeFetchTo(apiUrl), clock: sandbox.clock.now });
  const token = (await authorized(sandbox)).access_token;
  return { meter: createMeter(x, X_PRICES), token, own: personId(sandbox, "acme_team") };
}

const billed = async (): Promise<unknown> => {
  const { x } = (await (await fetch(`${sandbox.url}/_sandbox/arrived`)).json()) as { x: { billed: unknown } };
  return x.billed;
};

test("the meter counts exactly what X bills", async () => {
  const { meter, token, own } = await metered();
  const { network } = meter;
  const [ada, carl] = ["ada_builds", "closed_carl"].map((name) => personId(sandbox, name)) as [string, string];
  await postJson(`${sandbox.url}/_sandbox/inbound`, { from: "grace_codes", to: "acme_team", text: "hi" });
  await network.me(token);
  await network.usersByUsername(token, ["ada_builds", "nobody_here"]);
  await network.usersById(token, [ada, carl, "5"]);
  const first = await network.followers(token, own, { limit: 3 });
  await network.followers(token, own, { limit: 3, ...(first.next === undefined ? {} : { cursor: first.next }) });
  await network.listMembers(token, LIST_ID, { limit: 5 });
  await network.searchAuthors(token, "link tracking", { limit: 10 });
  expect((await network.sendDm(token, ada, "Hi")).outcome).toBe("sent");
  expect((await network.sendDm(token, carl, "Hi")).outcome).toBe("recipient_closed");
  expect(await network.conversation(token, ada, 5)).toHaveLength(1);
  expect((await network.inbox(token, { limit: 100 })).messages).toHaveLength(2);

  const { usd, ...counts } = meter.usage();
  expect(await billed()).toEqual(counts);
  expect(counts).toEqual({ sends: 1, users: 1 + 1 + 2 + 5 + 3 + 1 + 2, followers: 4, posts: 3, messages: 3 });
  expect(usd).toBeCloseTo(0.015 + 0.15 + 0.04 + 0.015 + 0.03, 9);
});

test("refused requests are neither billed nor metered; a send in doubt is both", async () => {
  const { meter, token } = await metered();
  const ada = personId(sandbox, "ada_builds");
  sandbox.faults.add({ network: "x", kind: "reset_after_delivery", count: 1 });
  expect((await meter.network.sendDm(token, ada, "Hi")).outcome).toBe("in_doubt");
  sandbox.faults.add({ network: "x", kind: "429" });
  expect((await meter.network.sendDm(token, ada, "Hi")).outcome).toBe("rate_limited");
  await meter.network.inbox(token, { limit: 5 }).catch(() => undefined);
  const { usd: _usd, ...counts } = meter.usage();
  expect(counts).toEqual({ sends: 1, users: 0, followers: 0, posts: 0, messages: 0 });
  expect(await billed()).toEqual(counts);
});
