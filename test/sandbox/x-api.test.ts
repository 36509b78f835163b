import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { authorized, callX, personId } from "./client.ts";

describe("the sandbox's X answers as X does", () => {
  let sandbox: Sandbox;
  let access: string;
  beforeEach(async () => {
    sandbox = await startSandbox({ port: 0 });
    access = (await authorized(sandbox)).access_token;
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const send = (username: string, body: unknown): Promise<Response> =>
    callX(sandbox, `/dm_conversations/with/${personId(sandbox, username)}/messages`, access, body);

  test("fields are there only when asked for; unknown people are errors; unknown fields are refused", async () => {
    const plain = await (await callX(sandbox, "/users/by?usernames=ada_builds,nobody_here", access)).json();
    expect(plain).toMatchObject({
      data: [{ username: "ada_builds" }],
      errors: [{ value: "nobody_here", title: "Not Found Error" }],
    });
    expect((plain as { data: object[] }).data[0]).not.toHaveProperty("receives_your_dm");
    const asked = await (
      await callX(
        sandbox,
        `/users?ids=${personId(sandbox, "closed_carl")}&user.fields=receives_your_dm,protected`,
        access,
      )
    ).json();
    expect(asked).toMatchObject({ data: [{ receives_your_dm: false, protected: false }] });
    expect((await callX(sandbox, "/users?ids=1&user.fields=shoe_size", access)).status).toBe(400);
    expect((await callX(sandbox, `/users/by?usernames=${"a,".repeat(100)}a`, access)).status).toBe(400);
  });

  test("followers come in pages", async () => {
    const me = personId(sandbox, "acme_team");
    const seen: string[] = [];
    let next = "";
    do {
      const page = (await (await callX(sandbox, `/users/${me}/followers?max_results=2${next}`, access)).json()) as {
        data: { username: string }[];
        meta: { next_token?: string };
      };
      seen.push(...page.data.map(({ username }) => username));
      next = page.meta.next_token === undefined ? "" : `&pagination_token=${page.meta.next_token}`;
    } while (next !== "");
    expect(seen).toEqual(["ada_builds", "grace_codes", "mina_designs", "omar_writes"]);
  });

  test("a message: 201 with ids, links wrapped in look-ups, not de-duplicated", async () => {
    const text = "Hi: https://go.example/welcome?a=1";
    const sent = await send("ada_builds", { text });
    expect([sent.status, await sent.json()]).toEqual([
      201,
      { data: { dm_conversation_id: expect.stringMatching(/^\d+-\d+$/), dm_event_id: expect.any(String) } },
    ]);
    await send("ada_builds", { text });
    const fields = "dm_event.fields=id,event_type,text,created_at,dm_conversation_id,entities&expansions=sender_id";
    const path = `/dm_conversations/with/${personId(sandbox, "ada_builds")}/dm_events?${fields}`;
    const { data } = (await (await callX(sandbox, path, access)).json()) as { data: Record<string, unknown>[] };
    expect(data).toHaveLength(2);
    expect(data[0]?.["text"]).toMatch(/^Hi: https:\/\/t\.co\/\w{1,10}$/);
    expect(data[0]).toMatchObject({
      sender_id: personId(sandbox, "acme_team"),
      entities: { urls: [{ expanded_url: "https://go.example/welcome?a=1" }] },
    });
    expect((await callX(sandbox, `${path}&dm_event.fields=sender_id`.replace(fields, "x=1"), access)).status).toBe(400);
  });

  test("what is refused: closed people, unknown members of the body, empty and long texts, missing scopes", async () => {
    for (const username of ["closed_carl", "late_lena"]) {
      const closed = await send(username, { text: "x" });
      expect([closed.status, ((await closed.json()) as { detail: string }).detail]).toEqual([
        403,
        "You do not have permission to DM one or more participants.",
      ]);
    }
    for (const body of [{ text: "x", extra: 1 }, { text: " " }, { text: "x".repeat(10_001) }, {}]) {
      expect((await send("ada_builds", body)).status).toBe(400);
    }
    const readOnly = (await authorized(sandbox, "users.read tweet.read dm.read")).access_token;
    const forbidden = await callX(
      sandbox,
      `/dm_conversations/with/${personId(sandbox, "ada_builds")}/messages`,
      readOnly,
      { text: "x" },
    );
    expect([forbidden.status, ((await forbidden.json()) as { detail: string }).detail]).toEqual([403, "Forbidden"]);
    expect(sandbox.x.accepted.size).toBe(0);
  });

  test("15 messages in 15 minutes, refusals count too; then 429 until the window has passed", async () => {
    await send("closed_carl", { text: "x" });
    for (let sent = 0; sent < 14; sent++) expect((await send("ada_builds", { text: String(sent) })).status).toBe(201);
    const limited = await send("ada_builds", { text: "one more" });
    expect(limited.status).toBe(429);
    expect(limited.headers.get("x-rate-limit-limit")).toBe("15");
    expect(limited.headers.get("x-rate-limit-remaining")).toBe("0");
    expect(Number(limited.headers.get("x-rate-limit-reset")) * 1000).toBeGreaterThan(sandbox.clock.now());
    expect(limited.headers.get("x-user-limit-24hour-remaining")).toBe("1424");
    sandbox.clock.advance(15 * 60_000);
    expect((await send("ada_builds", { text: "later" })).status).toBe(201);
  });

  test("an accepted message shows only after the late commit", async () => {
    sandbox.x.limits.lateCommitMs = 5_000;
    await send("ada_builds", { text: "slow" });
    const path = `/dm_conversations/with/${personId(sandbox, "ada_builds")}/dm_events`;
    const count = async () => ((await (await callX(sandbox, path, access)).json()) as { data: unknown[] }).data.length;
    expect(await count()).toBe(0);
    sandbox.clock.advance(5_000);
    expect(await count()).toBe(1);
  });
});
