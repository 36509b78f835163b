// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { valid } from "../../fuzz/bodies.ts";
import { parseDocument, type Schema } from "../../fuzz/parse-openapi-operations.ts";
import { nameHashKey } from "../../../src/recipients/suppress.ts";
import { parseSuppressions } from "../../../src/recipients/parse-imported-lists.ts";
import { ask, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const PATH = "/social/suppressions";

interface Document {
  readonly paths: {
    readonly [PATH]: {
      readonly post: {
        readonly requestBody: {
          readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>;
        };
      };
    };
  };
}

let world: AppHarness;
beforeEach(async () => {
  world = await openApp();
});
afterEach(() => world[Symbol.asyncDispose]());

const send = (body: unknown, type?: string): Promise<Response> =>
  post(world.app, PATH, body, { token: TOKEN, ...(type === undefined ? {} : { headers: { "content-type": type } }) });
const read = (query = ""): Promise<Response> => ask(world.app, PATH + query, { token: TOKEN });

describe("POST /social/suppressions", () => {
  test.each([
    ["text/csv", "csv"],
    ["application/json", "json"],
    ["application/jsonl", "jsonl"],
    ["application/x-ndjson", "jsonl"],
  ] as const)(
    "a body that fits the documented schema of %s is readable, and its example is imported",
    async (type, format) => {
      const document = parseDocument(await (await ask(world.app, "/openapi.json")).text()) as Document;
      const { schema, example } = document.paths[PATH].post.requestBody.content[type] ?? {};
      if (schema === undefined) throw new Error(`no schema of ${type}`);
      const bodies = valid(schema).map((body) => (typeof body === "string" ? body : JSON.stringify(body)));
      fc.assert(
        fc.property(bodies, (body) => void parseSuppressions(body, format, { now: 0 }, "")),
        { numRuns: 200 },
      );
      const given = example === undefined ? schema.examples?.[0] : JSON.stringify(example);
      const answer = await send(given, type);
      expect([answer.status, await answer.json()]).toMatchObject([200, { added: 1, refused: 0 }]);
    },
  );

  test("suppresses named and hashed recipients, reports each row, and ignores a repeat", async () => {
    const { hashesOf } = world.deps;
    const [hash = ""] = hashesOf({ id: "1001" });
    const list = [
      { username: "ann", reason: "opt_out", suppressed_at: "2025-03-02" },
      { hash: `${nameHashKey(hashesOf)}.${hash}`, reason: "by hand" },
      { id: "1e18" },
      { handle: "@ANN" },
    ];
    const refused = {
      refused: 1,
      refused_rows: [{ line: 1, value: "1e18", reason: expect.stringContaining("rounded") }],
      noted_cells: 0,
      notes: [],
    };
    expect(await (await send(list)).json()).toEqual({ added: 2, repeated: 1, ...refused });
    expect(world.projector.state("contacts").hashes.has(hash)).toBe(true);
    expect(await world.events("RecipientSuppressed")).toMatchObject([
      {
        data: { recipient: { username: "ann" }, reason: "opt_out", suppressed_at: "2025-03-02" },
        meta: { caller: "tests" },
      },
      { data: { reason: "by_hand", hashes: [hash] } },
    ]);
    const { position } = await world.store.head();
    expect(await (await send({ suppressions: list })).json()).toEqual({ added: 0, repeated: 3, ...refused });
    expect((await world.store.head()).position).toBe(position);
  });

  test("reads dates in the order of the query", async () => {
    const list = "username,suppressed_at\nann,3/2/2025";
    const refused = { line: 2, value: "3/2/2025", reason: expect.stringContaining("3/2/2025 is ambiguous") };
    expect(await (await send(list, "text/csv")).json()).toMatchObject({ added: 0, refused_rows: [refused] });
    const named = { token: TOKEN, headers: { "content-type": "text/csv" } };
    expect((await post(world.app, `${PATH}?dates=dmy`, list, named)).status).toBe(200);
    expect((await world.events("RecipientSuppressed"))[0]?.data.suppressed_at).toBe("2025-02-03");
  });

  test("refuses an unreadable list, another type, and a caller without a token", async () => {
    expect(await problemIn(await send("name\nAnn", "text/csv"))).toBe("422 unreadable-file");
    expect(await problemIn(await send("username\nann", "text/plain"))).toBe("415 unsupported-media-type");
    expect(await problemIn(await post(world.app, PATH, []))).toBe("401 unauthorized");
    expect((await world.store.head()).position).toBe(0);
  });

  test("refuses a list while another one is imported", async () => {
    const taken = Promise.withResolvers<void>();
    const first = world.deps.load.whileTaking(() => taken.promise);
    expect(await problemIn(await send([{ username: "ann" }]))).toBe("503 overloaded");
    taken.resolve();
    await first;
    expect((await send([{ username: "ann" }])).status).toBe(200);
  });

  test("accepts 12 MiB, and stops reading an endless list", async () => {
    const large = `username,reason\nann,opt_out\n${"\n".repeat(12 * 2 ** 20)}`;
    expect(await (await send(large, "text/csv")).json()).toMatchObject({ added: 1 });
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(2 ** 20).fill(10));
      },
    });
    expect(await problemIn(await send(endless, "text/csv"))).toBe("413 body-too-large");
    expect(pulled).toBeLessThan(40);
  });
});

describe("GET /social/suppressions", () => {
  beforeEach(() => send([{ username: "ann", reason: "opt_out", suppressed_at: "2025-03-02" }]));

  test.each([
    ["", "text/csv; charset=utf-8", "reachlog-suppressions.csv", '"","ann","","opt_out","2025-03-02"\r\n'],
    [
      "?format=jsonl",
      "application/x-ndjson",
      "reachlog-suppressions.jsonl",
      '{"username":"ann","reason":"opt_out","suppressed_at":"2025-03-02"}\n',
    ],
  ])("returns the list as a file: %j", async (query, type, name, line) => {
    const answer = await read(query);
    expect([answer.headers.get("content-type"), answer.headers.get("content-disposition")]).toEqual([
      type,
      `attachment; filename="${name}"`,
    ]);
    expect(await answer.text()).toEndWith(line);
    expect(world.deps.load.streams).toBe(0);
  });

  test("names no recipient if hashes are requested", async () => {
    const list = await (await read("?hashed=true")).text();
    const [hash = ""] = world.deps.hashesOf({ username: "ann" });
    expect(list).toContain(`.${hash}"`);
    expect(list).not.toContain("ann");
    expect(await (await send(list, "text/csv")).json()).toMatchObject({ added: 0, repeated: 1 });
  });

  test("refuses an invalid query, because a mistyped `hashed` would disclose names", async () => {
    for (const query of ["?format=xml", "?hashed=yes", "?hashed="])
      expect([query, await problemIn(await read(query))]).toEqual([query, "422 invalid-request"]);
    expect(await problemIn(await ask(world.app, PATH))).toBe("401 unauthorized");
    expect(await (await ask(world.app, PATH, { method: "HEAD", token: TOKEN })).text()).toBe("");
  });
});
