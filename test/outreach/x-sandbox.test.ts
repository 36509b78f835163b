// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createSafeFetch } from "../../src/networks/safe-fetch.ts";
import { createX } from "../../src/networks/x/x-api.ts";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { openSource } from "../../src/outreach/sources/open-sources.ts";
import { authorized, personId, postJson } from "../sandbox/call-simulated-x.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import { openOutreach, RULES } from "../harness/in-process/simulated-outreach-processes.ts";

const disposed = disposedAfterEach();

describe("a run against the sandbox's X", () => {
  let sandbox: Sandbox;
  beforeEach(async () => {
    sandbox = await startSandbox({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  async function openWithX(...handles: readonly string[]) {
    const world = disposed(await openOutreach());
    const token = (await authorized(sandbox)).access_token;
    const safeFetch = createSafeFetch({ allowedOrigins: [sandbox.url] });
    Object.assign(world.network, createX({ apiUrl: sandbox.urls.xApi, safeFetch, clock: world.time.now }));
    const ids = handles.map((handle) => personId(sandbox, handle));
    if (ids.length > 0) await world.list(...ids);
    const own = { id: personId(sandbox, "acme_team"), username: "acme_team", name: "Acme Team" };
    await world.append([
      { type: "AccountUnlinked", data: { user_id: "1", revoked: true } },
      { type: "AccountAuthorized", data: { user: own, scopes: [], expires_at: "2027-01-01T00:00:00.000Z" } },
    ]);
    const credentials = {
      use: <T>(call: (token: string) => Promise<T>) => call(token),
      send: <T>(call: (token: string) => Promise<T>) => call(token),
    };
    return { world, own, start: (more: Parameters<typeof world.start>[0]) => world.start({ credentials, ...more }) };
  }

  const reached = (): string[] => [...sandbox.x.accepted.keys()].map((id) => sandbox.x.people.get(id)?.username ?? "");
  const asked = (): number => sandbox.tally.x.requests;

  test("reaches all others if one recipient is not permitted", async () => {
    const ada = sandbox.x.people.get(personId(sandbox, "ada_builds"))!;
    sandbox.x.people.set(ada.id, { ...ada, not_permitted: true });
    const { start } = await openWithX("ada_builds", "late_lena", "grace_codes", "linus_k");
    const { run } = await start({});
    expect(await run()).toMatchObject({ reason: "completed", sent: 2, failed: 2 });
    expect(reached()).toEqual(["grace_codes", "linus_k"]);
  });

  test.each(["/2/dm_events", "/2/users", "/followers"])("continues after a single 503 of %s", async (path) => {
    sandbox.faults.add({ network: "x", kind: "over_capacity", count: 1, path });
    const { start } = await openWithX("linus_k");
    const first = await start({});
    const sources = [...first.context.sources, openSource("followers")];
    const { run } = await start({ sources, rules: { ...RULES, requireConsent: false } });
    expect(await run()).toMatchObject({ reason: "completed", sent: 5 });
    expect(sandbox.faults.list()).toEqual([]);
  });

  test("ends as app_not_enrolled before any message", async () => {
    sandbox.faults.add({ network: "x", kind: "client_forbidden" });
    const { start } = await openWithX("linus_k");
    const { run, announced } = await start({});
    expect(await run()).toMatchObject({ reason: "app_not_enrolled", sent: 0 });
    expect(announced).toEqual(["outreach stopped: app_not_enrolled"]);
  });

  test("reads short pages with a cursor to their end", async () => {
    for (const from of ["ada_builds", "grace_codes", "tomas_r"]) {
      await postJson(`${sandbox.url}/_sandbox/inbound`, { from, to: "acme_team", text: "hello" });
    }
    const { world, start } = await openWithX();
    const { run } = await start({ sources: [openSource("inbound")] });
    expect(await run()).toMatchObject({ reason: "completed", sent: 3 });
    expect((await world.events("InboxRead")).at(-1)?.data).not.toHaveProperty("backlog");
  });

  test("stops reading inbox and followers at repeated cursors", async () => {
    sandbox.faults.add({ network: "x", kind: "repeated_cursor" });
    const { start } = await openWithX();
    const sources = [openSource("inbound"), openSource("followers")];
    const { run } = await start({ sources, rules: { ...RULES, requireConsent: false } });
    const before = asked();
    expect(await run()).toMatchObject({ reason: "completed", sent: 4 });
    // Four messages and a few pages take fewer than 15 requests.
    expect(asked() - before).toBeLessThan(15);
  });
});
