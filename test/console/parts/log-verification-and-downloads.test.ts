// These tests run parts of the service inside the test process.
import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "bun:test";
import { loadSigningKey, openCheckpoint, openProof, signCheckpoint } from "eventstore-lite/proof";
import { formatOrigin } from "../../../src/log/sign-and-compare-checkpoints.ts";
import { logFiles } from "../../../src/log/log-file-paths.ts";
import { disposedAfterEach } from "../../harness/dispose.ts";
import { ask, openApp, post, problemIn, TOKEN } from "../../harness/in-process/app.ts";

const disposed = disposedAfterEach();

const MESSAGE = { type: "MessageRequested", data: { text: "hello" } } as const;
const FORM = { "content-type": "application/x-www-form-urlencoded" };

/** Opens a service with 300 events and signs a browser in. A verification of the log waits until `begun` resolves. */
async function openBrowser(begun: Promise<void> = Promise.resolve()) {
  const harness = disposed(
    await openApp({
      store: (store) => ({
        ...store,
        async verify(options) {
          await begun;
          return store.verify(options);
        },
      }),
    }),
  );
  await harness.append("requests", ...Array.from({ length: 300 }, () => MESSAGE));
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const headers = { cookie: signedIn.headers.get("set-cookie")?.split(";")[0] ?? "" };
  const page = async (path: string) => (await ask(harness.app, path, { headers })).text();
  const verified = async (): Promise<unknown> => (await ask(harness.app, "/api/audit/verify", { token: TOKEN })).json();
  /** Waits until the current verification has ended and the projections have its result. Returns the result. */
  const untilVerified = async (): Promise<unknown> => {
    while (harness.deps.verifier.progress !== undefined) await new Promise((resolve) => setImmediate(resolve));
    await harness.projector.until((await harness.store.head()).position);
    return verified();
  };
  return { harness, headers, page, verified, untilVerified, files: logFiles(harness.folder.file("log.sqlite")) };
}

/** Alters an event in the log's file, as a program with access to the file could. */
function tamper(file: string, position: number): void {
  using db = new DatabaseSync(file);
  const triggers = db.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all();
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${String(name)}`);
  db.prepare("UPDATE events SET data = ? WHERE position = ?").run('{"text":"other"}', position);
}

test("verifications run one at a time, and the result is recorded with the caller", async () => {
  const gate = Promise.withResolvers<void>();
  const { harness, page, verified, untilVerified } = await openBrowser(gate.promise);
  expect(await verified()).toEqual({ running: null, last: null });
  expect(await page("/activity")).toContain("The log was not verified yet.");
  const { hash } = await harness.store.head();
  const answers = await Promise.all([1, 2].map(() => post(harness.app, "/api/audit/verify", {}, { token: TOKEN })));
  expect(answers.map(({ status }) => status)).toEqual([202, 409]);
  expect(await answers[0]?.json()).toMatchObject({ status: "started", position: 300 });
  expect(await verified()).toMatchObject({ running: { caller: "tests", position: 300 } });
  const going = await page("/activity");
  expect(going).toMatch(/<progress data-refresh(="true")? max="300"/);
  expect(going).not.toContain("Check the log");
  gate.resolve();
  const last = { caller: "tests", position: 300, hash, checked: 300, result: "whole" };
  expect(await untilVerified()).toMatchObject({ running: null, last });
  expect(await page("/activity")).toMatch(/Whole<\/span> up to position 300.*by <bdi>tests<\/bdi>/s);
  expect(await page("/")).not.toContain("The log is broken");
});

test("a broken log is reported on the pages, by the API and by the logger", async () => {
  const { harness, page, untilVerified, files } = await openBrowser();
  tamper(files.log, 7);
  expect((await post(harness.app, "/api/audit/verify", {}, { token: TOKEN })).status).toBe(202);
  const fault = expect.stringMatching(/^the chain is broken at position 7: /) as string;
  const last = { checked: 6, result: "broken", broken_position: 7, fault };
  expect(await untilVerified()).toMatchObject({ last });
  for (const path of ["/", "/activity"]) expect(await page(path)).toContain("the chain is broken at position 7");
  expect(harness.logged.join("\n")).toContain('["error","the log is broken",');
  expect(harness.logged.join("\n")).toContain("announced: the log is broken: the chain is broken at position 7");
});

test("a log shorter than its checkpoint is reported as broken, and no head is signed", async () => {
  const { harness, headers, untilVerified, files } = await openBrowser();
  const key = loadSigningKey(files.signingKey);
  const known = {
    origin: formatOrigin(harness.store),
    position: 301,
    hash: "0".repeat(64),
    time: "2026-01-01T00:00:00Z",
  };
  writeFileSync(files.checkpoint, signCheckpoint(known, key));
  expect(await problemIn(await ask(harness.app, "/api/audit/head", { headers }))).toBe("503 log-contradicted");
  await post(harness.app, "/api/audit/verify", {}, { token: TOKEN });
  const fault =
    "the log ends at position 300, but the checkpoint beside the log knew 301 events: all from position 301 on are lost";
  expect(await untilVerified()).toMatchObject({ last: { checked: 300, result: "broken", fault } });
});

test("a signed-in browser verifies by a form, and downloads valid heads and proofs", async () => {
  const { harness, headers, page, untilVerified, files } = await openBrowser();
  const form_token = /name="form_token" value="([^"]+)"/.exec(await page("/activity"))?.[1] ?? "";
  const body = new URLSearchParams({ form_token, back: "/activity" }).toString();
  const answer = await post(harness.app, "/console/audit/verify", body, { headers: { ...FORM, ...headers } });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/activity"]);
  expect(await untilVerified()).toMatchObject({ last: { caller: "tests", result: "whole" } });
  const download = await ask(harness.app, "/api/audit/head", { headers });
  expect(download.headers.get("content-disposition")).toContain("attachment");
  const { publicKey } = loadSigningKey(files.signingKey);
  const { position, hash } = await harness.store.head();
  expect(openCheckpoint(await download.text(), publicKey)).toMatchObject({ position, hash });
  expect((await ask(harness.app, "/api/audit/head", { token: TOKEN })).status).toBe(200);
  const [first] = await Array.fromAsync(harness.store.read({ from: 1, to: 1 }));
  // Like the ids that the service makes, this id contains the time of its creation.
  const id = Bun.randomUUIDv7("hex", Date.parse(first?.time ?? ""));
  const message = { id, type: "MessageRequested", data: { text: "hello" }, meta: { schema: 1 } } as const;
  const { last } = await harness.store.append("requests", [message]);
  for (const name of [String(last), id]) {
    const proof = await ask(harness.app, `/api/audit/proof/${name}`, { headers });
    expect(proof.headers.get("content-disposition")).toBe(`attachment; filename="event-${last}.tlog-proof"`);
    expect(openProof(await proof.text(), publicKey)).toMatchObject({ position: last });
  }
  for (const name of ["999", Bun.randomUUIDv7()])
    expect(await problemIn(await ask(harness.app, `/api/audit/proof/${name}`, { headers }))).toBe("404 not-found");
  for (const name of ["0", "x"])
    expect((await ask(harness.app, `/api/audit/proof/${name}`, { headers })).status).toBe(422);
  expect(await problemIn(await ask(harness.app, "/api/audit/proof/1"))).toBe("401 unauthorized");
  expect(await problemIn(await ask(harness.app, "/api/audit/head"))).toBe("401 unauthorized");
});
