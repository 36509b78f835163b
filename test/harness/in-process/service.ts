import { expect } from "bun:test";
import { loadConfig } from "../../../src/config/config.ts";
import { createLogger } from "../../../src/platform/logger.ts";
import { startSandbox, type Sandbox, type SandboxOptions } from "../../../sandbox/sandbox.ts";
import { settingsOf } from "../../../sandbox/service-settings.ts";
import { startService, type Service } from "../../../src/service/service.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Simulated browser of a person, with separate cookies. */
export interface Browser {
  /** Opens `/social/auth` and keeps the cookie. Returns the network's page. */
  begin(query?: string, headers?: Record<string, string>): Promise<URL>;
  /** Chooses an account and a decision on the network's consent page. Returns the URL to which the page redirects. */
  agree(page: URL, account?: string, decision?: string): Promise<URL>;
  /** Opens a URL of the service to which the network redirected, as a browser does that comes from another site. */
  follow(back: URL, headers?: Record<string, string>): Promise<Response>;
  cookie: string;
}

/** A service under test on a separate log, wired to the sandbox. */
export interface Deployment {
  readonly url: string;
  browser(): Browser;
  /** Returns the username of the linked account; undefined if none is linked. */
  linked(): Promise<string | undefined>;
  restart(): Promise<void>;
}

export interface ServiceHarness extends AsyncDisposable {
  readonly sandbox: Sandbox;
  deploy(more?: Record<string, string>): Promise<Deployment>;
  /** Number of authorization codes that the network exchanged for tokens. */
  exchanged(): number;
  /** Secret values that no answer of the service may contain. */
  secrets(): string[];
  /** Texts of all answers of the service so far, headers included. */
  readonly answers: string[];
}

export async function openService(sandboxOptions: SandboxOptions = {}): Promise<ServiceHarness> {
  await using stack = new AsyncDisposableStack();
  const sandbox = stack.use(await startSandbox({ port: 0, ...sandboxOptions }));
  const directory = stack.use(temporaryFolder());
  const answers: string[] = [];
  const seen = new Set<string>();
  const parts = stack.move();
  let deployments = 0;
  return {
    sandbox,
    answers,
    async deploy(more = {}) {
      const place = directory.file(`${++deployments}.sqlite`);
      const env = {
        ...settingsOf(sandbox),
        PORT: "0",
        DATABASE_URL: `sqlite:${place}`,
        MESSAGE_TEMPLATE: "Hi",
        ...more,
      };
      const running = parts.use(await startRunning(env));
      const deployment: Deployment = {
        get url() {
          return running.service.url;
        },
        browser: () => createBrowser(deployment, sandbox, answers, seen),
        async linked() {
          await running.service.projector.until(0);
          return running.service.projector.state("account").user?.username;
        },
        restart: running.restart,
      };
      return deployment;
    },
    exchanged: () => sandbox.x.grants.kept.filter(({ grant_type }) => grant_type === "authorization_code").length,
    secrets: () => [...seen, ...sandbox.x.access.keys(), ...sandbox.x.refresh.keys(), sandbox.x.clientSecret],
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

async function startRunning(
  env: Record<string, string>,
): Promise<AsyncDisposable & { service: Service; restart(): Promise<void> }> {
  const config = loadConfig(env, () => "");
  const start = () =>
    startService(
      config,
      createLogger("error", () => {}, Date.now),
    );
  const running = {
    service: await start(),
    async restart() {
      await running.service[Symbol.asyncDispose]();
      running.service = await start();
    },
    [Symbol.asyncDispose]: () => running.service[Symbol.asyncDispose](),
  };
  return running;
}

function createBrowser(to: Deployment, sandbox: Sandbox, answers: string[], seen: Set<string>): Browser {
  const ask = async (url: string, headers: Record<string, string> = {}): Promise<Response> => {
    // The cookie's name contains the port of its deployment. Another or a restarted deployment has another port, so the
    // name is adapted.
    const cookie = browser.cookie.replace(/^reachlog_oauth\w*=/, `reachlog_oauth_${new URL(url).port}=`);
    const sent = { ...(cookie === "" ? {} : { cookie }), ...headers };
    const response = await fetch(url, { headers: sent, redirect: "manual" });
    expect([response.headers.get("cache-control"), response.headers.get("referrer-policy")]).toEqual([
      "no-store",
      "no-referrer",
    ]);
    answers.push(JSON.stringify([...response.headers]) + (await response.clone().text()));
    return response;
  };
  const browser: Browser = {
    cookie: "",
    async begin(query = "", headers = {}) {
      const response = await ask(`${to.url}/social/auth${query}`, headers);
      // This answer contains secrets that are meant for the browser and the network, so it is not kept among the
      // answers to search.
      answers.pop();
      browser.cookie = response.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
      return new URL(response.headers.get("location") ?? "");
    },
    async agree(page, account = "acme_team", decision = "authorize") {
      const form = new URLSearchParams(page.search);
      form.set("account", [...sandbox.x.people.values()].find(({ username }) => username === account)?.id ?? "");
      form.set("decision", decision);
      const decided = await fetch(page.origin + page.pathname, { method: "POST", body: form, redirect: "manual" });
      const back = new URL(decided.headers.get("location") ?? "");
      for (const name of ["code", "state"])
        if (back.searchParams.has(name)) seen.add(back.searchParams.get(name) ?? "");
      return back;
    },
    follow: (back, headers) => ask(`${to.url}${back.pathname}${back.search}`, headers),
  };
  return browser;
}
