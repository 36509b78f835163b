// On the memory harness.
import { expect, test } from "bun:test";
import { createSessions } from "../../src/http/access/session.ts";
import { createApp, type App } from "../../src/http/app.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import { ask, MASTER_KEY, openApp, post, problemIn, TOKEN, createClaims } from "../harness/memory/app.ts";

const disposed = disposedAfterEach();

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const PATH = "/console/deliveries/resume";

/** A service with a suspended chat, and a signed-in browser. */
async function openSuspended(given: Parameters<typeof openApp>[0] = {}) {
  const harness = disposed(await openApp(given));
  const detail = "channel_is_archived";
  await harness.append("delivery-chat", {
    type: "ChannelSuspended",
    data: { channel: "chat", network: "slack", detail, credential: "c" },
  });
  const signedIn = await post(harness.app, "/session", `token=${TOKEN}`, { headers: FORM });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { harness, cookie };
}

/** The token of the page's forms; undefined if it has no form that acts. */
async function formTokenIn(app: App, cookie: string): Promise<string | undefined> {
  const page = await (await ask(app, "/", { headers: { cookie } })).text();
  return /name="form_token" value="([^"]+)"/.exec(page)?.[1];
}

function fields(more: Readonly<Record<string, string>>): string {
  return new URLSearchParams({ back: "/", channel: "chat", ...more }).toString();
}

test("a form acts in the name of the signed-in operator, and leads back to a page that says so until it is dismissed", async () => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const answer = await post(harness.app, PATH, fields({ form_token }), { headers: { ...FORM, cookie } });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  const [last] = await Array.fromAsync(harness.store.read({ backwards: true, limit: 1 }));
  expect([last?.type, last?.meta.caller]).toEqual(["ChannelResumed", "tests"]);
  const notice = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  const asBrowser = (path: string) => ask(harness.app, path, { headers: { cookie: `${cookie}; ${notice}` } });
  for (const path of ["/", "/people?status=open"]) {
    const page = await asBrowser(path);
    expect(await page.text()).toContain('<p role="status">chat is resumed. It had been suspended since ');
    expect(page.headers.get("set-cookie")).not.toContain("reachlog_notice");
  }
  const shown = await (await asBrowser("/people?status=open")).text();
  expect(shown).toContain('<a class="button" href="?status=open&amp;notice=read" data-moment="true">Dismiss</a>');
  const dismissed = await asBrowser("/people?status=open&notice=read");
  expect([dismissed.status, dismissed.headers.get("location")]).toEqual([303, "/people?status=open"]);
  expect(dismissed.headers.get("set-cookie")).toMatch(/^reachlog_notice=;.*Max-Age=0/);
  expect((await ask(harness.app, "/?notice=read")).status).toBe(401);
});

test("what the service refuses is said on the page that the form leads back to", async () => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const body = fields({ form_token, channel: "ads" });
  const answer = await post(harness.app, PATH, body, { headers: { ...FORM, cookie } });
  const notice = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await ask(harness.app, "/", { headers: { cookie: `${cookie}; ${notice}` } });
  expect(await page.text()).toContain('role="alert">The ads channel is not suspended.');
});

test("no form acts without the token of this very session, or from another site's page", async () => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const other = (await openSuspended()).cookie;
  const head = await harness.store.head();
  const asked = (body: string, headers: Record<string, string>) => post(harness.app, PATH, body, { headers });
  expect(await problemIn(await asked(fields({ form_token: "x" }), { ...FORM, cookie }))).toBe("403 foreign-site");
  expect(await problemIn(await asked(fields({ form_token }), { ...FORM, cookie: other }))).toBe("403 foreign-site");
  const foreign = { ...FORM, cookie, "sec-fetch-site": "cross-site" };
  expect(await problemIn(await asked(fields({ form_token }), foreign))).toBe("403 foreign-site");
  expect(await problemIn(await asked("anything", FORM))).toBe("401 unauthorized");
  expect(await harness.store.head()).toEqual(head);
});

test.each([
  "//evil.example",
  "https://evil.example",
  "/\\evil.example",
  "/\t/evil.example",
  "/x\r\ny: z",
  "/漢",
  "x",
  "",
])("a form leads back to a page of ours only, and not to %j", async (back) => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const answer = await post(harness.app, PATH, fields({ form_token, back }), { headers: { ...FORM, cookie } });
  expect(await problemIn(answer)).toBe("422 invalid-request");
});

test("a form that no page can have shown is refused before any of it is read", async () => {
  const { harness } = await openSuspended({ tokens: false });
  const sessions = { ...harness.deps.sessions, formToken: () => undefined };
  const closed = createApp({ ...harness.deps, sessions });
  const unread = new ReadableStream({ pull: () => Promise.reject(new Error("read")) });
  expect(await problemIn(await post(closed, PATH, unread, { headers: FORM }))).toBe("403 foreign-site");
});

test.each(["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"])(
  "without a token no caller behind a proxy acts, which %s shows",
  async (header) => {
    const { harness } = await openSuspended({ tokens: false });
    const form_token = (await formTokenIn(harness.app, "")) ?? "";
    const headers = { ...FORM, [header]: "203.0.113.9" };
    expect(await problemIn(await post(harness.app, PATH, fields({ form_token }), { headers }))).toBe(
      "403 foreign-site",
    );
    expect(await (await ask(harness.app, "/", { headers })).text()).not.toContain("form_token");
  },
);

test("a notice fits into a cookie that browsers keep, however long what it says", async () => {
  const { harness } = await openSuspended();
  const cookie = harness.deps.notices.give({ text: "漢".repeat(100_000), isFault: true });
  expect(cookie.length).toBeLessThan(4_096);
});

test("where no token is configured, browsers act only on a service that no other machine can reach", async () => {
  const { harness } = await openSuspended({ tokens: false });
  expect(await formTokenIn(harness.app, "")).toBeString();
  const { authentication } = harness.deps;
  const sessions = createSessions({
    masterKey: MASTER_KEY,
    authentication,
    site: new URL("http://localhost"),
    isLocal: false,
    claims: createClaims(),
    clock: () => harness.now,
  });
  const reachable = createApp({ ...harness.deps, sessions });
  expect(await formTokenIn(reachable, "")).toBeUndefined();
  const answer = await post(reachable, PATH, fields({ form_token: "" }), { headers: FORM });
  expect(await problemIn(answer)).toBe("403 foreign-site");
});
