// These tests call the code directly.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../../sandbox/sandbox.ts";
import { signalRevoked } from "../../../sandbox/x/activity-subscriptions-and-stream.ts";
import { deliver } from "../../../sandbox/x/messages.ts";
import type { Signal } from "../../../src/networks/network.ts";
import { createLineFetch, createSafeFetch } from "../../../src/networks/safe-fetch.ts";
import { createActivityStream } from "../../../src/networks/x/activity-stream.ts";
import { secret } from "../../../src/platform/secret.ts";
import { authorized, callX, personId } from "../../sandbox/call-simulated-x.ts";

let sandbox: Sandbox;
beforeEach(async () => {
  sandbox = await startSandbox({ x: { keepAliveMs: 30 } });
});
afterEach(() => sandbox[Symbol.asyncDispose]());

function openClient(bearer = sandbox.x.appBearer) {
  const options = { allowedOrigins: [sandbox.url] };
  const [safeFetch, lineFetch] = [createSafeFetch(options), createLineFetch(options)];
  return createActivityStream({
    apiUrl: sandbox.urls.xApi,
    safeFetch,
    lineFetch,
    clock: Date.now,
    bearer: secret(bearer),
  });
}

/** Returns the fault of a call that is refused. */
const refused = (asked: Promise<unknown>): Promise<unknown> => asked.catch((fault: unknown) => fault);

const own = (): string => personId(sandbox, "acme_team");
const types = (): string[] => [...sandbox.x.activity.subscriptions.values()].map(({ event_type }) => event_type);
const ALL = ["dm.received", "dm.read", "chat.received", "oauth.revoke"];

test.each(["spec", "list", "bare"] as const)(
  "the client subscribes to the signals that are missing, as X answers (%s)",
  async (createAnswer) => {
    sandbox.x.limits.createAnswer = createAnswer;
    const { access_token } = await authorized(sandbox);
    await callX(sandbox, "/activity/subscriptions", access_token, {
      event_type: "dm.read",
      filter: { user_id: own() },
    });
    const client = openClient();
    expect(await client.subscribe(access_token, own())).toEqual([]);
    expect(await client.subscribe(access_token, own())).toEqual([]);
    expect(types().toSorted()).toEqual(ALL.toSorted());
  },
);

test("the client accepts that X offers no oauth.revoke, and says which other types X refuses", async () => {
  sandbox.x.limits.offersRevoke = false;
  sandbox.x.limits.subscriptions = 2;
  const { access_token } = await authorized(sandbox);
  const details = await openClient().subscribe(access_token, own());
  expect(details).toEqual([expect.stringContaining("chat.received: X answered 403")]);
  expect(types()).toEqual(ALL.slice(0, 2));
});

test("a refused token of the app is no reason to refresh the user's", async () => {
  const { access_token } = await authorized(sandbox);
  const client = openClient("wrong");
  const refusal = { kind: "rejected", message: "X does not accept X_APP_BEARER_TOKEN" };
  expect(await refused(client.check())).toMatchObject(refusal);
  expect(await refused(client.subscribe(access_token, own()))).toMatchObject(refusal);
  expect(await refused(client.open(own(), new AbortController().signal))).toMatchObject(refusal);
  // The stream needs the app's token, so a user's access token cannot open it either.
  const asUser = openClient(access_token).open(own(), new AbortController().signal);
  expect(await refused(asUser)).toMatchObject({ kind: "stopped", stop: "missing_scope" });
});

test.each([
  ["credits_depleted", { kind: "stopped", stop: "credits_depleted" }],
  ["client_forbidden", { kind: "stopped", stop: "app_not_enrolled" }],
  ["over_capacity", { kind: "unavailable" }],
  ["429", { kind: "rate_limited" }],
  ["reset_before", { kind: "reset" }],
] as const)("the client says why the stream does not open: %s", async (kind, refusal) => {
  sandbox.faults.add({ network: "x", kind });
  expect(await refused(openClient().open(own(), new AbortController().signal))).toMatchObject(refusal);
});

test("X opens two streams, whose response head comes with the first keep-alive, and no third", async () => {
  const { signal } = new AbortController();
  const open = [await openClient().open(own(), signal), await openClient().open(own(), signal)];
  expect(await refused(openClient().open(own(), signal))).toMatchObject({ kind: "rate_limited" });
  // The runtime closes the connection of a stream that no variable refers to, so both are kept until here.
  expect(open).toHaveLength(2);
});

test("the client reads signals with any id, and ends when the stream ends", async () => {
  const { access_token } = await authorized(sandbox);
  const client = openClient();
  await client.subscribe(access_token, own());
  const signals = await client.open(own(), new AbortController().signal);
  const ids = ["one & two", "b", "c", "d", "e"].map(
    (text) => deliver(sandbox.x, "1700000000000014000", own(), text).id,
  );
  signalRevoked(sandbox.x, own());
  sandbox.x.activity.subscriptions.clear();
  await Bun.sleep(0);
  for (const connection of sandbox.x.activity.connections) {
    // Writes lines that the client must ignore: about another user, of another type, and in unknown forms.
    connection.write(
      `${JSON.stringify({ data: { event_type: "dm.received", filter: { user_id: "1" }, payload: {} } })}\r\n`,
    );
    connection.write(
      `${JSON.stringify({ data: { event_type: "like.create", filter: {}, payload: {} } })}\r\n{"dat\r\n`,
    );
    connection.write(`${JSON.stringify({ data: { event_type: "dm.received", payload: { text: "?" } } })}\r\n`);
    connection.end("end");
  }
  const seen: Signal[] = await Array.fromAsync(signals);
  const messages = seen.flatMap((one) => (one.kind === "message" ? [one.message] : []));
  expect(messages.map(({ id }) => id)).toEqual(ids);
  expect(messages[0]).toMatchObject({ text: "one & two", senderUsername: "mina_designs" });
  expect(messages[0]).not.toHaveProperty("inGroup");
  expect(seen.slice(ids.length)).toEqual([{ kind: "revoked", userId: own() }, { kind: "unclear" }]);
});

test("a line without an end ends the stream before a line break arrives, and so does silence", async () => {
  const endless = new ReadableStream({ start: (writer) => writer.enqueue("x".repeat(2_000)) });
  using server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(endless) });
  const headers = { authorization: `Bearer ${sandbox.x.appBearer}` };
  const open = (url: string, silenceMs: number) =>
    createLineFetch({ allowedOrigins: [new URL(url).origin] })(url, {
      headers,
      answerMs: 5_000,
      silenceMs,
      lineCharactersMax: 1_000,
      signal: new AbortController().signal,
    });
  const { lines } = await open(server.url.href, 5_000);
  expect(await refused(Array.fromAsync(lines!))).toMatchObject({ kind: "invalid" });
  const silent = await open(`${sandbox.urls.xApi}/2/activity/stream`, 10);
  expect(await refused(Array.fromAsync(silent.lines!))).toMatchObject({ kind: "timeout" });
});
