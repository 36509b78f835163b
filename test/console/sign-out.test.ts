// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { disposedAfterEach } from "../harness/dispose.ts";
import { LOOK_AGAIN_MS } from "../../src/http/access/session.ts";
import { ask, createClaims, openApp, post, problemIn, TOKEN } from "../harness/in-process/app.ts";

const disposed = disposedAfterEach();

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const PATH = "/session/end";

/** Signs a browser in. Returns its cookie, and the sign-out form of a page with its token. */
async function openSignedIn() {
  const harness = disposed(await openApp());
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await (await ask(harness.app, "/setup", { headers: { cookie } })).text();
  const form = /<form[^>]* action="\/session\/end".*?<\/form>/s.exec(page)?.[0] ?? "";
  return { harness, cookie, form, form_token: /name="form_token" value="([^"]+)"/.exec(form)?.[1] ?? "" };
}

test("a signed-in browser signs out by a button, and no event is recorded", async () => {
  const { harness, cookie, form, form_token } = await openSignedIn();
  expect(form).toContain("Sign out");
  const head = await harness.store.head();
  const answer = await post(harness.app, PATH, new URLSearchParams({ form_token }).toString(), {
    headers: { ...FORM, cookie },
  });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  const cleared = answer.headers.get("set-cookie") ?? "";
  expect(cleared).toStartWith("reachlog_session=;");
  expect(cleared).toContain("Max-Age=0");
  expect(cleared).toContain("Path=/");
  expect(await harness.store.head()).toEqual(head);
});

test("a copied cookie is invalid after the sign-out, also at another instance", async () => {
  const { harness, cookie, form_token } = await openSignedIn();
  const claims = createClaims();
  const there = disposed(await openApp({ claims }));
  const here = disposed(await openApp({ claims }));
  const body = new URLSearchParams({ form_token }).toString();
  expect((await ask(there.app, "/setup", { headers: { cookie } })).status).toBe(200);
  for (const app of [harness.app, here.app]) await post(app, PATH, body, { headers: { ...FORM, cookie } });
  expect((await ask(harness.app, "/setup", { headers: { cookie } })).status).toBe(401);
  there.now += LOOK_AGAIN_MS;
  expect((await ask(there.app, "/setup", { headers: { cookie } })).status).toBe(401);
  expect(await problemIn(await ask(there.app, "/events", { headers: { cookie } }))).toBe("401 unauthorized");
});

test("a sign-out needs this session's form token and a request from this site", async () => {
  const { harness, cookie, form_token } = await openSignedIn();
  const end = (body: string, headers: Record<string, string>) => post(harness.app, PATH, body, { headers });
  expect(await problemIn(await end("form_token=x", { ...FORM, cookie }))).toBe("403 foreign-site");
  const foreign = { ...FORM, cookie, "sec-fetch-site": "cross-site" };
  expect(await problemIn(await end(`form_token=${form_token}`, foreign))).toBe("403 foreign-site");
  expect(await problemIn(await end(`form_token=${form_token}`, FORM))).toBe("401 unauthorized");
});

test("the sign-out button is missing without API tokens, and on the sign-in page", async () => {
  const harness = disposed(await openApp({ tokens: false }));
  expect(await (await ask(harness.app, "/setup")).text()).not.toContain("Sign out");
  const { harness: guarded } = await openSignedIn();
  expect(await (await ask(guarded.app, "/")).text()).not.toContain("Sign out");
});
