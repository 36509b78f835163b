// These tests run parts of the service inside the test process.
import { describe, expect, test } from "bun:test";
import { serve } from "../harness/in-process/local-test-servers.ts";
import { escapedJson, thrownBy, TOKEN, xAt } from "./x-client.ts";

const ANN = { id: "11", username: "ann", name: "Ann", receives_your_dm: true, protected: false };
const BEN = { id: "12", username: "ben", name: "Ben", receives_your_dm: false };
const SHOWN = { id: "11", username: "ann", name: "Ann", receivesOurDm: true, protected: false };

/** User at X that takes as many bytes as possible: each character of the name is outside of Unicode's first plane. */
const LONGEST = {
  id: "1".repeat(19),
  username: "u".repeat(15),
  name: "😀".repeat(50),
  receives_your_dm: false,
  protected: false,
};

describe.each(["followers", "listMembers"] as const)("%s", (kind) => {
  const [path, most] = { followers: ["/2/users/1/followers", 1000], listMembers: ["/2/lists/1/members", 100] }[
    kind
  ] as [string, number];

  test("come in pages, without invalid entries", async () => {
    const pages = [
      { data: [ANN, { id: "../3", username: "b", name: "B" }, null], meta: { next_token: "N+/=" } },
      { meta: { result_count: 0 } },
    ];
    await using server = serve((_seen, nth) => Response.json(pages[nth - 1]));
    const x = xAt(server.url);
    expect(await x[kind](TOKEN, "1", { limit: 40 })).toEqual({ users: [SHOWN], next: "N+/=" });
    expect(await x[kind](TOKEN, "1", { limit: 40, cursor: "N+/=" })).toEqual({ users: [] });
    const fields = { max_results: "40", "user.fields": "receives_your_dm,protected" };
    expect(server.requests.map((request) => [request.path, Object.fromEntries(request.query)])).toEqual([
      [path, fields],
      [path, { ...fields, pagination_token: "N+/=" }],
    ]);
  });

  test("are requested in pages of 1 to X's maximum", async () => {
    await using server = serve(() => Response.json({ meta: { result_count: 0 } }));
    for (const limit of [0, -3, 1.5, 5000]) await xAt(server.url)[kind](TOKEN, "1", { limit });
    expect(server.requests.map(({ query }) => query.get("max_results"))).toEqual(["1", "1", "1", String(most)]);
  });

  test("are read from a full page of the largest users, escaped", async () => {
    const body = escapedJson({ data: Array.from({ length: most }, () => LONGEST) });
    await using server = serve(() => new Response(body));
    expect((await xAt(server.url)[kind](TOKEN, "1", { limit: most })).users).toHaveLength(most);
  });

  test("are rejected for an unknown id, not returned as an empty list", async () => {
    const detail = "Could not find list with id: [1].";
    await using server = serve(() => Response.json({ errors: [{ title: "Not Found Error", detail }] }));
    const refused = await thrownBy(xAt(server.url)[kind](TOKEN, "1", { limit: 5 }));
    expect([refused.kind, refused.message]).toEqual([
      "rejected",
      "X answered 200 without people Could not find list with id: […].",
    ]);
  });

  test.each([{}, { data: "x" }, { data: null, meta: {} }])("are unavailable after an answer of %j", async (body) => {
    await using server = serve(() => Response.json(body));
    expect((await thrownBy(xAt(server.url)[kind](TOKEN, "1", { limit: 5 }))).kind).toBe("unavailable");
  });

  test.each(["../me", "", "1?x=1", "12345678901234567890"])(
    "are rejected for the invalid id %j without a request",
    async (id) => {
      await using server = serve(() => Response.json({ data: [] }));
      expect((await thrownBy(xAt(server.url)[kind](TOKEN, id, { limit: 5 }))).kind).toBe("rejected");
      expect(server.requests).toEqual([]);
    },
  );
});

describe("a search for authors", () => {
  const post = (id: string, author_id: string) => ({ id, text: "words", author_id });

  async function found(body: object) {
    await using server = serve(() => Response.json(body));
    return await xAt(server.url).searchAuthors(TOKEN, "words", { limit: 10 });
  }

  test("returns each author once in post order, with newest post and post count", async () => {
    const page = await found({
      data: [post("99", "12"), post("1000", "11"), post("998", "12"), post("997", "13")],
      includes: { users: [ANN, BEN] },
      meta: { result_count: 4, next_token: "b26v" },
    });
    expect(page.users.map(({ username }) => username)).toEqual(["ben", "ann"]);
    expect(page).toMatchObject({ posts: 4, newest: "1000", next: "b26v" });
  });

  test("requests 10 to 100 posts after since_id, without post fields", async () => {
    await using server = serve(() => Response.json({ meta: { result_count: 0 } }));
    const x = xAt(server.url);
    expect(await x.searchAuthors(TOKEN, "a b -is:retweet", { limit: 3 })).toEqual({ users: [], posts: 0 });
    await x.searchAuthors(TOKEN, "a", { limit: 500, cursor: "b26v", since: "190" });
    const asked = { expansions: "author_id", "user.fields": "receives_your_dm,protected" };
    expect(server.requests.map(({ path, query }) => [path, Object.fromEntries(query)])).toEqual([
      ["/2/tweets/search/recent", { query: "a b -is:retweet", max_results: "10", ...asked }],
      ["/2/tweets/search/recent", { query: "a", max_results: "100", ...asked, next_token: "b26v", since_id: "190" }],
    ]);
  });

  test("reads a full page of long posts, escaped", async () => {
    const ids = Array.from({ length: 100 }, (_, index) => String(10n ** 18n + BigInt(index)));
    const text = "😀".repeat(2_500);
    const body = escapedJson({
      data: ids.map((id) => ({ ...post(id, id), text })),
      includes: { users: ids.map((id) => ({ ...LONGEST, id })) },
      meta: { result_count: 100 },
    });
    await using server = serve(() => new Response(body));
    const page = await xAt(server.url).searchAuthors(TOKEN, "words", { limit: 100 });
    expect([page.posts, page.users.length]).toEqual([100, 100]);
  });

  test.each<[string, object]>([
    ["an empty body", {}],
    ["posts that are counted but not shown", { meta: { result_count: 3 } }],
    ["errors alone", { errors: [{ title: "Service Unavailable" }] }],
    ["an invalid post", { data: [{ id: "x" }], meta: { result_count: 1 } }],
  ])("is unavailable with %s, instead of an empty list", async (_name, body) => {
    expect((await thrownBy(found(body))).kind).toBe("unavailable");
  });
});
