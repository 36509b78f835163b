import { createAuthorizationCookie } from "../../../src/http/access/encrypted-cookie.ts";
import { revokeAll } from "../../../sandbox/x/tokens.ts";
import { authorize, type Running } from "../../harness/process.ts";
import { canary, type Canaries } from "./canaries.ts";
import { hunted } from "./search-bytes-for-secrets.ts";
import type { WatchedWorld } from "./watched-world.ts";

/** Credentials of the callers of a service, with the installation that they call. */
export interface Callers {
  readonly world: WatchedWorld;
  readonly canaries: Canaries;
  readonly token: string;
  readonly masterKey: Uint8Array;
}

const CLICK = { event: "click", domain: "go.example", short_code: "s", original_url: "https://shop.example/?q=1" };
const VISITOR = { ip: "203.0.113.7", user_agent: "Mozilla/5.0 (X11)" };

const TYPED = { "content-type": "application/json" };

/** Begins authorizations at X that end in each way: never completed, cancelled, refused tokens by X, and successful. */
export async function authorizeInAllWays(callers: Callers, service: Running): Promise<void> {
  const { world, canaries } = callers;
  const { faults } = world.sandbox;
  await giveUp(callers, service);
  faults.add({ network: "x", kind: "500", path: "/oauth2/token", count: 1 });
  for (const decision of ["cancel", "authorize", "authorize"]) {
    const { answer, callback, cookie } = await authorize(service, world.sandbox, "acme_team", decision);
    canaries.push(hunted("an authorization's cookie", cookie.replace(/^.*?=/, "")));
    await world.keepAnswer(`a callback after ${decision}`, answer);
    const again = await service.get(callback, { headers: { cookie } });
    await world.keepAnswer("a callback that came before", again);
  }
  await world.keepAnswer("/social/me", await service.get("/social/me"));
}

/**
 * Begins an authorization that is never completed. A caller who guesses the code or state of its callback learns
 * nothing.
 */
async function giveUp({ world, canaries, masterKey }: Callers, service: Running): Promise<void> {
  const begun = await service.get("/social/auth");
  const [pair = ""] = (begun.headers.get("set-cookie") ?? "").split(";");
  const value = pair.replace(/^.*?=/, "");
  const back = new Request(service.url, { headers: { cookie: pair } });
  const open = createAuthorizationCookie(masterKey, new URL(service.url), Date.now).read(back);
  if (open === undefined) throw new Error("the cookie does not open with this key");
  canaries.push(hunted("a state", open.state), hunted("a PKCE verifier", open.verifier));
  canaries.push(hunted("an authorization's cookie", value));
  await world.keepAnswer("/social/auth", begun, ["location", "set-cookie"]);
  const code = canary();
  canaries.push(hunted("a code that X never gave", code));
  for (const query of [`state=${open.state}&code=${code}`, `state=${code}&code=${code}`, `error=${code}`]) {
    const answer = await service.get(`/social/callback?${query}`, { headers: { cookie: pair } });
    await world.keepAnswer("a callback that was made up", answer);
  }
}

/**
 * Makes runs of all kinds: one that succeeds, one whose token is refused, one with a message in doubt, and one whose
 * grant is dead.
 */
export async function runInAllWays(callers: Callers, service: Running): Promise<void> {
  const { world, token } = callers;
  const { faults, x } = world.sandbox;
  const run = async (body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, prefer: "wait=300" };
    await world.keepAnswer("/social/run", await service.post("/social/run", body, headers));
  };
  await run({ dry_run: true });
  faults.add({ network: "x", kind: "reset_after_delivery", path: "/messages", count: 1 });
  await run({});
  // X has revoked the access token, so the run refreshes it; the first refresh fails because X is unavailable.
  x.access.clear();
  faults.add({ network: "x", kind: "502_html", path: "/oauth2/token", count: 1 });
  await run({});
  await world.keepAnswer("/social/me", await service.get("/social/me"));
  revokeAll(x);
  await run({});
  await world.keepAnswer("/social/me", await service.get("/social/me"));
}

/** Sends requests of all kinds, with credentials in the right and in wrong places. */
export async function askInAllWays({ world, canaries, token }: Callers, service: Running): Promise<void> {
  const wrong = canary();
  canaries.push(hunted("a wrong token", wrong));
  const post = async (path: string, body: BodyInit | object, headers: Record<string, string>): Promise<void> => {
    const text = typeof body === "string" || body instanceof URLSearchParams ? body : JSON.stringify(body);
    const answer = await fetch(service.url + path, { method: "POST", headers, body: text, redirect: "manual" });
    const [pair = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
    if (path === "/session" && answer.status === 303) {
      canaries.push(hunted("a session's cookie", pair.replace(/^.*?=/, "")));
      await world.keepAnswer("/", await service.get("/", { headers: { cookie: pair } }));
    }
    await world.keepAnswer(path, answer, path === "/session" ? ["set-cookie"] : []);
  };
  for (const authorization of [
    `Bearer ${token}`,
    `bearer ${token}`,
    `Bearer ${wrong}`,
    `Basic ${btoa(`a:${token}`)}`,
  ]) {
    const headers = { ...TYPED, authorization };
    await post("/api/messaging", { text: "hello" }, headers);
    await post("/api/tracking/test", {}, headers);
    await post("/api/notify", { message: "hello", service: "tests", level: "error" }, headers);
    await post(
      "/api/tracking/event",
      { ...CLICK, ...VISITOR },
      { ...headers, "idempotency-key": `"${authorization.length}"` },
    );
    // The answer must not repeat an invalid value, wherever the request has it.
    await post("/api/messaging", { text: 1, token, access_token: wrong }, headers);
    await post("/api/messaging", `{"text": "${token}`, headers);
  }
  await post(`/api/messaging?access_token=${token}`, { text: "hello" }, TYPED);
  await post(`/api/${token}`, {}, TYPED);
  await post("/api/messaging", { text: "hello" }, { ...TYPED, cookie: `token=${token}`, "x-api-key": wrong });
  await post("/api/messaging", "text=hello", { authorization: `Bearer ${token}`, "content-type": `text/${wrong}` });
  for (const given of [wrong, token]) await post("/session", new URLSearchParams({ token: given }), {});
  for (const path of ["/api/health", "/social/health", "/social/stats", `/?token=${token}`]) {
    await world.keepAnswer(path.slice(0, 3), await service.get(path, { headers: { traceparent: wrong } }));
  }
}
