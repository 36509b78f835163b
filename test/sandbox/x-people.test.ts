import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { authorized, callX, personId } from "./client.ts";

interface People {
  readonly data?: Record<string, unknown>[];
  readonly includes?: { users: Record<string, unknown>[] };
  readonly errors?: Record<string, unknown>[];
  readonly meta: { readonly result_count: number; readonly next_token?: string };
}

describe("the sandbox's X finds people as X does", () => {
  let sandbox: Sandbox;
  let access: string;
  beforeEach(async () => {
    sandbox = await startSandbox();
    access = (await authorized(sandbox)).access_token;
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const get = async (path: string): Promise<People> => (await (await callX(sandbox, path, access)).json()) as People;
  const status = async (path: string): Promise<number> => (await callX(sandbox, path, access)).status;
  /** Follows the pages of a list to its end. */
  const all = async (path: string, parameter: string): Promise<People[]> => {
    const pages = [await get(path)];
    for (let next = pages[0]?.meta.next_token; next !== undefined; next = pages.at(-1)?.meta.next_token) {
      pages.push(await get(`${path}&${parameter}=${next}`));
    }
    return pages;
  };

  test("fields are there only when asked for; unknown people are errors; unknown fields are refused", async () => {
    const plain = await get("/users/by?usernames=Ada_Builds,nobody_here");
    expect(plain).toMatchObject({ data: [{ username: "ada_builds" }], errors: [{ value: "nobody_here" }] });
    expect(Object.keys(plain.data?.[0] ?? {})).toEqual(["id", "name", "username"]);
    const closed = personId(sandbox, "closed_carl");
    expect(await get(`/users?ids=${closed}&user.fields=receives_your_dm,protected`)).toMatchObject({
      data: [{ receives_your_dm: false, protected: false }],
    });
    const nobody = await get("/users?ids=5");
    expect([nobody.data, nobody.errors?.length]).toEqual([undefined, 1]);
  });

  test("what X cannot take is refused as a whole", async () => {
    expect(await status("/users?ids=1&user.fields=shoe_size")).toBe(400);
    expect(await status(`/users/by?usernames=${"a,".repeat(100)}a`)).toBe(400);
    expect(await status("/users/by?usernames=ada_builds,not-a-handle")).toBe(400);
    expect(await status("/users?ids=x")).toBe(400);
    expect(await status("/users/x/followers")).toBe(400);
    expect(await status(`/users/${personId(sandbox, "acme_team")}/followers?max_results=1001`)).toBe(400);
    expect(await status("/lists/1/members?pagination_token=nonsense")).toBe(400);
    expect(await status("/no/such/path")).toBe(404);
  });

  test("who is gone is not found; who hides it has no receives_your_dm", async () => {
    const { people } = sandbox.x;
    people.set("71", { id: "71", username: "gone_gil", name: "Gil", exists: false });
    people.set("72", { id: "72", username: "quiet_quin", name: "Quin" });
    const { data, errors } = await get("/users/by?usernames=gone_gil,quiet_quin&user.fields=receives_your_dm");
    expect(data).toEqual([{ id: "72", name: "Quin", username: "quiet_quin" }]);
    expect(errors).toHaveLength(1);
  });

  test("followers come in pages, and only our own are known", async () => {
    const pages = await all(`/users/${personId(sandbox, "acme_team")}/followers?max_results=3`, "pagination_token");
    expect(pages.map(({ data }) => data?.map(({ username }) => username))).toEqual([
      ["ada_builds", "grace_codes", "mina_designs"],
      ["omar_writes"],
    ]);
    expect(await get(`/users/${personId(sandbox, "ada_builds")}/followers`)).toEqual({ meta: { result_count: 0 } });
  });

  test("a list's members come in pages of 100 at the most", async () => {
    expect((await get("/lists/1/members")).meta.result_count).toBe(12);
    expect(await status("/lists/1/members?max_results=101")).toBe(400);
  });

  test("a search gives posts, and their authors when expanded", async () => {
    const found = await get("/tweets/search/recent?query=link%20tracking%20-is:retweet&expansions=author_id");
    expect(found.data).toHaveLength(3);
    expect(found.data?.map((post) => post["author_id"])).toEqual(found.includes?.users.map(({ id }) => id));
    expect((await get("/tweets/search/recent?query=link%20tracking")).data?.[0]).not.toHaveProperty("author_id");
    expect(await get("/tweets/search/recent?query=zebra")).toEqual({ meta: { result_count: 0 } });
    for (let number = 0; number < 12; number++) {
      const id = String(800 + number);
      sandbox.x.people.set(id, { id, username: `zoo_${number}`, name: "Zoo", post: "a zebra" });
    }
    const pages = await all("/tweets/search/recent?query=zebra", "next_token");
    expect(pages.map(({ meta }) => meta.result_count)).toEqual([10, 2]);
    for (const wrong of ["query=", `query=${"x".repeat(513)}`, "query=lang:en", "query=zebra&max_results=9"]) {
      expect(await status(`/tweets/search/recent?${wrong}`)).toBe(400);
    }
  });

  test("each list wants its scope", async () => {
    const bare = (await authorized(sandbox, "users.read tweet.read")).access_token;
    for (const path of [`/users/${personId(sandbox, "acme_team")}/followers`, "/lists/1/members", "/dm_events"]) {
      const answer = await callX(sandbox, path, bare);
      expect([answer.status, await answer.json()]).toMatchObject([403, { title: "Forbidden", detail: "Forbidden" }]);
    }
    expect((await callX(sandbox, "/users/me", bare)).status).toBe(200);
    expect((await callX(sandbox, "/users/me", "nonsense")).status).toBe(401);
  });
});
