// These tests run parts of the service inside the test process.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { openService, type ServiceHarness, type Browser, type Deployment } from "../harness/in-process/service.ts";

let world: ServiceHarness;
let service: Deployment;
let owner: Browser;
beforeEach(async () => {
  world = await openService();
  service = await world.deploy();
  owner = service.browser();
});
afterEach(async () => {
  const told = world.answers.join("\n");
  for (const secret of world.secrets()) expect(told).not.toContain(secret);
  await world[Symbol.asyncDispose]();
});

const told = async (response: Response): Promise<string> => {
  const text = await response.text();
  return `${response.status} ${text === "" ? "" : (JSON.parse(text) as { type?: string }).type?.split(":").at(-1)}`;
};
const REFUSED = "400 authorization-failed";

function changed(back: URL, change: (query: URLSearchParams) => void): URL {
  const url = new URL(back);
  change(url.searchParams);
  return url;
}

/** Expects that no account was linked and that no code was exchanged at X. */
async function expectNothing(): Promise<void> {
  expect([await service.linked(), world.exchanged()]).toEqual([undefined, 0]);
}

test("a regular authorization links the owner and clears the cookie", async () => {
  const back = await owner.agree(await owner.begin());
  const answer = await owner.follow(back);
  expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  // The attributes of the cookie may be in any order.
  expect(answer.headers.get("set-cookie")?.split("; ")).toEqual(
    expect.arrayContaining([expect.stringMatching(/^reachlog_oauth_\d+=$/), "Path=/social", "Max-Age=0"]),
  );
  expect([await service.linked(), world.exchanged()]).toEqual(["acme_team", 1]);
});

describe("the state", () => {
  test.each([
    ["is missing", (query: URLSearchParams) => query.delete("state")],
    ["is empty", (query: URLSearchParams) => query.set("state", "")],
    ["is unknown", (query: URLSearchParams) => query.set("state", "A".repeat(43))],
    ["is truncated", (query: URLSearchParams) => query.set("state", query.get("state")?.slice(0, -1) ?? "")],
    ["is followed by another one", (query: URLSearchParams) => query.append("state", "A".repeat(43))],
    ["comes twice", (query: URLSearchParams) => query.append("state", query.get("state") ?? "")],
  ])("is refused without an exchange if it %s", async (_what, change) => {
    const back = await owner.agree(await owner.begin());
    expect(await told(await owner.follow(changed(back, change)))).toBe(REFUSED);
    await expectNothing();
  });

  test("is refused in another browser, so that a lured operator links no attacker", async () => {
    const attacker = service.browser();
    const lure = await attacker.agree(await attacker.begin(), "someone_else");
    expect(await told(await service.browser().follow(lure))).toBe(REFUSED);
    const page = await owner.begin();
    expect(await told(await owner.follow(lure))).toBe(REFUSED);
    await expectNothing();
    // The attack did not end the authorization that the victim had begun: the victim can complete it.
    expect((await owner.follow(await owner.agree(page))).status).toBe(303);
    expect(await service.linked()).toBe("acme_team");
  });

  test("is refused without its cookie, as in a stolen redirect", async () => {
    const back = await owner.agree(await owner.begin());
    expect(await told(await service.browser().follow(back))).toBe(REFUSED);
    await expectNothing();
  });

  test("is refused once used, also with a valid code or after a restart", async () => {
    const used = await owner.agree(await owner.begin());
    expect((await owner.follow(used)).status).toBe(303);
    const hesitant = service.browser();
    const page = await hesitant.begin();
    expect(await told(await hesitant.follow(await hesitant.agree(page, "acme_team", "cancel")))).toBe(REFUSED);
    const afterAll = await hesitant.agree(page);
    await service.restart();
    for (const [browser, back] of [
      [owner, changed(used, (query) => query.set("code", afterAll.searchParams.get("code") ?? ""))],
      [hesitant, afterAll],
    ] as const) {
      const { detail } = (await (await browser.follow(back)).json()) as { detail: string };
      expect(detail).toBe("This state was used before. Nothing was stored.");
    }
    // The browser that began the authorization may repeat the redirect. It sees the same outcome, and the service
    // exchanges no second code.
    expect((await owner.follow(used)).status).toBe(303);
    expect(world.exchanged()).toBe(1);
  });

  test("is refused by another deployment with another key", async () => {
    const other = await world.deploy();
    const back = await owner.agree(await owner.begin());
    const stranger = other.browser();
    stranger.cookie = owner.cookie;
    expect(await told(await stranger.follow(back))).toBe(REFUSED);
    expect([await other.linked(), world.exchanged()]).toEqual([undefined, 0]);
  });

  test("is refused with a changed cookie", async () => {
    const back = await owner.agree(await owner.begin());
    for (const cookie of [
      `${owner.cookie}A`,
      owner.cookie.slice(0, -4),
      owner.cookie.replace(/.{8}$/, "AAAAAAAA"),
      "reachlog_oauth=",
    ]) {
      const tampered = service.browser();
      tampered.cookie = cookie;
      expect(await told(await tampered.follow(back))).toBe(REFUSED);
    }
    await expectNothing();
  });
});

