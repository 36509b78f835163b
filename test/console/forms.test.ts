// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { createSessions } from "../../src/http/access/session.ts";
import { createApp, type App } from "../../src/http/app.ts";
import { disposedAfterEach } from "../harness/dispose.ts";
import { ask, MASTER_KEY, openApp, post, problemIn, TOKEN, createClaims } from "../harness/in-process/app.ts";

const disposed = disposedAfterEach();

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const PATH = "/console/deliveries/resume";

/** Opens a service whose chat channel is suspended, and signs a browser in. */
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

/** Returns the token in the forms of the overview; undefined if it has no form. */
async function formTokenIn(app: App, cookie: string): Promise<string | undefined> {
  const page = await (await ask(app, "/", { headers: { cookie } })).text();
  return /name="form_token" value="([^"]+)"/.exec(page)?.[1];
}

function fields(more: Readonly<Record<string, string>>): string {
  return new URLSearchParams({ back: "/", channel: "chat", ...more }).toString();
}

test("a form records the signed-in operator as caller, and shows a notice once, on a page that the browser opens", async () => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const answer = await post(harness.app, PATH, fields({ form_token }), { headers: { ...FORM, cookie } });
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  const [last] = await Array.fromAsync(harness.store.read({ backwards: true, limit: 1 }));
  expect([last?.type, last?.meta.caller]).toEqual(["ChannelResumed", "tests"]);
  const notice = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  const asBrowser = (path: string, headers = {}) =>
    ask(harness.app, path, { headers: { cookie: `${cookie}; ${notice}`, ...headers } });
  const shown = await asBrowser("/people?status=open");
  const text = await shown.text();
  expect(text).toContain('<p role="status">chat is resumed. It had been suspended since ');
  expect(text).toContain('<a href="?status=open" class="button" data-dismiss');
  expect(shown.headers.get("set-cookie")).toMatch(/^reachlog_notice=;.*Max-Age=0/);
  const fetched = await asBrowser("/", { "sec-fetch-mode": "cors" });
  expect(await fetched.text()).not.toContain("chat is resumed");
  expect(fetched.headers.get("set-cookie")).not.toContain("reachlog_notice");
});

test("a refusal is shown on the page that the form returns to", async () => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const body = fields({ form_token, channel: "ads" });
  const answer = await post(harness.app, PATH, body, { headers: { ...FORM, cookie } });
  const notice = answer.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await ask(harness.app, "/", { headers: { cookie: `${cookie}; ${notice}` } });
  expect(await page.text()).toContain('role="alert">The ads channel is not suspended.');
});

test("a form without this session's form token, or from another site, is rejected", async () => {
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
])("a form does not redirect to %j", async (back) => {
  const { harness, cookie } = await openSuspended();
  const form_token = (await formTokenIn(harness.app, cookie)) ?? "";
  const answer = await post(harness.app, PATH, fields({ form_token, back }), { headers: { ...FORM, cookie } });
  expect(await problemIn(answer)).toBe("422 invalid-request");
});

test("a form that no page shows is rejected before its body is read", async () => {
  const { harness } = await openSuspended({ tokens: false });
  const sessions = { ...harness.deps.sessions, formToken: () => undefined };
  const closed = createApp({ ...harness.deps, sessions });
  const unread = new ReadableStream({ pull: () => Promise.reject(new Error("read")) });
  expect(await problemIn(await post(closed, PATH, unread, { headers: FORM }))).toBe("403 foreign-site");
});

test.each(["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"])(
  "without API tokens a form from behind a proxy (%s) is rejected",
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

test("a long notice fits into a cookie", async () => {
  const { harness } = await openSuspended();
  const cookie = harness.deps.notices.give({ text: "漢".repeat(100_000), isFault: true });
  expect(cookie.length).toBeLessThan(4_096);
});

test("without API tokens, forms work only on a service that no other machine can reach", async () => {
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
