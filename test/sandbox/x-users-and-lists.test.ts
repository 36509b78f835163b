// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { LIST_ID } from "../../sandbox/x/people.ts";
import { authorized, callX, personId } from "./call-simulated-x.ts";

interface People {
  readonly data?: Record<string, unknown>[];
  readonly includes?: { users: Record<string, unknown>[] };
  readonly errors?: Record<string, unknown>[];
  readonly meta: { readonly result_count: number; readonly next_token?: string };
}

describe("the sandbox's users and lists of X", () => {
  let sandbox: Sandbox;
  let access: string;
  beforeEach(async () => {
    sandbox = await startSandbox();
    access = (await authorized(sandbox)).access_token;
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const get = async (path: string): Promise<People> => (await (await callX(sandbox, path, access)).json()) as People;
  const status = async (path: string): Promise<number> => (await callX(sandbox, path, access)).status;
  /** Reads all pages of a list. */
  const all = async (path: string, parameter: string): Promise<People[]> => {
    const pages = [await get(path)];
    for (let next = pages[0]?.meta.next_token; next !== undefined; next = pages.at(-1)?.meta.next_token) {
      pages.push(await get(`${path}&${parameter}=${next}`));
    }
    return pages;
  };

  test("show only requested fields, and an error for each unknown user", async () => {
    const plain = await get("/users/by?usernames=Ada_Builds,nobody_here");
    expect(plain).toMatchObject({ data: [{ username: "ada_builds" }], errors: [{ value: "nobody_here" }] });
    expect(Object.keys(plain.data?.[0] ?? {})).toEqual(["id", "name", "username"]);
    const closed = personId(sandbox, "closed_carl");
    expect(await get(`/users?ids=${closed}&user.fields=receives_your_dm,protected`)).toMatchObject({
      data: [{ receives_your_dm: false, protected: false }],
    });
    const unknown = await get("/users?ids=5");
    expect([unknown.data, unknown.errors?.length]).toEqual([undefined, 1]);
  });

  test("refuse an invalid request as a whole", async () => {
    expect(await status("/users?ids=1&user.fields=shoe_size")).toBe(400);
    expect(await status(`/users/by?usernames=${"a,".repeat(100)}a`)).toBe(400);
    expect(await status("/users/by?usernames=ada_builds,not-a-handle")).toBe(400);
    expect(await status("/users?ids=x")).toBe(400);
    expect(await status("/users/x/followers")).toBe(400);
    expect(await status(`/users/${personId(sandbox, "acme_team")}/followers?max_results=1001`)).toBe(400);
    expect(await status("/no/such/path")).toBe(404);
  });

  test("do not find a deleted user, and omit a hidden receives_your_dm", async () => {
    const { people } = sandbox.x;
    people.set("71", { id: "71", username: "gone_gil", name: "Gil", exists: false });
    people.set("72", { id: "72", username: "quiet_quin", name: "Quin" });
    const { data, errors } = await get("/users/by?usernames=gone_gil,quiet_quin&user.fields=receives_your_dm");
    expect(data).toEqual([{ id: "72", name: "Quin", username: "quiet_quin" }]);
    expect(errors).toHaveLength(1);
  });

  test("show our own followers in pages, and none of another account", async () => {
    const pages = await all(`/users/${personId(sandbox, "acme_team")}/followers?max_results=3`, "pagination_token");
    expect(pages.map(({ data }) => data?.map(({ username }) => username))).toEqual([
      ["omar_writes", "mina_designs", "grace_codes"],
      ["ada_builds"],
    ]);
    expect(pages.map(({ meta }) => Object.keys(meta))).toEqual([
      ["result_count", "next_token"],
      ["result_count", "previous_token"],
    ]);
    expect(await get(`/users/${personId(sandbox, "ada_builds")}/followers`)).toEqual({ meta: { result_count: 0 } });
  });

  test("show the newest follower first", async () => {
    const yuki = sandbox.x.people.get(personId(sandbox, "yuki_dev"))!;
    sandbox.x.people.delete(yuki.id);
    sandbox.x.people.set(yuki.id, { ...yuki, follows_you: true });
    const { data } = await get(`/users/${personId(sandbox, "acme_team")}/followers`);
    expect([data?.[0]?.["username"], data?.at(-1)?.["username"]]).toEqual(["yuki_dev", "ada_builds"]);
  });

  test("show the members of one list in pages of up to 100", async () => {
    expect((await get(`/lists/${LIST_ID}/members`)).meta.result_count).toBe(12);
    expect(await status(`/lists/${LIST_ID}/members?max_results=101`)).toBe(400);
    expect(await status("/lists/1x/members")).toBe(400);
    const unknown = await callX(sandbox, "/lists/1/members", access);
    expect([unknown.status, await unknown.json()]).toMatchObject([
      200,
      { errors: [{ title: "Not Found Error", resource_type: "list", resource_id: "1" }] },
    ]);
  });

  describe("a next-page token", () => {
    const members = `/lists/${LIST_ID}/members?max_results=3`;
    const names = ({ data }: People) => data?.map(({ username }) => username);

    test("continues after the last shown user, even if newer ones arrive first", async () => {
      const { meta } = await get(members);
      const before = names(await get(`${members}&pagination_token=${meta.next_token}`));
      sandbox.x.people.set("900", { id: "900", username: "newest_nils", name: "Nils" });
      expect(names(await get(members))?.[0]).toBe("newest_nils");
      expect(names(await get(`${members}&pagination_token=${meta.next_token}`))).toEqual(before);
    });

    test.each(["nonsense", "", "bnVsbA", "NQ", "e30", Buffer.from("at 3").toString("base64url")])(
      "is refused if it is %j",
      async (token) => {
        const answer = await callX(sandbox, `${members}&pagination_token=${token}`, access);
        expect([answer.status, await answer.json()]).toMatchObject([
          400,
          { title: "Invalid Request", errors: [{ parameters: { pagination_token: [token] } }] },
        ]);
      },
    );

    test("is refused by another list, when it is old, or when its user is deleted", async () => {
      const { meta } = await get(members);
      const path = `${members}&pagination_token=${meta.next_token}`;
      expect(await status(path)).toBe(200);
      const own = `/users/${personId(sandbox, "acme_team")}/followers`;
      expect(await status(`${own}?pagination_token=${meta.next_token}`)).toBe(400);
      const last = (await get(members)).data?.at(-1)?.["id"];
      const person = sandbox.x.people.get(String(last));
      sandbox.x.people.delete(String(last));
      expect(await status(path)).toBe(400);
      if (person !== undefined) sandbox.x.people.set(person.id, person);
      sandbox.clock.advance(7 * 24 * 3_600_000);
      access = (await authorized(sandbox)).access_token;
      expect(await status(path)).toBe(400);
    });
  });

  test("require the scope of each list", async () => {
    const bare = (await authorized(sandbox, "users.read tweet.read")).access_token;
    for (const path of [
      `/users/${personId(sandbox, "acme_team")}/followers`,
      `/lists/${LIST_ID}/members`,
      "/dm_events",
    ]) {
      const answer = await callX(sandbox, path, bare);
      expect([answer.status, await answer.json()]).toMatchObject([403, { title: "Forbidden", detail: "Forbidden" }]);
    }
    expect((await callX(sandbox, "/users/me", bare)).status).toBe(200);
    expect((await callX(sandbox, "/users/me", "nonsense")).status).toBe(401);
  });
});