describe("the code", () => {
  test("links no second account once it is used", async () => {
    const used = await owner.agree(await owner.begin());
    await owner.follow(used);
    const attacker = service.browser();
    const own = await attacker.agree(await attacker.begin(), "someone_else");
    const replay = changed(own, (query) => query.set("code", used.searchParams.get("code") ?? ""));
    expect(await told(await attacker.follow(replay))).toBe(REFUSED);
    expect([await service.linked(), world.exchanged()]).toEqual(["acme_team", 1]);
  });

  test("is refused in another browser's authorization because of the verifier", async () => {
    const stolen = await owner.agree(await owner.begin());
    const attacker = service.browser();
    const own = await attacker.agree(await attacker.begin(), "someone_else");
    const injected = changed(own, (query) => query.set("code", stolen.searchParams.get("code") ?? ""));
    expect(await told(await attacker.follow(injected))).toBe(REFUSED);
    await expectNothing();
  });

  test.each([
    ["is missing", (query: URLSearchParams) => query.delete("code")],
    ["is empty", (query: URLSearchParams) => query.set("code", "")],
    ["comes twice", (query: URLSearchParams) => query.append("code", "another")],
    ["is sent with an error", (query: URLSearchParams) => query.set("error", "access_denied")],
    [
      "is replaced by a token, as in the implicit flow",
      (query: URLSearchParams) => {
        query.delete("code");
        query.set("access_token", "attacker");
      },
    ],
  ])("is refused if it %s", async (_what, change) => {
    const back = await owner.agree(await owner.begin());
    expect(await told(await owner.follow(changed(back, change)))).toBe(REFUSED);
    await expectNothing();
  });
});

describe("PKCE", () => {
  test("uses S256 regardless of the query, and does not expose the verifier", async () => {
    const page = await owner.begin("?code_challenge_method=plain&code_challenge=known&scope=none&client_id=attacker");
    const { code_challenge: challenge = "", ...asked } = Object.fromEntries(page.searchParams);
    expect(asked).toMatchObject({ code_challenge_method: "S256", client_id: world.sandbox.x.clientId });
    expect(challenge).toMatch(/^[\w-]{43}$/);
    const visible = `${page.href} ${Buffer.from(owner.cookie.split("=")[1] ?? "", "base64url").toString("latin1")}`;
    const words = visible.match(/[\w-]{43,128}/g) ?? [];
    const hashes = words.map((word) => createHash("sha256").update(word).digest("base64url"));
    expect(hashes).not.toContain(challenge);
  });

  test.each(["code_challenge", "code_challenge_method"])("links no account if its %s is removed", async (name) => {
    const page = await owner.begin();
    const back = await owner.agree(changed(page, (query) => query.delete(name)));
    expect(await told(await owner.follow(back))).toBe(REFUSED);
    await expectNothing();
  });

  test("refuses a code that was issued for an attacker's challenge", async () => {
    const verifier = "attacker".repeat(6);
    const page = await owner.begin();
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    const back = await owner.agree(changed(page, (query) => query.set("code_challenge", challenge)));
    expect(await told(await owner.follow(back))).toBe(REFUSED);
    await expectNothing();
  });
});

