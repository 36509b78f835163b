// These tests call the code directly.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { startSandbox, type Sandbox } from "../../sandbox/sandbox.ts";
import { publish } from "../../sandbox/x/invented-posts.ts";
import { authorized, callX, personId } from "./call-simulated-x.ts";

interface Posts {
  readonly data?: Record<string, string>[];
  readonly includes?: { users: Record<string, unknown>[] };
  readonly meta: { readonly [name: string]: unknown; readonly result_count: number };
}

const DAY_MS = 24 * 3_600_000;

describe("the sandbox's post search of X", () => {
  let sandbox: Sandbox;
  let access: string;
  beforeEach(async () => {
    sandbox = await startSandbox();
    access = (await authorized(sandbox)).access_token;
  });
  afterEach(() => sandbox[Symbol.asyncDispose]());

  const search = (query: string): Promise<Response> => callX(sandbox, `/tweets/search/recent?${query}`, access);
  const found = async (query: string): Promise<Posts> => (await (await search(query)).json()) as Posts;
  const textsOf = ({ data = [] }: Posts) => data.map(({ text }) => text);
  const personNamed = (username: string) => sandbox.x.people.get(personId(sandbox, username))!;
  const post = (from: string, text: string): string => publish(sandbox.x, personNamed(from), text).id;

  test("returns posts, newest first, with their authors if expanded", async () => {
    const page = await found("query=link%20tracking%20-is:retweet&expansions=author_id");
    const authors = ["ada_builds", "linus_k", "late_lena"].map((name) => personId(sandbox, name));
    expect(page.data?.map(({ author_id }) => author_id)).toEqual(authors);
    expect(page.includes?.users.map(({ id }) => id)).toEqual(authors);
    const ids = page.data?.map(({ id }) => BigInt(id ?? 0)) ?? [];
    expect(ids).toEqual(ids.toSorted((one, other) => (one < other ? 1 : -1)));
    expect(page.meta).toEqual({ result_count: 3, newest_id: String(ids[0]), oldest_id: String(ids[2]) });
    expect((await found("query=link%20tracking")).data?.[0]).not.toHaveProperty("author_id");
    expect(await found("query=zebra")).toEqual({ meta: { result_count: 0 } });
  });

  test("includes an author of several posts once", async () => {
    for (const text of ["zebra one", "zebra two"]) post("yuki_dev", text);
    const page = await found("query=zebra&expansions=author_id");
    expect(textsOf(page)).toEqual(["zebra two", "zebra one"]);
    expect(page.includes?.users).toHaveLength(1);
  });

  test("returns results in pages", async () => {
    for (let number = 0; number < 12; number++) post("yuki_dev", `zebra ${number}`);
    const first = await found("query=zebra");
    const second = await found(`query=zebra&next_token=${String(first.meta["next_token"])}`);
    expect([first.meta.result_count, second.meta.result_count]).toEqual([10, 2]);
    expect(textsOf(second)).toEqual(["zebra 1", "zebra 0"]);
    expect((await search(`query=horse&next_token=${String(first.meta["next_token"])}`)).status).toBe(400);
  });

  test("leaves out the post since_id and all before it", async () => {
    const newest = (await found("query=link%20tracking")).meta["newest_id"];
    const since = `query=link%20tracking&since_id=${String(newest)}`;
    expect(await found(since)).toEqual({ meta: { result_count: 0 } });
    post("grace_codes", "link tracking, once more");
    const mina = personNamed("mina_designs");
    sandbox.x.people.set(mina.id, { ...mina, post: "my link tracking" });
    expect(textsOf(await found(since))).toEqual(["my link tracking", "link tracking, once more"]);
  });

  test("requires since_id to be a post of the last 7 days", async () => {
    const id = post("grace_codes", "zebra");
    expect((await search(`query=zebra&since_id=${id}`)).status).toBe(200);
    expect((await search("query=zebra&since_id=soon")).status).toBe(400);
    sandbox.clock.advance(7 * DAY_MS);
    access = (await authorized(sandbox)).access_token;
    const refused = await search(`query=zebra&since_id=${id}`);
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      {
        title: "Invalid Request",
        errors: [
          {
            parameters: { since_id: [id] },
            message: expect.stringMatching(
              /^'since_id' must be a tweet id created after \d{4}-\d\d-\d\dT\d\d:\d\dZ\. Please use a 'since_id' that is larger than \d{19}$/,
            ),
          },
        ],
      },
    ]);
  });

  test("finds posts of the last 7 days, except by deleted or protected users", async () => {
    post("grace_codes", "zebra");
    post("yuki_dev", "zebra crossing");
    post("acme_team", "our zebra");
    expect(textsOf(await found("query=zebra"))).toEqual(["our zebra", "zebra crossing", "zebra"]);
    for (const [username, change] of [
      ["grace_codes", { exists: false }],
      ["yuki_dev", { protected: true }],
    ] as const) {
      const id = personId(sandbox, username);
      const person = sandbox.x.people.get(id);
      if (person !== undefined) sandbox.x.people.set(id, { ...person, ...change });
    }
    expect(textsOf(await found("query=zebra"))).toEqual(["our zebra"]);
    sandbox.clock.advance(7 * DAY_MS);
    access = (await authorized(sandbox)).access_token;
    expect(await found("query=zebra")).toEqual({ meta: { result_count: 0 } });
  });

  test.each([
    "query=",
    `query=${"x".repeat(513)}`,
    "query=lang:en",
    "query=zebra&max_results=9",
    "query=a&expansions=b",
  ])("refuses the query %s", async (wrong) => {
    expect((await search(wrong)).status).toBe(400);
  });
});
