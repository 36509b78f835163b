// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, post, problemIn, TOKEN, type AppHarness } from "../../harness/in-process/app.ts";

const disposed = disposedAfterEach();
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const UNPACK: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
};

async function openSignedIn() {
  const world = disposed(await openApp());
  const added = { recipient: { username: "ada" }, basis: "opt_in", fields: {}, source: "list" } as const;
  await world.append("outreach", { type: "RecipientAdded", data: added });
  const signedIn = await post(world.app, "/session", `token=${TOKEN}`, { headers: FORM });
  return { world, cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
}

const read = ({ app }: AppHarness, path: string, headers: Record<string, string>, method = "GET") =>
  ask(app, path, { headers, method });

const FILES = ["/console.css", "/console.js", "/idiomorph.js", "/openapi.json", "/docs"];

test.each(FILES)("%s is compressed as Accept-Encoding allows, with a Vary header", async (path) => {
  const { world } = await openSignedIn();
  const whole = await (await read(world, path, {})).text();
  for (const [accepted, encoding] of [
    ["gzip, deflate, br, zstd", "br"],
    ["GZIP;q=0.5, br;q=0", "gzip"],
    ["gzip;q=0.0", null],
    ["identity", null],
    ["", null],
  ] as const) {
    const answer = await read(world, path, { "accept-encoding": accepted });
    const { headers } = answer;
    expect([accepted, headers.get("content-encoding"), headers.get("vary")]).toEqual([
      accepted,
      encoding,
      "Accept-Encoding",
    ]);
    const bytes = await answer.bytes();
    const unpacked = encoding === null ? bytes : UNPACK[encoding]!(bytes);
    expect(Buffer.from(unpacked).toString() === whole).toBe(true);
    if (encoding !== null) expect(bytes.length).toBeLessThan(whole.length / 2);
  }
});

test.each(["/", "/people", "/activity", "/setup"])(
  "the page %s is compressed, because it repeats nothing from its address",
  async (path) => {
    const { world, cookie } = await openSignedIn();
    const answer = await read(world, path, { cookie, "accept-encoding": "br" });
    expect([answer.headers.get("content-encoding"), answer.headers.get("vary")]).toEqual(["br", "Accept-Encoding"]);
    expect(Buffer.from(brotliDecompressSync(await answer.bytes())).toString()).toEndWith("</html>");
  },
);

test.each([
  "/people?search=ad",
  "/people/@ada",
  "/find?q=ad",
  "/activity?recipient=ada",
  "/activity/1",
  "/api/audit/export",
])("%s is not compressed, because its length could reveal its content", async (path) => {
  const { world, cookie } = await openSignedIn();
  const answer = await read(world, path, { cookie, "accept-encoding": "gzip, br" });
  expect([path, answer.headers.get("content-encoding")]).toEqual([path, null]);
  await answer.body?.cancel();
});

test("a form token differs on each page and is valid only in its own session", async () => {
  const { world, cookie } = await openSignedIn();
  const tokenIn = async () =>
    /name="form_token" value="([^"]+)"/.exec(await (await read(world, "/setup", { cookie })).text())?.[1] ?? "";
  const tokens = [await tokenIn(), await tokenIn()];
  expect(new Set(tokens).size).toBe(2);
  for (const length of [4, 40]) expect(tokens[0]!.slice(-length)).not.toBe(tokens[1]!.slice(-length));
  const run = (form_token: string, from = cookie) =>
    post(world.app, "/console/run/stop", new URLSearchParams({ form_token, back: "/" }).toString(), {
      headers: { ...FORM, cookie: from },
    });
  for (const token of tokens) expect((await run(token)).status).toBe(303);
  const other = await post(world.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const foreign = await run(tokens[0]!, other.headers.get("set-cookie")?.split(";")[0] ?? "");
  expect(await problemIn(foreign)).toBe("403 foreign-site");
  for (const wrong of ["", "x", tokens[0]!.slice(1), tokens[0]!.slice(0, 43), `${tokens[0]!.slice(0, -4)}AAAA`])
    expect(await problemIn(await run(wrong))).toBe("403 foreign-site");
});