describe("the redirect", () => {
  test("is always that of PUBLIC_URL", async () => {
    const expected = `${service.url}/social/callback`;
    for (const headers of [
      { "x-forwarded-host": "evil.example" },
      { forwarded: "host=evil.example;proto=https" },
      { "x-forwarded-proto": "https", "x-original-url": "/evil" },
    ] as Record<string, string>[]) {
      const page = await owner.begin("?redirect_uri=https://evil.example/&next=//evil.example", headers);
      expect([page.origin + page.pathname, page.searchParams.getAll("redirect_uri")]).toEqual([
        world.sandbox.urls.xAuthorize,
        [expected],
      ]);
    }
  });

  test("is refused with 421 on another host", async () => {
    const response = await fetch(`${service.url}/social/auth`, {
      headers: { host: "evil.example" },
      redirect: "manual",
    });
    expect([response.status, response.headers.get("location")]).toEqual([421, null]);
  });

  test.each([
    "/SOCIAL/callback",
    "/social/callback;x=1",
    "/social/%63allback",
    "/social/callback%2f",
    "/social/callback%00",
  ])("to %s is not found", async (path) => {
    const back = await owner.agree(await owner.begin());
    const response = await fetch(`${service.url}${path}${back.search}`, {
      headers: { cookie: owner.cookie },
      redirect: "manual",
    });
    expect(response.status).toBe(404);
    await expectNothing();
  });

  test("as a form post is refused", async () => {
    const back = await owner.agree(await owner.begin());
    const response = await fetch(`${service.url}/social/callback${back.search}`, {
      method: "POST",
      headers: { cookie: owner.cookie },
    });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    await expectNothing();
  });

  test("leads only to the console afterwards", async () => {
    const page = await owner.begin("?next=https://evil.example&return_to=//evil.example");
    const back = changed(await owner.agree(page), (query) => {
      for (const name of ["next", "return_to", "redirect", "redirect_uri", "url", "location"])
        query.set(name, "https://evil.example");
    });
    const answer = await owner.follow(back, { referer: "https://evil.example/", "x-forwarded-host": "evil.example" });
    expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"]);
  });
});

describe("a response from another server", () => {
  test("is refused by its iss, without an exchange", async () => {
    const back = await owner.agree(await owner.begin());
    const mixedUp = changed(back, (query) => query.set("iss", "https://evil.example"));
    expect(await told(await owner.follow(mixedUp))).toBe(REFUSED);
    await expectNothing();
  });

  test.each([
    "<script>alert(1)</script>",
    "your account is locked, call 555-1234",
    "a\r\nset-cookie: x=1",
    "\u0000",
    "x".repeat(65),
  ])("is answered without its unknown error %j", async (error) => {
    const page = await owner.begin();
    const back = changed(await owner.agree(page, "acme_team", "cancel"), (query) => {
      query.set("error", error);
      query.set("error_description", "canary of a description");
      query.set("error_uri", "https://evil.example/canary");
    });
    const response = await owner.follow(back);
    const { detail } = (await response.clone().json()) as { detail: string };
    expect([await told(response), detail]).toEqual([
      REFUSED,
      "The network answered: unknown_error. Nothing was stored.",
    ]);
    expect(world.answers.join()).not.toContain("canary");
  });

  test("is answered without its known error if the state is missing", async () => {
    await owner.begin();
    const back = new URL(`${service.url}/social/callback?error=access_denied`);
    const response = await owner.follow(back);
    expect(((await response.json()) as { detail: string }).detail).toBe(
      "The state does not match. Nothing was stored.",
    );
  });
});

test("another account is refused, its grant is revoked, and its id is not exposed", async () => {
  await owner.follow(await owner.agree(await owner.begin()));
  const attacker = service.browser();
  const response = await attacker.follow(await attacker.agree(await attacker.begin(), "someone_else"));
  expect(await told(response)).toBe("403 wrong-account");
  const stranger = [...world.sandbox.x.people.values()].find(({ username }) => username === "someone_else")?.id ?? "";
  expect(world.answers.join()).not.toContain(stranger);
  expect([...world.sandbox.x.access.values()].filter(({ userId }) => userId === stranger)).toEqual([]);
  expect(await service.linked()).toBe("acme_team");
});

test("a program receives the linked account without tokens", async () => {
  const answer = await owner.follow(await owner.agree(await owner.begin()), { accept: "application/json" });
  expect(Object.keys((await answer.json()) as object).sort()).toEqual(["id", "name", "scopes", "username"]);
});
