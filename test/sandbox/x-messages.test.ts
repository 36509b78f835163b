// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { authorized, callX, personId, postJson } from "./call-simulated-x.ts";

interface Events {
  readonly data?: Record<string, unknown>[];
  readonly includes?: { users: { id: string }[] };
  readonly meta: { readonly result_count: number; readonly next_token?: string; readonly previous_token?: string };
}

describe("direct messages on the sandbox's X", () => {
  let sandbox: Sandbox;
  let access: string;
  beforeEach(async () => {
    sandbox = await startSandbox({ x: { dmLimit: 1_000, dmReadLimit: 1_000 } });
    access = (await authorized(sandbox)).access_token;
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const send = (username: string, body: unknown): Promise<Response> =>
    callX(sandbox, `/dm_conversations/with/${personId(sandbox, username)}/messages`, access, body);
  const events = async (query = "", username = "ada_builds"): Promise<Events> => {
    const path = `/dm_conversations/with/${personId(sandbox, username)}/dm_events`;
    return (await (await callX(sandbox, `${path}?${query}`, access)).json()) as Events;
  };
  const ALL = "dm_event.fields=id,event_type,text,created_at,dm_conversation_id,entities&expansions=sender_id";

  test("answer a send with 201 and ids, shorten links, and are not deduplicated", async () => {
    const text = "Hi: https://go.example/welcome?a=1.";
    const sent = await send("ada_builds", { text });
    expect([sent.status, await sent.json()]).toEqual([
      201,
      { data: { dm_conversation_id: expect.stringMatching(/^\d+-\d+$/), dm_event_id: expect.any(String) } },
    ]);
    await send("ada_builds", { text });
    const { data = [], includes } = await events(ALL);
    expect(data).toHaveLength(2);
    expect(data[0]?.["text"]).toMatch(/^Hi: https:\/\/t\.co\/\w{10}\.$/);
    expect(data[0]?.["text"]).not.toBe(data[1]?.["text"]);
    const sender = personId(sandbox, "acme_team");
    expect(data[0]).toMatchObject({
      sender_id: sender,
      entities: { urls: [{ expanded_url: "https://go.example/welcome?a=1" }] },
    });
    expect(includes?.users.map(({ id }) => id)).toEqual([sender]);
  });

  test("shorten a bare domain too, and escape three characters as in HTML", async () => {
    await send("ada_builds", { text: "R&D <3 at example.com/a and b@example.com" });
    const event = (await events(ALL)).data?.[0] ?? {};
    expect(event["text"]).toMatch(/^R&amp;D &lt;3 at https:\/\/t\.co\/\w{10} and b@example\.com$/);
    const [url] = (event["entities"] as { urls: { start: number; end: number; url: string }[] }).urls;
    expect(String(event["text"]).slice(url?.start, url?.end)).toBe(url?.url ?? "");
    expect(url).toMatchObject({ expanded_url: "http://example.com/a", display_url: "example.com/a" });
  });

  test("are listed newest first, in pages, with default fields, per conversation", async () => {
    for (const text of ["1", "2", "3"]) await send("ada_builds", { text });
    await send("grace_codes", { text: "for Grace" });
    const first = await events("max_results=2");
    expect(first.data?.map((event) => event["text"])).toEqual(["3", "2"]);
    expect(Object.keys(first.data?.[0] ?? {})).toEqual(["id", "event_type", "text"]);
    const second = await events(`max_results=2&pagination_token=${first.meta.next_token}`);
    expect(second.data?.map((event) => event["text"])).toEqual(["1"]);
    const everything = (await (await callX(sandbox, "/dm_events", access)).json()) as Events;
    expect(everything.meta.result_count).toBe(4);
    const newest = (await (await callX(sandbox, "/dm_events?max_results=3", access)).json()) as Events;
    expect(newest.data?.map((event) => event["text"])).toEqual(["for Grace", "3", "2"]);
    await postJson(`${sandbox.url}/_sandbox/inbound`, { from: "tomas_r", to: "acme_team", text: "meanwhile" });
    const path = `/dm_events?max_results=3&pagination_token=${newest.meta.next_token}`;
    const oldest = (await (await callX(sandbox, path, access)).json()) as Events;
    expect(oldest.data?.map((event) => event["text"])).toEqual(["1"]);
    expect(await events("", "yuki_dev")).toEqual({ meta: { result_count: 0 } });
    expect(await events("event_types=ParticipantsJoin")).toEqual({ meta: { result_count: 0 } });
  });

  test("have both page tokens on every page with messages, even the last", async () => {
    for (const text of ["1", "2", "3"]) await send("ada_builds", { text });
    const only = await events();
    expect(only.meta).toEqual({
      result_count: 3,
      next_token: expect.any(String),
      previous_token: expect.any(String),
    });
    const behind = await events(`pagination_token=${only.meta.next_token}`);
    expect(behind).toEqual({ meta: { result_count: 0, previous_token: expect.any(String) } });
    const first = await events("max_results=2");
    const second = await events(`max_results=2&pagination_token=${first.meta.next_token}`);
    const back = await events(`max_results=2&pagination_token=${second.meta.previous_token}`);
    expect(back.data).toEqual(first.data ?? []);
    expect(await events(`pagination_token=${first.meta.previous_token}`)).toMatchObject({ meta: { result_count: 0 } });
  });

  test("accept documented fields that the sandbox lacks and leave them out", async () => {
    await send("ada_builds", { text: "1" });
    const fields = "user.fields=confirmed_email,subscribes_to_you,subscription,protected";
    const { includes } = await events(`expansions=sender_id,referenced_posts&${fields}`);
    expect(includes?.users).toEqual([{ ...includes?.users[0], protected: false } as never]);
  });

  test("are refused as not permitted by one recipient and accepted by the next", async () => {
    const ada = sandbox.x.people.get(personId(sandbox, "ada_builds"))!;
    sandbox.x.people.set(ada.id, { ...ada, not_permitted: true });
    const refused = await send("ada_builds", { text: "x" });
    expect([refused.status, await refused.json()]).toMatchObject([403, { detail: "This operation is not permitted." }]);
    expect((await send("grace_codes", { text: "x" })).status).toBe(201);
  });

  test("have pages that lead to themselves under the fault repeated_cursor", async () => {
    sandbox.faults.add({ network: "x", kind: "repeated_cursor", path: "/dm_events" });
    const empty = await events("", "yuki_dev");
    const token = empty.meta.next_token ?? "";
    expect((await events(`pagination_token=${token}`, "yuki_dev")).meta.next_token).toBe(token);
    await send("ada_builds", { text: "1" });
    const first = await events("max_results=1");
    const again = await events(`max_results=1&pagination_token=${first.meta.next_token}`);
    expect([again.data, again.meta.next_token]).toEqual([first.data, first.meta.next_token]);
  });

  test.each([
    "dm_event.fields=sender_id",
    "expansions=author_id",
    "event_types=Like",
    "max_results=101",
    "max_results=0",
  ])("are not listed with the invalid query %s", async (query) => {
    expect(await events(query)).toMatchObject({ title: "Invalid Request" });
  });

  test("arrive from a recipient, and are hidden after 30 days", async () => {
    const from = personId(sandbox, "ada_builds");
    await postJson(`${sandbox.url}/_sandbox/inbound`, { from: "ada_builds", to: "acme_team", text: "stop" });
    expect((await events(ALL)).data).toMatchObject([{ sender_id: from, text: "stop" }]);
    sandbox.clock.advance(7_000_000);
    const month = 30 * 24 * 3_600_000;
    sandbox.clock.advance(month);
    access = (await authorized(sandbox)).access_token;
    expect((await events(ALL)).meta.result_count).toBe(0);
  });

  test("are refused to closed recipients or ourselves, and with an invalid body", async () => {
    for (const username of ["closed_carl", "late_lena", "private_pia", "acme_team"]) {
      const closed = await send(username, { text: "x" });
      expect([closed.status, ((await closed.json()) as { detail: string }).detail]).toEqual([
        403,
        "You do not have permission to DM one or more participants.",
      ]);
    }
    const bodies = [{ text: "x", extra: 1 }, { text: " " }, { text: "" }, { text: "x".repeat(10_001) }, {}, [], "x"];
    for (const body of bodies) expect((await send("ada_builds", body)).status).toBe(400);
    expect((await callX(sandbox, "/dm_conversations/with/1x/messages", access, { text: "x" })).status).toBe(400);
    expect((await send("ada_builds", { text: "x".repeat(10_000) })).status).toBe(201);
    expect([...sandbox.x.accepted]).toEqual([[personId(sandbox, "ada_builds"), 1]]);
  });

  test("require the scopes dm.write and dm.read to be sent", async () => {
    for (const scope of ["users.read tweet.read dm.read", "users.read tweet.read dm.write"]) {
      const { access_token } = await authorized(sandbox, scope);
      const path = `/dm_conversations/with/${personId(sandbox, "ada_builds")}/messages`;
      const answer = await callX(sandbox, path, access_token, { text: "x" });
      expect([answer.status, await answer.json()]).toMatchObject([403, { detail: "Forbidden" }]);
    }
  });

  test("are shown only after a late commit", async () => {
    sandbox.x.limits.lateCommitMs = 5_000;
    await send("ada_builds", { text: "slow" });
    expect((await events()).meta.result_count).toBe(0);
    sandbox.clock.advance(5_000);
    expect((await events()).meta.result_count).toBe(1);
  });
});
