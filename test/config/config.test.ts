// These tests call the code directly.
import { isOfThisMachineOnly } from "../../src/config/http.ts";
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { formatVerifierKey, signingKeyOf } from "eventstore-lite/proof";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { inspect } from "node:util";
import { loadConfig } from "../../src/config/config.ts";
import { ServiceError } from "../../src/platform/service-error.ts";
import { describePaths } from "../../src/http/endpoints.ts";
import { TEMPLATE_NAME_CHARS_MAX, variables } from "../../src/config/schema.ts";
import { decodeUtf8 } from "../../src/platform/decode-utf8.ts";
import { secret, decodeKey } from "../../src/platform/secret.ts";

type Env = Record<string, string | undefined>;

const noFile = (path: string): string => {
  throw Object.assign(new Error(`no such file: ${path}`), { code: "ENOENT" });
};

const load = (env: Env, readFile = noFile) => loadConfig(env, readFile, describePaths);

function faultsOf(env: Env, readFile = noFile): string[] {
  try {
    loadConfig(env, readFile, describePaths);
  } catch (error) {
    if (error instanceof ServiceError && error.kind === "configuration") return error.message.split("\n");
    throw error;
  }
  return [];
}

const TOKEN = "0123456789abcdef0123";

describe("an empty environment", () => {
  test("gives the documented defaults", () => {
    const config = load({});
    expect(config.http).toEqual({
      host: "127.0.0.1",
      port: 3000,
      allowedHosts: [],
      publicUrl: "http://127.0.0.1:3000",
      authPolicy: "spec",
      openRoutes: [],
      tokens: [],
      tokensFile: undefined,
      trustedProxies: [],
      rateLimitPerMinute: 600,
      shutdownSeconds: 10,
    });
    expect(config.log).toEqual({
      kind: "sqlite",
      file: resolve("data/reachlog.sqlite"),
    });
    expect(config.outreach).toMatchObject({
      sources: ["list"],
      requireConsent: true,
      dailyLimit: 100,
      gapDays: 30,
      timezone: "UTC",
    });
    expect(config.outreach).toMatchObject({
      runMaxMinutes: 180,
      inDoubtSettleSeconds: 60,
    });
    for (const absent of [config.key, config.x, config.meta, config.chat, config.messaging])
      expect(absent).toBeUndefined();
    expect(config.digestAfterSeconds).toBe(30);
    expect([config.outreach.template, config.outreach.sendSpacingSeconds, config.retentionDays]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect([config.bots, config.logLevel]).toEqual(["dispatch", "info"]);
  });

  test("warns that the guarded endpoints answer 401", () => {
    expect(load({}).warnings).toEqual([expect.stringContaining("/api/messaging answer 401")]);
    expect(load({ API_TOKENS: `ops:${TOKEN}:scope=read` }).warnings).toEqual([]);
  });

  test("equals one with empty and blank values", () => {
    const blank = Object.fromEntries([...variables.keys()].map((name, index) => [name, index % 2 === 0 ? "" : "  "]));
    const shown = (env: Record<string, string>) => {
      const { outreachWith, ...config } = load(env);
      return { ...config, unchanged: outreachWith({}) };
    };
    expect(shown(blank)).toEqual(shown({}));
  });
});

test("all faults are listed together, one line each, with the variable and the expected value", () => {
  const lines = faultsOf({
    PORT: "70000",
    DAILY_LIMIT: "150",
    QUOTA_TIMEZONE: "Berlin",
    META_PIXEL_ID: "12",
    LOG_LEVEL: "loud",
  });
  expect(lines).toHaveLength(5);
  expect(lines.map((line) => line.split(":")[0] ?? "").toSorted()).toEqual([
    "DAILY_LIMIT",
    "LOG_LEVEL",
    "META_ACCESS_TOKEN",
    "PORT",
    "QUOTA_TIMEZONE",
  ]);
  for (const line of lines) expect(line).toContain("; wanted: ");
  expect(lines.join()).toContain(
    '"150" is not accepted; wanted: a whole number of direct messages a day from 1 to 100',
  );
});

describe("numbers and switches", () => {
  test.each(["99.9", "0x10", "1e2", "-1", "0", "101", "ten", "NaN", "100 messages"])(
    "DAILY_LIMIT=%s is refused",
    (value) => {
      expect(faultsOf({ DAILY_LIMIT: value })).toHaveLength(1);
    },
  );
  test.each([
    ["true", true],
    ["FALSE", false],
    ["1", true],
    ["no", false],
    ["evidence", "evidence"],
    ["Evidence", "evidence"],
  ] as const)("REQUIRE_CONSENT=%s is read as %p", (value, expected) => {
    expect(load({ REQUIRE_CONSENT: value }).outreach.requireConsent).toBe(expected);
  });
  test.each(["maybe", "2", "on off"])("REQUIRE_CONSENT=%s is refused", (value) => {
    expect(faultsOf({ REQUIRE_CONSENT: value })).toHaveLength(1);
  });
  test.each([
    ["Hör auf, no Tracking ,no tracking", ["hör auf", "no tracking"]],
    ["none", []],
    [undefined, ["stop tracking", "do not track", "don't track"]],
  ])("TRACKING_STOP_WORDS=%s is read as %j", (value, expected) => {
    const env = value === undefined ? {} : { TRACKING_STOP_WORDS: value };
    expect(load(env).outreach.trackingStopWords).toEqual(expected);
  });
  test("TRACKING_STOP_WORDS with a word of STOP_WORDS is refused", () => {
    expect(faultsOf({ TRACKING_STOP_WORDS: "no tracking,STOP" })).toEqual([
      expect.stringContaining('"stop" is in STOP_WORDS too'),
    ]);
  });
});

describe("secrets", () => {
  const faulty: Env = {
    API_TOKENS: "ops:hunter2,weird:ab cd efghijklmnopqrst",
    REACHLOG_KEY: "hunter2-key",
    X_CLIENT_SECRET: "hunter2 secret",
    META_ACCESS_TOKEN: "hunter2 meta",
    TELEGRAM_BOT_TOKEN: "hunter2/telegram",
    CHAT_WEBHOOK_URL: "http://chat.example/hunter2",
    DATABASE_URL: "postgres://user:hunter2@db/reachlog",
    X_API_URL: "https://user:hunter2@api.example",
  };

  test("are not shown in a fault", () => {
    const message = faultsOf(faulty).join("\n");
    for (const name of Object.keys(faulty)) expect(message).toContain(`${name}: `);
    expect(message).not.toMatch(/hunter2|ab cd/);
  });

  test("are not shown in a printed or serialized Config", () => {
    const config = load({
      API_TOKENS: `ops:${TOKEN}`,
      REACHLOG_KEY: "A".repeat(43),
      X_CLIENT_ID: "id",
      X_CLIENT_SECRET: "s3cret-x",
      META_PIXEL_ID: "1",
      META_ACCESS_TOKEN: "s3cret-meta",
      CHAT_WEBHOOK_URL: "https://hooks.slack.com/services/T/B/s3cret-chat",
      TELEGRAM_BOT_TOKEN: "1:s3cret-bot",
      TELEGRAM_CHAT_ID: "-100",
    });
    const others = [
      { MESSAGING_PROVIDER: "line", LINE_CHANNEL_ACCESS_TOKEN: "s3cret-line", LINE_TO: `U${"0".repeat(32)}` },
      {
        MESSAGING_PROVIDER: "whatsapp",
        WHATSAPP_ACCESS_TOKEN: "s3cret-whatsapp",
        WHATSAPP_PHONE_NUMBER_ID: "1",
        WHATSAPP_TO: "15550783881",
      },
      { CHAT_PROVIDER: "teams", CHAT_WEBHOOK_URL: "https://a.logic.azure.com/workflows/b/paths/invoke?sig=s3cret" },
    ].map((env) => load(env));
    const printed = [
      inspect(config, { depth: 9, showHidden: true }),
      Bun.inspect(config, { depth: 9 }),
      JSON.stringify(config),
      Bun.inspect(others, { depth: 9 }),
      String(config.x?.clientSecret),
    ].join();
    expect(printed).not.toMatch(/s3cret|AAAAAA|0123456789abcdef0123/);
    expect(printed).toContain("[redacted]");
    expect(config.chat?.webhookUrl.reveal()).toBe("https://hooks.slack.com/services/T/B/s3cret-chat");
    expect(config.messaging?.provider === "telegram" && config.messaging.botToken.reveal()).toBe("1:s3cret-bot");
  });

  test("reveal their value by reveal() only", () => {
    const value = secret("s3cret");
    expect(value.reveal()).toBe("s3cret");
    expect([String(value), JSON.stringify({ value }), inspect(value)].join()).not.toContain("s3cret");
  });
});

describe("API_TOKENS", () => {
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");

  test("accepts tokens and hashes, and keeps hashes only", () => {
    const other = "f".repeat(64);
    expect(
      load({
        API_TOKENS: ` ops:${TOKEN} , ci.bot:sha256:${other.toUpperCase()},`,
      }).http.tokens,
    ).toEqual([
      { name: "ops", sha256 },
      { name: "ci.bot", sha256: other },
    ]);
  });

  test("accepts two tokens of one name", () => {
    expect(load({ API_TOKENS: `ops:${TOKEN},ops:${TOKEN}x` }).http.tokens.map(({ name }) => name)).toEqual([
      "ops",
      "ops",
    ]);
  });

  test.each([
    [TOKEN, "has no name"],
    ["ops:short", "fewer than 16"],
    [`ops:${"x".repeat(513)}`, "more than 512"],
    [`o p s:${TOKEN}`, "the name is not"],
    [`ops:${TOKEN}:more`, "Bearer header cannot carry"],
    ["ops:sha256:abc", "not 64 hex digits"],
    [`a:${TOKEN},b:${TOKEN}`, "entry 2 repeats the token of another name"],
    [`a:${TOKEN},b:sha256:${sha256}`, "entry 2 repeats the token of another name"],
    [`ops:${TOKEN}:scope=`, "entry 1: a scope is none of track, notify, run, recipients, read, admin"],
    [`ops:${TOKEN}:scope=read+everything`, "entry 1: a scope is none of"],
    [`ops:${TOKEN}:scope=toString`, "entry 1: a scope is none of"],
    [`ops:${TOKEN}:scope=read:scope=admin`, "entry 1: repeats a part"],
    [`ops:${TOKEN}:scopes=read`, "entry 1: has a part other than scope=, expires= and links="],
    [`ops:${TOKEN}:expires=`, "entry 1: expires= is neither a day nor a time"],
    [`ops:${TOKEN}:expires=1970`, "entry 1: expires= is neither a day nor a time"],
    [`ops:${TOKEN}:expires=2027-02-30`, "entry 1: expires= is neither a day nor a time"],
    [`ops:${TOKEN}:expires=2027-02-24T00:00:00+01:00`, "entry 1: expires= is neither a day nor a time"],
    [`ops:${TOKEN}:scope=track:links=go.example+`, "entry 1: links= does not hold 1 to 20 domains"],
    [`ops:${TOKEN}:scope=track:links=https://go.example`, "entry 1: links= does not hold 1 to 20 domains"],
    [`ops:${TOKEN}:scope=read:links=go.example`, "entry 1: links= narrows the scope track, which it lacks"],
    [`ops:${TOKEN}:links=go.example`, "entry 1: links= narrows the scope track, which it lacks"],
    [`ops:scope=read`, "entry 1: has no token"],
    [
      `ops:${TOKEN}:scope=read,ops:${TOKEN}:scope=admin`,
      "entry 2 repeats the token of an earlier entry with other rights",
    ],
  ])("%s is refused", (value, problem) => {
    const [fault = "", ...others] = faultsOf({ API_TOKENS: value });
    expect([fault, others]).toEqual([expect.stringContaining(problem), []]);
    expect(fault).not.toContain(TOKEN);
  });

  test("limits a token by scopes, expiry and links", () => {
    const value = `ops:${TOKEN}:scope=track+read:expires=2027-02-24T00:00:00Z:links=go.example+SHO.rt:8080,web:sha256:${"f".repeat(64)}:expires=2027-02-24`;
    const expiresAt = Date.parse("2027-02-24T00:00:00Z");
    expect(load({ API_TOKENS: value }).http.tokens).toEqual([
      { name: "ops", sha256, scopes: ["track", "read"], expiresAt, links: ["go.example", "sho.rt:8080"] },
      { name: "web", sha256: "f".repeat(64), expiresAt: expiresAt + 86_400_000 },
    ]);
  });

  test("causes a warning with the names of tokens without scopes, also from the file", () => {
    const web = `web:sha256:${"f".repeat(64)}`;
    const file = { API_TOKENS_FILE: "tokens" };
    expect(load({ API_TOKENS: `ops:${TOKEN},ci:${TOKEN}x:scope=read`, ...file }, () => web).warnings).toEqual([
      expect.stringContaining("the tokens of ops, web may do everything"),
    ]);
    expect(load({ API_TOKENS: `ops:${TOKEN}:scope=admin`, ...file }, () => `${web}:scope=track`).warnings).toEqual([]);
  });
});

describe("API_TOKENS_FILE", () => {
  const FILE = { API_TOKENS_FILE: "tokens" };
  const other = `web:sha256:${"f".repeat(64)}`;

  test("is read in addition to API_TOKENS, one token per line, without comments", () => {
    const { tokens, tokensFile } = load(
      { ...FILE, API_TOKENS: `ops:${TOKEN}` },
      () => `# ours\r\n\r\n ${other}\n`,
    ).http;
    expect(tokens.map(({ name }) => name)).toEqual(["ops", "web"]);
    expect(tokensFile).toEqual({ path: "tokens", fixed: tokens.slice(0, 1) });
  });

  test.each([
    ["", "holds no token"],
    ["# none\n", "holds no token"],
    [`${other}\nweb:short`, "line 2: the token has fewer than 16"],
    [`web:${TOKEN}`, "line 1 repeats the token of another name"],
    [`Anonymous:${TOKEN}x`, "line 1: the name anonymous is reserved in the log: choose another one"],
    [`${other}\n`.repeat(501), "holds 501 tokens"],
  ])("is refused if it contains %j", (content, problem) => {
    expect(faultsOf({ ...FILE, API_TOKENS: `ops:${TOKEN}` }, () => content)).toEqual([
      expect.stringContaining(problem),
    ]);
  });

  test("is enough for the policy strict, and must exist", () => {
    expect(load({ ...FILE, AUTH_POLICY: "strict" }, () => other).http.tokens).toHaveLength(1);
    expect(faultsOf({ ...FILE, AUTH_POLICY: "strict" })).toEqual([
      expect.stringContaining('/tokens" cannot be read (ENOENT)'),
    ]);
  });
});

test("every database URL in docs/deploy.md is valid", () => {
  const text = readFileSync(new URL("../../docs/deploy.md", import.meta.url), "utf8");
  const urls = [...text.replaceAll(/\$\([^)]*\)/g, "hunter2").matchAll(/postgres:\/\/[^\s"]+@[^\s"]+/g)];
  expect(urls.length).toBeGreaterThan(1);
  for (const [DATABASE_URL] of urls) {
    expect(loadConfig({ DATABASE_URL, REACHLOG_KEY: "A".repeat(43) }, () => "").log.kind).toBe("postgres");
  }
});

test("API_TOKENS without a token is refused", () => {
  expect(faultsOf({ API_TOKENS: " , " })).toEqual([expect.stringContaining("holds no token")]);
});

describe("TRUSTED_PROXIES", () => {
  test.each(["127.0.0.1", "::1, 10.0.0.0/8", "fd00::/8"])("accepts %j", (TRUSTED_PROXIES) => {
    expect(load({ TRUSTED_PROXIES }).http.trustedProxies.join(", ")).toBe(TRUSTED_PROXIES);
  });
  test.each(["proxy.example", "10.0.0.0/33", "::1/129", "10.0.0.1/8/8", "10.0.0.1:80", "*"])(
    "refuses %j",
    (TRUSTED_PROXIES) => {
      expect(faultsOf({ TRUSTED_PROXIES })).toEqual([expect.stringContaining("is no address")]);
    },
  );
  test("causes a warning if missing with an https PUBLIC_URL", () => {
    const env = { PUBLIC_URL: "https://reach.example", AUTH_POLICY: "strict", API_TOKENS: `ops:${TOKEN}:scope=read` };
    expect(load(env).warnings).toEqual([
      "PUBLIC_URL is https, so a proxy is in front: without TRUSTED_PROXIES all its callers count as one address. They " +
        "share RATE_LIMIT_PER_MINUTE, and after ten wrong tokens a minute further wrong ones get 429. A valid token always passes.",
    ]);
    expect(load({ ...env, TRUSTED_PROXIES: "127.0.0.1" }).warnings).toEqual([]);
  });
});

describe("AUTH_POLICY", () => {
  test.each(["127.0.0.1", "127.9.9.9", "localhost", "::1"])("is spec on %s", (HOST) => {
    expect(load({ HOST }).http.authPolicy).toBe("spec");
  });
  test.each(["0.0.0.0", "::", "10.0.0.5", "reach.example"])("is strict on %s, and needs a token", (HOST) => {
    expect(load({ HOST, API_TOKENS: `ops:${TOKEN}` }).http.authPolicy).toBe("strict");
    expect(faultsOf({ HOST })).toEqual([expect.stringMatching(/^API_TOKENS: missing, but HOST .* can be reached/)]);
  });
  test("may be set to spec on another address, with a warning", () => {
    const config = load({
      HOST: "0.0.0.0",
      AUTH_POLICY: "spec",
      API_TOKENS: `ops:${TOKEN}:scope=read`,
    });
    expect(config.http.authPolicy).toBe("spec");
    expect(config.warnings).toEqual([expect.stringContaining("AUTH_POLICY=spec on 0.0.0.0")]);
  });
  test.each([
    { PUBLIC_URL: "https://reach.example", TRUSTED_PROXIES: "127.0.0.1" },
    { PUBLIC_URL: "https://reach.example", TRUSTED_PROXIES: "127.0.0.1", AUTH_POLICY: "spec" },
    { TRUSTED_PROXIES: "127.0.0.1" },
  ])("spec on loopback causes a warning behind a proxy: %o", (env) => {
    const tokens = { API_TOKENS: `ops:${TOKEN}:scope=read` };
    expect(load({ ...env, ...tokens }).warnings).toEqual([expect.stringContaining("AUTH_POLICY=strict requires")]);
    expect(load({ ...env, ...tokens, AUTH_POLICY: "strict" }).warnings).toEqual([]);
  });
  test.each([
    [{}, true],
    [{ PUBLIC_URL: "http://localhost:3000" }, true],
    [{ PUBLIC_URL: "https://reach.example" }, false],
    [{ ALLOWED_HOSTS: "reach.example:443" }, false],
    [{ TRUSTED_PROXIES: "127.0.0.1" }, false],
    [{ HOST: "0.0.0.0", AUTH_POLICY: "spec" }, false],
  ])("with %o the service is for this machine only: %j", (env, isOnly) => {
    expect(isOfThisMachineOnly(load(env).http)).toBe(isOnly);
  });
  test("strict needs X_ACCOUNT if X is configured", () => {
    const env = {
      AUTH_POLICY: "strict",
      API_TOKENS: `ops:${TOKEN}`,
      X_CLIENT_ID: "id",
      MESSAGE_TEMPLATE: "hi",
    };
    expect(faultsOf(env)).toEqual([expect.stringMatching(/^X_ACCOUNT: missing/)]);
    expect(load({ ...env, X_ACCOUNT: "@Ann_B" }).x?.account).toBe("ann_b");
  });
  test("X_ACCOUNT_OWNS_APP is false by default", () => {
    const env = { X_CLIENT_ID: "id", MESSAGE_TEMPLATE: "hi" };
    expect(load(env).x?.accountOwnsApp).toBe(false);
    expect(load({ ...env, X_ACCOUNT_OWNS_APP: "true" }).x?.accountOwnsApp).toBe(true);
  });
  test("strict lists a faulty token once, not as missing too", () => {
    expect(faultsOf({ AUTH_POLICY: "strict", API_TOKENS: "ops:short" })).toHaveLength(1);
  });
});

describe("OPEN_ROUTES", () => {
  const strict = { AUTH_POLICY: "strict", API_TOKENS: `ops:${TOKEN}` };
  test("accepts known paths", () => {
    expect(load({ ...strict, OPEN_ROUTES: "/api/tracking/event, /social/stats" }).http.openRoutes).toEqual([
      "/api/tracking/event",
      "/social/stats",
    ]);
  });
  test.each(["/api/trackin", "api/notify", "/api/notify/", "*"])("refuses %s, which is no route", (OPEN_ROUTES) => {
    expect(faultsOf({ ...strict, OPEN_ROUTES })).toEqual([expect.stringContaining("is no route")]);
  });
  test.each(["/api/messaging", "/api/tracking/test"])("refuses %s, which always needs a token", (OPEN_ROUTES) => {
    expect(faultsOf({ ...strict, OPEN_ROUTES })).toEqual([expect.stringContaining("always needs a token")]);
  });
});

describe("addresses", () => {
  test.each([
    [{ PUBLIC_URL: "https://Reach.Example/" }, "https://reach.example"],
    [{ PUBLIC_URL: "https://reach.example:8443" }, "https://reach.example:8443"],
    [{ HOST: "::1", PORT: "80" }, "http://[::1]:80"],
  ])("%o gives the origin %s", (env, expected) => {
    expect(load(env).http.publicUrl).toBe(expected);
  });
  test.each([
    "reach.example",
    "https://reach.example/app",
    "ftp://reach.example",
    "https://reach.example/?a",
    "https://u@reach.example",
    "https://",
    "https:reach.example",
  ])("PUBLIC_URL=%s is refused", (PUBLIC_URL) => {
    expect(faultsOf({ PUBLIC_URL })).toEqual([expect.stringContaining("not a plain origin")]);
  });
  test("a plain http PUBLIC_URL for another machine causes a warning", () => {
    expect(
      load({ AUTH_POLICY: "strict", API_TOKENS: `ops:${TOKEN}:scope=read`, PUBLIC_URL: "http://reach.example" })
        .warnings,
    ).toEqual([expect.stringContaining("plain http")]);
  });
  test.each([
    "X_API_URL",
    "X_AUTHORIZE_URL",
    "META_API_URL",
    "TELEGRAM_API_URL",
    "LINE_API_URL",
    "WHATSAPP_API_URL",
    "CHAT_WEBHOOK_URL",
  ])("%s accepts https, and http only to this machine", (name) => {
    for (const good of ["http://127.0.0.1:9/x", "http://localhost:9", "http://[::1]:9", "https://api.example/v1/"])
      expect(faultsOf({ [name]: good })).toEqual([]);
    for (const bad of [
      "http://api.example",
      "http://127.0.0.1.evil.example",
      "ftp://api.example",
      "api.example",
      "https://a:b@api.example",
      "https://a@api.example",
      "https://api.example/?t=1",
      "https://a b",
    ]) {
      expect(faultsOf({ [name]: bad })).not.toEqual([]);
    }
  });
  test("a base URL loses its trailing slash", () => {
    expect(load({ X_CLIENT_ID: "id", X_API_URL: "https://api.example/v1/" }).x?.apiUrl).toBe("https://api.example/v1");
    expect(load({ X_CLIENT_ID: "id", X_API_URL: "https://api.example" }).x?.apiUrl).toBe("https://api.example");
  });
  test("ALLOWED_HOSTS accepts host names with or without a port", () => {
    expect(load({ ALLOWED_HOSTS: "Reach.Example, 10.0.0.5:8080,[::1]:80" }).http.allowedHosts).toEqual([
      "reach.example",
      "10.0.0.5:8080",
      "[::1]:80",
    ]);
    expect(load({ ALLOWED_HOSTS: "reachlog,FD00:0:0::A" }).http.allowedHosts).toEqual(["reachlog", "[fd00::a]"]);
    for (const bad of ["https://reach.example", "*", "reach.example/x", "a b", "fe80::1%eth0"])
      expect(faultsOf({ ALLOWED_HOSTS: bad })).toHaveLength(1);
  });
});

test.each(["data/reachlog.sqlite", "./data/reachlog.vault.sqlite", "data/reachlog.key"])(
  "KEYS_FILE=%s, a file of the log itself, is refused",
  (KEYS_FILE) => {
    const DATABASE_URL = "sqlite:./data/reachlog.sqlite";
    expect(faultsOf({ DATABASE_URL, KEYS_FILE })).toEqual([expect.stringContaining("KEYS_FILE: that file belongs")]);
    expect(load({ DATABASE_URL, KEYS_FILE: "data/reachlog.keys.sqlite" }).log).toMatchObject({
      keysFile: resolve("data/reachlog.keys.sqlite"),
    });
  },
);

describe("DATABASE_URL", () => {
  test.each([
    ["sqlite:./a.db", resolve("a.db")],
    ["sqlite:/var/a.db", "/var/a.db"],
    ["sqlite:///var/a.db", "/var/a.db"],
  ])("%s names the file %s", (DATABASE_URL, file) => {
    expect(load({ DATABASE_URL }).log).toEqual({ kind: "sqlite", file });
  });
  test.each([
    ["mysql://localhost/x", "not the address"],
    ["sqlite:", "not the address"],
    ["./a.db", "not the address"],
    ["sqlite::memory:", "in memory"],
    ["sqlite:a.db?mode=ro", "plain file path"],
    ["sqlite:data/", "plain file path"],
  ])("%s is refused", (DATABASE_URL, problem) => {
    expect(faultsOf({ DATABASE_URL })).toEqual([expect.stringContaining(problem)]);
  });
});

describe("a DATABASE_URL of PostgreSQL", () => {
  const REACHLOG_KEY = "A".repeat(43);
  test.each([
    ["postgres://ann:hunter2@db.example/x?sslmode=verify-full", "postgres://db.example/x"],
    ["postgresql://ann:hunter2@db.example:6432/x?sslmode=verify-full", "postgres://db.example:6432/x"],
    ["postgres://ann:hunter2@127.0.0.1:5433/x", "postgres://127.0.0.1:5433/x"],
    ["postgres://localhost/x?sslmode=disable", "postgres://localhost/x"],
    ["postgres://db.example/x?sslmode=verify-full&sslrootcert=/etc/ca.pem", "postgres://db.example/x"],
    ["postgres://ann:hunter2@a.example,b.example:5433/x?sslmode=verify-full", "postgres://a.example,b.example:5433/x"],
  ])("%s is shown as %s, without the password", (DATABASE_URL, shown) => {
    const { log } = load({ DATABASE_URL, REACHLOG_KEY });
    expect(log).toMatchObject({ kind: "postgres", shown });
    expect(log.kind === "postgres" && log.url.reveal()).toBe(DATABASE_URL);
    expect(Bun.inspect(log) + JSON.stringify(log)).not.toContain("hunter2");
  });
  test.each([
    ["postgres://ann:hunter2@db.example/x", "sslmode=verify-full"],
    ["postgres://ann:hunter2@db.example/x?sslmode=require", "sslmode=verify-full"],
    ["postgres://ann:hunter2@192.0.2.1/x?sslmode=verify-ca", "sslmode=verify-full"],
    ["postgres://ann:hunter2@localhost,db.example/x", "sslmode=verify-full"],
    ["postgres://ann:hunter2@localhost,/x", "not the URL of a database"],
    ["postgres://ann:hunter2@localhost", "names no database"],
    ["postgres://ann:hunter2@localhost/", "names no database"],
    ["postgres:ann:hunter2@localhost/x", "not the URL of a database"],
    ["postgres://ann:hunter2@localhost:hunter2/x", "not the URL of a database"],
    ["postgres:///x", "not the URL of a database"],
    ["postgres://ann:hunter2@localhost/x?options=-c%20fsync=off", "other than sslmode"],
    ["postgres://ann:hunter2@localhost/x#hunter2", "other than sslmode"],
    ["postgres://ann:5/hunter2@db.example/x?sslmode=verify-full", "a slash or an @"],
  ])("%s is refused", (DATABASE_URL, problem) => {
    const faults = faultsOf({ DATABASE_URL, REACHLOG_KEY });
    expect(faults).toEqual([expect.stringContaining(problem)]);
    expect(faults.join()).not.toContain("hunter2");
  });
  test("needs the master key, and refuses KEYS_FILE", () => {
    const DATABASE_URL = "postgres://localhost/x";
    expect(faultsOf({ DATABASE_URL })).toEqual([expect.stringMatching(/^REACHLOG_KEY: missing/)]);
    expect(faultsOf({ DATABASE_URL, REACHLOG_KEY: "short" })).toEqual([
      expect.stringMatching(/^REACHLOG_KEY: not a key/),
    ]);
    expect(faultsOf({ DATABASE_URL, REACHLOG_KEY, KEYS_FILE: "keys.sqlite" })).toEqual([
      expect.stringMatching(/^KEYS_FILE: /),
    ]);
  });
  test("allows a separate database for the keys of personal data", () => {
    const DATABASE_URL = "postgres://localhost/x";
    const KEYS_DATABASE_URL = "postgres://ann:hunter2@db.example/keys?sslmode=verify-full";
    const shownOf = (env: Record<string, string>) => {
      const { log } = load({ DATABASE_URL, REACHLOG_KEY, ...env });
      return log.kind === "postgres" && [log.shown, log.keys.shown];
    };
    expect(shownOf({})).toEqual(["postgres://localhost/x", "postgres://localhost/x"]);
    expect(shownOf({ KEYS_DATABASE_URL })).toEqual(["postgres://localhost/x", "postgres://db.example/keys"]);
    for (const wrong of ["postgres://ann:hunter2@db.example/keys", "sqlite:keys.sqlite"]) {
      const faults = faultsOf({ DATABASE_URL, REACHLOG_KEY, KEYS_DATABASE_URL: wrong });
      expect(faults).toEqual([expect.stringMatching(/^KEYS_DATABASE_URL: /)]);
      expect(faults.join()).not.toContain("hunter2");
    }
    expect(faultsOf({ KEYS_DATABASE_URL })).toEqual([
      expect.stringMatching(/^KEYS_DATABASE_URL: has no effect on a log in a file/),
    ]);
  });
});

describe("REACHLOG_KEY", () => {
  const bytes = Uint8Array.from({ length: 32 }, (_, index) => index * 7);
  const forms = ["hex", "base64", "base64url"] as const;
  test.each(forms)("accepts 32 bytes as %s", (form) => {
    const text = Buffer.from(bytes).toString(form);
    expect(decodeKey(load({ REACHLOG_KEY: text }).key?.reveal() ?? "")).toEqual(bytes);
  });
  test.each([
    "short",
    "0".repeat(63),
    "A".repeat(42),
    "A".repeat(45),
    "!".repeat(43),
    "correct horse battery staple correct horse b",
  ])("%s is refused", (REACHLOG_KEY) => {
    expect(faultsOf({ REACHLOG_KEY })).toHaveLength(1);
  });
});

describe("parameters of the redirect", () => {
  const env = { REDIRECTS: "on", CLICK_PARAM: "rl_click", PASS_QUERY: "utm_*, gclid" };

  test("are read, and have no effect without it", () => {
    expect(load(env).links).toMatchObject({ clickParam: "rl_click", passQuery: ["utm_*", "gclid"] });
    expect(load({}).links).toMatchObject({ clickParam: undefined, passQuery: [] });
    expect(load({ ...env, REDIRECTS: "off" }).warnings).toEqual(
      expect.arrayContaining(["CLICK_PARAM", "PASS_QUERY"].map((name) => `${name} has no effect: REDIRECTS is off.`)),
    );
  });

  test.each([
    ["CLICK_PARAM", "rl click"],
    ["CLICK_PARAM", "rl_*"],
    ["PASS_QUERY", "*"],
    ["PASS_QUERY", "utm_*,*"],
    ["PASS_QUERY", "a*b"],
  ])("are refused: %s=%s", (name, value) => {
    expect(faultsOf({ ...env, [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
  });
});

describe("a half-configured credential", () => {
  test.each([
    ["META_PIXEL_ID", "1", "META_ACCESS_TOKEN"],
    ["META_ACCESS_TOKEN", "t", "META_PIXEL_ID"],
    ["TELEGRAM_BOT_TOKEN", "1:a", "TELEGRAM_CHAT_ID"],
    ["TELEGRAM_CHAT_ID", "@reach", "TELEGRAM_BOT_TOKEN"],
    ["X_CLIENT_SECRET", "s", "X_CLIENT_ID"],
    ["X_ACCOUNT", "ann", "X_CLIENT_ID"],
    ["X_ACCOUNT_OWNS_APP", "true", "X_CLIENT_ID"],
  ])("is refused for %s alone", (name, value, missing) => {
    expect(faultsOf({ [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^${missing}: missing, but ${name} is set`)),
    ]);
  });

  const to = `U${"0".repeat(32)}`;
  test.each([
    ["line", { LINE_CHANNEL_ACCESS_TOKEN: "t" }, ["LINE_TO"]],
    ["line", { LINE_TO: to }, ["LINE_CHANNEL_ACCESS_TOKEN"]],
    ["whatsapp", { WHATSAPP_TO: "+15550783881" }, ["WHATSAPP_ACCESS_TOKEN", "WHATSAPP_PHONE_NUMBER_ID"]],
    ["whatsapp", { WHATSAPP_ACCESS_TOKEN: "t", WHATSAPP_PHONE_NUMBER_ID: "1" }, ["WHATSAPP_TO"]],
  ])("is refused for %s with %j", (MESSAGING_PROVIDER, env, missing) => {
    const set = Object.keys(env)[0];
    expect(faultsOf({ MESSAGING_PROVIDER, ...env })).toEqual(
      missing.map((name) => expect.stringMatching(new RegExp(`^${name}: missing, but ${set} is set; wanted: all of`))),
    );
  });
});

describe("the provider of a channel", () => {
  const telegram = { TELEGRAM_BOT_TOKEN: "1:a", TELEGRAM_CHAT_ID: "-100" };
  const line = { LINE_CHANNEL_ACCESS_TOKEN: "t", LINE_TO: `C${"a".repeat(32)}` };
  const whatsapp = { WHATSAPP_ACCESS_TOKEN: "t", WHATSAPP_PHONE_NUMBER_ID: "12", WHATSAPP_TO: "+15550783881" };
  const webhooks = {
    slack: "https://hooks.slack.com/services/T0/B0/s3cret",
    discord: "https://discord.com/api/webhooks/12/s3cret-x_Y?thread_id=34",
    google_chat: "https://chat.googleapis.com/v1/spaces/AAA/messages?key=k&token=s3cret%3D",
    teams:
      "https://a.1.environment.api.powerplatform.com/powerautomate/workflows/b/triggers/manual/paths/invoke?sig=s3cret",
  };
  const chats = Object.entries(webhooks);

  test("for messaging uses its own settings and the network's address", () => {
    expect(load(telegram).messaging).toMatchObject({ provider: "telegram", apiUrl: "https://api.telegram.org" });
    const withLine = load({ MESSAGING_PROVIDER: "line", ...line });
    expect(withLine.messaging).toMatchObject({ provider: "line", to: line.LINE_TO, apiUrl: "https://api.line.me" });
    expect(load({ MESSAGING_PROVIDER: "whatsapp", ...whatsapp }).messaging).toMatchObject({
      provider: "whatsapp",
      phoneNumberId: "12",
      to: "+15550783881",
      apiUrl: "https://graph.facebook.com",
    });
  });

  test("causes a warning for each of its settings if it was not chosen", () => {
    const { messaging, warnings } = load({ ...telegram, LINE_TO: line.LINE_TO, WHATSAPP_API_URL: "https://a.example" });
    expect(messaging?.provider).toBe("telegram");
    expect(warnings).toContain("LINE_TO has no effect: MESSAGING_PROVIDER is telegram.");
    expect(warnings).toContain("WHATSAPP_API_URL has no effect: MESSAGING_PROVIDER is telegram.");
    const other = load({ MESSAGING_PROVIDER: "line", ...telegram }).warnings;
    expect(other).toContain("TELEGRAM_BOT_TOKEN has no effect: MESSAGING_PROVIDER is line.");
    expect(load(telegram).warnings.join()).not.toContain("no effect");
  });

  test("causes a warning if it was chosen without a credential", () => {
    expect(load({ CHAT_PROVIDER: "teams" }).warnings).toContain(
      "CHAT_PROVIDER has no effect: CHAT_WEBHOOK_URL is not set.",
    );
    const { messaging, warnings } = load({ MESSAGING_PROVIDER: "line" });
    expect(messaging).toBeUndefined();
    expect(warnings).toContain("MESSAGING_PROVIDER has no effect: LINE_CHANNEL_ACCESS_TOKEN and LINE_TO are not set.");
  });

  test.each(["15550783881", "+15550783881", "BR.1543", "US.aZ9", "US.ENT.118", `GB.${"1".repeat(128)}`])(
    "accepts %s as a recipient of WhatsApp",
    (to) => {
      expect(load({ MESSAGING_PROVIDER: "whatsapp", ...whatsapp, WHATSAPP_TO: to }).messaging).toMatchObject({ to });
    },
  );

  test.each([
    ["LINE_TO", "U12"],
    ["LINE_CHANNEL_ACCESS_TOKEN", "a b"],
    ["WHATSAPP_TO", "call me"],
    ["WHATSAPP_TO", "br.15"],
    ["WHATSAPP_TO", "BRA.15"],
    ["WHATSAPP_TO", "BR.15-7"],
    ["WHATSAPP_TO", `BR.${"1".repeat(129)}`],
    ["WHATSAPP_PHONE_NUMBER_ID", "+1"],
  ])("refuses %s=%s, and does not show a recipient", (name, value) => {
    const [fault, ...more] = faultsOf({ MESSAGING_PROVIDER: "line", ...line, ...whatsapp, [name]: value });
    expect(fault).toStartWith(`${name}: `);
    expect(more).toEqual([]);
    if (name.endsWith("_TO")) expect(fault).not.toContain(value);
  });

  test.each(chats)("for chat accepts a complete webhook of %s", (provider, url) => {
    const { chat } = load({ CHAT_PROVIDER: provider, CHAT_WEBHOOK_URL: url });
    expect(chat?.provider).toBe(provider as "slack");
    expect(chat?.webhookUrl.reveal()).toBe(url);
  });

  test("for messaging applies CHAT_DIGEST_AFTER_SECONDS without a chat too", () => {
    const telegram = { TELEGRAM_BOT_TOKEN: "1:abc", TELEGRAM_CHAT_ID: "-5" };
    const config = load({ ...telegram, CHAT_DIGEST_AFTER_SECONDS: "7" });
    expect([config.chat, config.digestAfterSeconds]).toEqual([undefined, 7]);
  });

  test.each(chats)("for chat refuses a webhook of %s for the other networks", (provider, url) => {
    for (const [other] of chats.filter(([name]) => name !== provider)) {
      const faults = faultsOf({ CHAT_PROVIDER: other, CHAT_WEBHOOK_URL: url });
      expect(faults.join()).toContain(`CHAT_WEBHOOK_URL: an address of ${provider}, but CHAT_PROVIDER is ${other}`);
      expect(faults.join()).not.toContain("s3cret");
    }
  });

  test.each([
    ["slack", "https://chat.example/hooks?token=s3cret", "holds a query"],
    ["discord", "https://discord.com/channels/12/s3cret", "not the address of a discord webhook"],
    [
      "google_chat",
      "https://chat.googleapis.com/v1/spaces/AAA/messages?key=s3cret",
      "not the address of a google_chat",
    ],
    ["slack", "https://hooks.slack.com/triggers/T1/2/s3cret", "not the address of a slack webhook"],
    ["slack", "https://hooks.slack.com/workflows/T1/A2/s3cret", "not the address of a slack webhook"],
    ["teams", "https://a.logic.azure.com/workflows/s3cret/triggers/manual/paths/invoke", "not the address of a teams"],
    ["teams", "https://acme.webhook.office.com/webhookb2/s3cret", "which Microsoft has turned off"],
    ["teams", "http://a.example/paths/invoke?sig=s3cret", "plain http to another machine"],
    ["discord", "https://discord.com/api/webhooks/12/s3cret#x", "a fragment"],
  ])("for chat refuses %s with %s", (CHAT_PROVIDER, CHAT_WEBHOOK_URL, problem) => {
    const faults = faultsOf({ CHAT_PROVIDER, CHAT_WEBHOOK_URL });
    expect(faults.join()).toContain(problem);
    expect(faults.join()).not.toContain("s3cret");
  });
});

describe("an unsupported or incomplete choice", () => {
  test.each([
    [{ CHAT_PROVIDER: "mattermost" }, "wanted: slack, discord, google_chat or teams"],
    [{ MESSAGING_PROVIDER: "signal" }, "wanted: telegram, line or whatsapp"],
    [{ RECIPIENT_SOURCES: "list,search" }, "X_SEARCH_QUERY: is missing for the source search"],
    [{ RECIPIENT_SOURCES: "list_members" }, "X_LIST_ID: is missing for the source list_members"],
    [{ RECIPIENT_SOURCES: "friends" }, '"friends" is no source'],
    [{ RECIPIENT_SOURCES: "," }, "names no source"],
  ])("is refused for %o", (env, problem) => {
    expect(faultsOf(env)).toEqual([expect.stringContaining(problem)]);
  });
  test("keeps the order of sources, and drops repeats", () => {
    const named = { RECIPIENT_SOURCES: "Followers, list,inbound,followers,search,list_members" };
    const { outreach } = load({ ...named, X_SEARCH_QUERY: "links -is:retweet", X_LIST_ID: "42" });
    expect(outreach.sources).toEqual(["followers", "list", "inbound", "search", "list_members"]);
  });
  test("causes a warning for sources without consent while it is required", () => {
    const named = { RECIPIENT_SOURCES: "inbound,followers" };
    expect(load(named).warnings).toContainEqual(expect.stringContaining("names followers: with REQUIRE_CONSENT"));
    expect(load({ ...named, REQUIRE_CONSENT: "false" }).warnings.join()).not.toContain("REQUIRE_CONSENT");
  });
  test.each(["LINE_CHANNEL_ACCESS_TOKEN", "LINE_ID", "WHATSAPP_TOKEN", "X_SEARCH_QUERY", "X_LIST_ID"])(
    "causes a warning for %s",
    (name) => {
      expect(load({ [name]: "1" }).warnings).toContainEqual(expect.stringContaining(name));
    },
  );
});

describe("the template", () => {
  test("is read from the variable or from the file", () => {
    expect(load({ MESSAGE_TEMPLATE: "Hi {{name}}" }).outreach.template?.text).toBe("Hi {{name}}");
    const fromFile = load({ MESSAGE_TEMPLATE_FILE: "dm.txt" }, (path) => `\uFEFFfrom ${path}`);
    expect(fromFile.outreach.template?.text).toBe("from dm.txt");
  });
  test("has the name of its setting or file, and none for a text alone", () => {
    const nameOf = (env: Record<string, string>) => load(env, () => "Hi").outreach.template?.name;
    const MESSAGE_TEMPLATE_NAME = "Autumn invite";
    expect(nameOf({ MESSAGE_TEMPLATE: "Hi", MESSAGE_TEMPLATE_NAME })).toBe("Autumn invite");
    expect(nameOf({ MESSAGE_TEMPLATE_FILE: "/etc/reach/autumn.txt", MESSAGE_TEMPLATE_NAME })).toBe("Autumn invite");
    expect(nameOf({ MESSAGE_TEMPLATE_FILE: "/etc/reach/autumn.v2.txt" })).toBe("autumn.v2");
    expect(nameOf({ MESSAGE_TEMPLATE_FILE: `/etc/${"x".repeat(100)}` })).toHaveLength(TEMPLATE_NAME_CHARS_MAX);
    expect(nameOf({ MESSAGE_TEMPLATE: "Hi" })).toBeUndefined();
  });
  test.each(["x".repeat(TEMPLATE_NAME_CHARS_MAX + 1), "two\nlines", "a\u0007bell"])(
    "cannot have the name %j",
    (name) => {
      expect(faultsOf({ MESSAGE_TEMPLATE: "Hi", MESSAGE_TEMPLATE_NAME: name })).toEqual([
        expect.stringContaining(`MESSAGE_TEMPLATE_NAME: ${JSON.stringify(name.slice(0, 60)).slice(0, -1)}`),
      ]);
    },
  );
  test.each([
    [{ MESSAGE_TEMPLATE: "a", MESSAGE_TEMPLATE_FILE: "b" }, "set together with MESSAGE_TEMPLATE"],
    [{ MESSAGE_TEMPLATE_FILE: "gone.txt" }, '/gone.txt" cannot be read (ENOENT)'],
    [{ MESSAGE_TEMPLATE: "Hi\nyou {{name" }, "MESSAGE_TEMPLATE: line 2, column 5"],
  ])("is refused for the settings %o", (env, problem) => {
    expect(faultsOf(env)).toEqual([expect.stringContaining(problem)]);
  });
  test("causes a warning if missing while X is configured", () => {
    expect(load({ X_CLIENT_ID: "id" }).warnings).toContainEqual(expect.stringContaining("no run can start"));
  });
});

test.each(["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"])(
  "QUOTA_TIMEZONE=%s is accepted",
  (QUOTA_TIMEZONE) => {
    expect(faultsOf({ QUOTA_TIMEZONE })).toEqual([]);
  },
);
test.each(["Berlin", "+02:00", "Mars/Base"])("QUOTA_TIMEZONE=%s is refused", (QUOTA_TIMEZONE) => {
  expect(faultsOf({ QUOTA_TIMEZONE })).toHaveLength(1);
});

describe("SEND_WINDOW", () => {
  const window = (env: Record<string, string>) => load(env).outreach.window;

  test("is unlimited by default, and has a zone and an action when closed", () => {
    expect(window({})).toBeUndefined();
    const hours = [{ day: 6, from: 10 * 60, to: 12 * 60 }];
    const text = "Sat 10:00-12:00";
    expect(window({ SEND_WINDOW: text })).toEqual({ text, hours, zone: "quota", whenClosed: "end" });
    const more = { SEND_WINDOW_ZONE: "recipient", SEND_WINDOW_CLOSED: "pause" };
    expect(window({ SEND_WINDOW: text, ...more })).toMatchObject({ zone: "recipient", whenClosed: "pause" });
  });

  test.each([
    [
      "mon-tue 9:00-17:30",
      [
        [1, 540, 1050],
        [2, 540, 1050],
      ],
    ],
    [
      "Sun-Mon 00:00-24:00",
      [
        [7, 0, 1440],
        [1, 0, 1440],
      ],
    ],
    [
      "Sun 22:00-02:00",
      [
        [7, 1320, 1440],
        [1, 0, 120],
      ],
    ],
    ["Fri 22:00-00:00", [[5, 1320, 1440]]],
    [
      "Mon 09:00-12:00, Mon 13:00-17:00",
      [
        [1, 540, 720],
        [1, 780, 1020],
      ],
    ],
  ])("%s is read as %j", (SEND_WINDOW, wanted) => {
    expect(window({ SEND_WINDOW })?.hours.map(({ day, from, to }) => [day, from, to])).toEqual(wanted);
  });

  test.each([
    "09:00-17:00",
    "Mon-Fri",
    "Mon-Fri 09:00",
    "Mon-Fri 09:00-09:00",
    "Mon-Fri 24:00-09:00",
    "Mon-Fri 09:60-17:00",
    "Mon-Fri 09:00-24:01",
    "Mo-Fr 09:00-17:00",
    "Mon-Fri 9-17",
    ",",
  ])("refuses %p, with an example", (SEND_WINDOW) => {
    expect(faultsOf({ SEND_WINDOW })).toEqual([expect.stringContaining("Mon-Fri 09:00-17:00, Sat 10:00-12:00")]);
  });
});

test.each([
  ["1%", 0.01],
  ["30%", 0.3],
  ["100%", 1],
])("STOP_AFTER_FAILURES=%s is read as %p", (STOP_AFTER_FAILURES, share) => {
  expect(load({ STOP_AFTER_FAILURES }).outreach.stopAfterFailures).toBe(share);
});
test.each(["0%", "101%", "0.3", "30"])("STOP_AFTER_FAILURES=%s is refused", (STOP_AFTER_FAILURES) => {
  expect(faultsOf({ STOP_AFTER_FAILURES })).toEqual([expect.stringContaining("a share from 1% to 100%")]);
});

describe("a misspelt variable", () => {
  test.each([
    ["API_TOKEN", "API_TOKENS"],
    ["TELEGRM_BOT_TOKEN", "TELEGRAM_BOT_TOKEN"],
    ["META_PIXELID", "META_PIXEL_ID"],
    ["daily_limit", "DAILY_LIMIT"],
    ["DAILY_LIMITS", "DAILY_LIMIT"],
    ["X_CLIENT_SECRETS_FILE", "X_CLIENT_SECRET_FILE"],
  ])("%s causes a warning that suggests %s", (name, meant) => {
    expect(load({ [name]: "1" }).warnings).toContainEqual(
      `${name} is no setting and has no effect. Did you mean ${meant}?`,
    );
  });
  test("with the prefix REACHLOG_ causes a warning", () => {
    expect(load({ REACHLOG_COLOUR: "1" }).warnings).toContainEqual(
      expect.stringContaining("REACHLOG_COLOUR is no setting and has no effect."),
    );
  });
  test("causes no warning if it belongs to another program", () => {
    expect(
      load({
        PATH: "/bin",
        POST: "1",
        HOSTNAME: "a",
        NODE_ENV: "test",
        X_CUSTOM: "1",
        X_API_KEY: "1",
        API_TOKENS: `ops:${TOKEN}:scope=read`,
        REACHLOG_TOKEN: TOKEN,
      }).warnings,
    ).toEqual([]);
  });
});

describe("a webhook", () => {
  const key = (bytes: number) => `whsec_${Buffer.alloc(bytes, "s3cret").toString("base64")}`;
  const webhook = {
    WEBHOOK_URL: "https://receiver.example/hook?key=s3cret",
    WEBHOOK_SECRET: key(32),
    WEBHOOK_EVENTS: "RunFinished, LinkClicked,LinkClicked",
  };

  test("has its settings, with each type once and in the order of the catalog", () => {
    const [config, ...others] = load(webhook).webhooks;
    expect(others).toEqual([]);
    expect(config).toMatchObject({ name: "webhook", types: ["RunFinished", "LinkClicked"], isInOrder: false });
    expect(config).toMatchObject({ filter: undefined, headers: new Map() });
    expect([config?.url.reveal(), config?.secrets.reveal()]).toEqual([webhook.WEBHOOK_URL, webhook.WEBHOOK_SECRET]);
    expect(load({ ...webhook, WEBHOOK_ORDER: "stream" }).webhooks[0]?.isInOrder).toBe(true);
    expect(inspect(load(webhook), { depth: 9 })).not.toContain("s3cret");
  });

  test("keeps its address as given, with or without a trailing slash", () => {
    for (const WEBHOOK_URL of ["https://receiver.example/hook/", "https://receiver.example/hook"]) {
      expect(load({ ...webhook, WEBHOOK_URL }).webhooks[0]?.url.reveal()).toBe(WEBHOOK_URL);
    }
  });

  test("accepts several secrets, and refuses malformed ones", () => {
    const WEBHOOK_SECRET = `${key(24)} ${key(64)}`;
    expect(load({ ...webhook, WEBHOOK_SECRET }).webhooks[0]?.secrets.reveal()).toBe(WEBHOOK_SECRET);
    for (const wrong of [key(23), key(65), `${key(32)} ${key(8)}`, key(32).slice(6), key(32).slice(0, -1), "s3cret"]) {
      const [fault, ...more] = faultsOf({ ...webhook, WEBHOOK_SECRET: wrong });
      expect([fault?.split(":")[0], more]).toEqual(["WEBHOOK_SECRET", []]);
      expect(fault).not.toContain(wrong);
    }
  });

  test.each(["WEBHOOK_URL", "WEBHOOK_SECRET", "WEBHOOK_EVENTS"])("is refused without %s", (name) => {
    expect(faultsOf({ ...webhook, [name]: "" })).toEqual([expect.stringContaining(`${name}: missing`)]);
  });

  test.each([
    ["LinkCliked", 'WEBHOOK_EVENTS: webhooks cannot carry "LinkCliked"; wanted: LinkClicked'],
    ["linkclicked", 'WEBHOOK_EVENTS: webhooks cannot carry "linkclicked"; wanted: LinkClicked'],
    ["DispatchClaimed", 'WEBHOOK_EVENTS: webhooks cannot carry "DispatchClaimed"; wanted: types of events such as'],
    ["WebhookSubscribed", 'WEBHOOK_EVENTS: webhooks cannot carry "WebhookSubscribed"; wanted: types of events such as'],
    [" , ", "WEBHOOK_EVENTS: it names no type of event"],
  ])("refuses the type %j with a suggestion", (WEBHOOK_EVENTS, fault) => {
    expect(faultsOf({ ...webhook, WEBHOOK_EVENTS })).toEqual([expect.stringContaining(fault)]);
  });

  test("accepts outcomes of dispatches to other channels", () => {
    const WEBHOOK_EVENTS = "DispatchAbandoned,DispatchInDoubt,ChannelSuspended";
    const [config] = load({ ...webhook, WEBHOOK_EVENTS }).webhooks;
    expect(config?.types).toEqual(["DispatchInDoubt", "DispatchAbandoned", "ChannelSuspended"]);
  });

  test.each([
    ["data.data.domain == ", "not valid JMESPath from character 17 on"],
    ["data.data.bot == 1", "not valid JMESPath from character 14 on"],
    ["sort(data.data.channels)", "filters have no function sort()"],
    ["starts_with(data.stream)", "starts_with() takes 2 arguments"],
    ["[data, data]", "a filter cannot use MultiSelectList"],
    [`data.${"x".repeat(1_000)}`, "it has 1005 characters, and 1000 are allowed"],
  ])("refuses the filter %j with the fault", (WEBHOOK_FILTER, fault) => {
    expect(faultsOf({ ...webhook, WEBHOOK_FILTER })).toEqual([expect.stringContaining(`WEBHOOK_FILTER: ${fault}`)]);
  });

  test("has configured headers, with values that are not shown", () => {
    const WEBHOOK_HEADERS = "Authorization: Bearer s3cret, X-Tenant: s3cret:7\n";
    const config = load({ ...webhook, WEBHOOK_HEADERS });
    expect([...(config.webhooks[0]?.headers ?? [])].map(([name, value]) => [name, value.reveal()])).toEqual([
      ["authorization", "Bearer s3cret"],
      ["x-tenant", "s3cret:7"],
    ]);
    expect(inspect(config, { depth: 9 })).not.toContain("s3cret");
  });

  test.each([
    ["s3cret", "header 1 has no name or no value"],
    ["X-A: s3cret, s3cret", "header 2 has no name or no value"],
    ["X-A: s3cr\u00e9t", "header 1 has no name or no value"],
    ["X-A: s3cret, x-a: 2", "header 2 has the name of an earlier one"],
    ...[
      "Host",
      "Content-Type",
      "Content-Length",
      "webhook-id",
      "Webhook-Signature",
      "Transfer-Encoding",
      "User-Agent",
    ].map((name) => [`${name}: s3cret`, "header 1 is one that the service sets itself"] as const),
    [Array.from({ length: 11 }, (_, at) => `X-${at}: s3cret`).join(), "it has 11 headers"],
    [`X-A: s3cret${"x".repeat(4_096)}`, "it has more than 4096 characters"],
  ])("refuses the headers %j", (WEBHOOK_HEADERS, problem) => {
    const [fault, ...more] = faultsOf({ ...webhook, WEBHOOK_HEADERS });
    expect([fault, more]).toEqual([expect.stringContaining(`WEBHOOK_HEADERS: ${problem}`), []]);
    expect(fault).not.toContain("s3cr");
  });

  test.each([
    ["WEBHOOK_ORDER", "stream"],
    ["WEBHOOK_FILTER", "data.data.bot"],
    ["WEBHOOK_HEADERS", "X-A: s3cret"],
  ])("is not configured by %s alone, which causes a warning", (name, value) => {
    const { webhooks, warnings } = load({ [name]: value });
    expect(webhooks).toEqual([]);
    expect(warnings).toContain(`${name} has no effect: WEBHOOK_URL is not set.`);
  });

  test("refuses plain http to another machine", () => {
    const WEBHOOK_URL = "http://receiver.example/s3cret";
    const [fault] = faultsOf({ ...webhook, WEBHOOK_URL });
    expect(fault).toStartWith("WEBHOOK_URL: plain http");
    expect(fault).not.toContain("s3cret");
  });

  test.each([
    ["collector", "http://collector:4318"],
    ["Collector", "http://collector:4318"],
    ["10.1.2.3", "http://10.1.2.3:4318"],
    ["172.31.0.9", "http://172.31.0.9:4318"],
    ["192.168.7.1", "http://192.168.7.1:4318"],
    ["169.254.1.1", "http://169.254.1.1:4318"],
    ["[fd00::5]", "http://[fd00::5]:4318"],
    ["[fe80::5]", "http://[fe80::5]:4318"],
  ])("allows plain http to a private host in PLAIN_HTTP_HOSTS: %s", (host, url) => {
    const more = { WEBHOOK_URL: url, OTEL_EXPORTER_OTLP_ENDPOINT: url };
    const wanted = expect.stringContaining("PLAIN_HTTP_HOSTS") as string;
    expect(faultsOf({ ...webhook, ...more })).toEqual([wanted, wanted]);
    expect(faultsOf({ ...webhook, ...more, PLAIN_HTTP_HOSTS: "other" })).toHaveLength(2);
    const { webhooks, tracing } = load({ ...webhook, ...more, PLAIN_HTTP_HOSTS: `other, ${host}` });
    expect([webhooks[0]?.url.reveal(), tracing?.endpoint]).toEqual([`${url}/`, url]);
  });

  test.each([
    "receiver.example",
    "203.0.113.7",
    "172.32.0.1",
    "192.169.0.1",
    "100.64.0.1",
    "[2001:db8::1]",
    "http://collector",
    "collector:4318",
    "",
  ])("refuses a public host or a URL in PLAIN_HTTP_HOSTS: %s", (host) =>
    expect(faultsOf({ PLAIN_HTTP_HOSTS: `collector,${host},b` })).toHaveLength(1),
  );

  const named = (name: string, more: Record<string, string> = {}) =>
    Object.fromEntries(
      Object.entries({ ...webhook, ...more }).map(([key, value]) => [
        key.replace("WEBHOOK_", `WEBHOOK_${name}_`),
        value,
      ]),
    );

  test("may have a name and its own settings", () => {
    const env = {
      ...webhook,
      ...named("CRM", { WEBHOOK_EVENTS: "RunStarted" }),
      ...named("BILLING_2", { WEBHOOK_ORDER: "stream" }),
    };
    const { webhooks, warnings } = load({ ...env, WEBHOOK_CRM_FILTER: "data.data.dry_run" });
    expect(webhooks).toMatchObject([
      { name: "webhook", types: ["RunFinished", "LinkClicked"], isInOrder: false, filter: undefined },
      { name: "webhook-billing-2", types: ["RunFinished", "LinkClicked"], isInOrder: true, filter: undefined },
      { name: "webhook-crm", types: ["RunStarted"], isInOrder: false, filter: "data.data.dry_run" },
    ]);
    expect(warnings.filter((text) => text.includes("WEBHOOK"))).toEqual([]);
    expect(load(named("CRM")).webhooks.map(({ name }) => name)).toEqual(["webhook-crm"]);
  });

  test.each(["EVENTS", "MY_SECRET", "FILE", "URL_B", "crm", "A__B", "_A", "A-B", "X".repeat(25)])(
    "refuses the name %s with one fault",
    (name) => {
      expect(
        faultsOf({ [`WEBHOOK_${name}_URL`]: "https://receiver.example/", [`WEBHOOK_${name}_ORDER`]: "none" }),
      ).toEqual([
        `WEBHOOK_${name}_URL: "${name}" cannot name a webhook; wanted: a name of 1 to 24 capital letters, digits and single ` +
          "underscores, without the words URL, SECRET, EVENTS, FILTER, ORDER, HEADERS, FILE",
      ]);
    },
  );

  test("has its name in faults and warnings, also in those about files", () => {
    expect(faultsOf({ ...named("CRM"), WEBHOOK_CRM_SECRET: "" })).toEqual([
      "WEBHOOK_CRM_SECRET: missing, but WEBHOOK_CRM_URL is set; wanted: all of WEBHOOK_CRM_URL, WEBHOOK_CRM_SECRET, WEBHOOK_CRM_EVENTS, or none",
    ]);
    expect(faultsOf({ ...named("CRM"), WEBHOOK_CRM_ORDER: "links" })).toEqual([
      'WEBHOOK_CRM_ORDER: "links" is not accepted; wanted: none or stream',
    ]);
    expect(faultsOf({ ...named("CRM"), WEBHOOK_CRM_URL: "", WEBHOOK_CRM_URL_FILE: "/none/s3cret" })).toEqual([
      "WEBHOOK_CRM_URL_FILE: there is no such file; wanted: the path of a file that holds it",
    ]);
    expect(load({ WEBHOOK_CRM_ORDER: "stream" }).warnings).toContain(
      "WEBHOOK_CRM_ORDER has no effect: WEBHOOK_CRM_URL is not set.",
    );
    expect(load({ ...named("CRM"), WEBHOOK_CRM_FILTERS: "x" }).warnings).toContain(
      "WEBHOOK_CRM_FILTERS is no setting and has no effect. Did you mean WEBHOOK_CRM_FILTER?",
    );
  });

  test("is refused if it is the eleventh", () => {
    const env = (count: number) => Object.assign({}, ...Array.from({ length: count }, (_, at) => named(`N${at}`)));
    expect(load(env(10)).webhooks).toHaveLength(10);
    expect(faultsOf({ ...env(10), ...webhook })).toEqual([
      "WEBHOOK_URL: 11 webhooks are configured; wanted: 10 webhooks at the most",
    ]);
  });
});

describe("the witness", () => {
  const WITNESS_PUBLIC_KEY = formatVerifierKey({ name: "witness.example", ...signingKeyOf(new Uint8Array(32)) });
  const settings = { WITNESS_URL: "https://witness.example/", WITNESS_PUBLIC_KEY };

  test("has an address and a key", () => {
    const { witness } = load(settings);
    expect(witness).toMatchObject({ url: "https://witness.example", cosigner: { name: "witness.example" } });
    expect(load({}).witness).toBeUndefined();
  });

  test.each(["WITNESS_URL", "WITNESS_PUBLIC_KEY"])("needs %s", (name) => {
    expect(faultsOf({ ...settings, [name]: "" })).toEqual([expect.stringContaining(`${name}: missing`)]);
  });

  test("is refused with plain http, and with an invalid key", () => {
    expect(faultsOf({ ...settings, WITNESS_URL: "http://witness.example" })).toHaveLength(1);
    expect(faultsOf({ ...settings, WITNESS_PUBLIC_KEY: "witness.example+00000000+AAAA" })).toEqual([
      "WITNESS_PUBLIC_KEY: no key of a witness; wanted: NAME+ID+KEY, as reachlog witness serve prints it",
    ]);
  });
});

describe("the address of traces", () => {
  test("contains the placeholder of an id", () => {
    const TRACE_URL = "https://jaeger.example/trace/{id}?uiFind=1";
    expect(load({ TRACE_URL }).traceUrl).toBe(TRACE_URL);
    expect(load({}).traceUrl).toBeUndefined();
  });

  test.each([
    "https://jaeger.example/trace/",
    "jaeger.example/trace/{id}",
    "javascript:alert({id})",
    "https://jaeger.example/{id}/{id}",
    "https://jaeger.example/ {id}",
  ])("is refused as %s", (TRACE_URL) => {
    expect(faultsOf({ TRACE_URL })).toEqual([expect.stringContaining("TRACE_URL: ")]);
  });
});

describe("the store of segments and backups", () => {
  const settings = { AWS_ACCESS_KEY_ID: "AKIAEXAMPLE", AWS_SECRET_ACCESS_KEY: "canary-of-a-store" };

  test("is Amazon's in a region, or at another endpoint", () => {
    const { objectStore } = load(settings);
    expect(objectStore).toMatchObject({ endpoint: "https://s3.us-east-1.amazonaws.com", region: "us-east-1" });
    expect(objectStore?.secretAccessKey.reveal()).toBe(settings.AWS_SECRET_ACCESS_KEY);
    const other = { ...settings, AWS_REGION: "eu-central-1", AWS_ENDPOINT_URL: "https://minio.example/" };
    expect(load(other).objectStore).toMatchObject({ endpoint: "https://minio.example", region: "eu-central-1" });
  });
  test("is not configured without an access key, and refuses half a key", () => {
    expect(load({ AWS_REGION: "eu-central-1" }).objectStore).toBeUndefined();
    for (const [name, value] of Object.entries(settings)) {
      const faults = faultsOf({ [name]: value });
      expect(faults).toHaveLength(1);
      expect(faults.join()).not.toContain(value);
    }
    expect(faultsOf({ ...settings, AWS_ENDPOINT_URL: "http://minio.example" })).toHaveLength(1);
    expect(faultsOf({ ...settings, AWS_REGION: "eu central" })).toHaveLength(1);
  });
});

test("a discontinued Teams address causes a warning, and its successor does not", () => {
  const warningsFor = (host: string) => {
    const CHAT_WEBHOOK_URL = `https://${host}/workflows/b/triggers/manual/paths/invoke?sig=s3cret`;
    return load({ CHAT_PROVIDER: "teams", CHAT_WEBHOOK_URL }).warnings.filter((text) => text.startsWith("CHAT_"));
  };
  expect(warningsFor("prod-01.westeurope.logic.azure.com")).toEqual([
    "CHAT_WEBHOOK_URL: addresses of logic.azure.com stopped in 2025; copy the workflow's new one from its trigger.",
  ]);
  expect(warningsFor("a.environment.api.powerplatform.com")).toEqual([]);
});

describe("a value that may be misread", () => {
  test.each(["~/log.sqlite", "~", "~ada/log.sqlite", "$HOME/log.sqlite", "./${DIR}/log.sqlite"])(
    "is refused if it is the path %s, which only a shell expands",
    (path) => {
      const wanted = [expect.stringContaining("~ and $NAME in a path are not replaced")];
      expect(faultsOf({ DATABASE_URL: `sqlite:${path}` })).toEqual(wanted);
      expect(faultsOf({ KEYS_FILE: path })).toEqual(wanted);
      expect(faultsOf({ ARCHIVE_FOLDER: path })).toEqual(wanted);
    },
  );
  test("is accepted if it is a path with a tilde or a $ elsewhere", () => {
    for (const path of ["./a~b.sqlite", "./~/a.sqlite", "./a$5.sqlite"])
      expect(faultsOf({ DATABASE_URL: `sqlite:${path}`, KEYS_FILE: `${path}.keys` })).toEqual([]);
  });
  test("is refused if it contains U+FFFD, in any setting and in the message file", () => {
    for (const [name, schema] of variables) {
      if (schema["type"] !== "string" || schema["shown"] === true) continue;
      expect([name, faultsOf({ [name]: "a\ufffdb" })]).toEqual([
        name,
        expect.arrayContaining([expect.stringContaining(`${name}: holds U+FFFD`)]),
      ]);
    }
    expect(faultsOf({ MESSAGE_TEMPLATE_FILE: "a.txt" }, () => "Gr\ufffdße")).toEqual([
      expect.stringContaining("MESSAGE_TEMPLATE_FILE: holds U+FFFD"),
    ]);
  });
  test.each([
    ["Windows-1252", Buffer.from("Hi\nGr\u00fc\u00dfe", "latin1"), "(line 2; perhaps Windows-1252)"],
    ["UTF-16", Buffer.from("\ufeffHallo", "utf16le"), "(line 1; perhaps UTF-16)"],
    ["UTF-16 without a mark", Buffer.from("Hallo", "utf16le"), "(line 1; perhaps UTF-16)"],
    ["UTF-16, big-endian", Buffer.from("\ufeffHallo", "utf16le").swap16(), "(line 1; perhaps UTF-16)"],
  ])("is refused if it is a file in %s", (_name, bytes, where) => {
    const readFile = () => decodeUtf8(bytes);
    for (const name of ["MESSAGE_TEMPLATE_FILE", "API_TOKENS_FILE"])
      expect(faultsOf({ [name]: "a.txt" }, readFile)[0]).toContain(`a.txt" is not valid UTF-8 ${where}`);
  });
  test("loses its byte order mark if it is a message file", () => {
    const readFile = () => decodeUtf8(Buffer.from("\ufeffHi {{name}}"));
    expect(load({ MESSAGE_TEMPLATE_FILE: "a.txt" }, readFile).outreach.template?.text).toBe("Hi {{name}}");
  });
});

test("a mistake in the message causes a warning with the setting and the line", () => {
  expect(load({ MESSAGE_TEMPLATE: "Hi {{name}}\\n---\\nHello {name}" }).warnings).toEqual(
    expect.arrayContaining([
      expect.stringContaining('MESSAGE_TEMPLATE: line 1: "\\\\n" is sent as it stands'),
      expect.stringContaining('MESSAGE_TEMPLATE: line 1: "{name}" is sent as it stands'),
    ]),
  );
  expect(load({ MESSAGE_TEMPLATE_FILE: "a.txt" }, () => "'Hi'").warnings).toEqual(
    expect.arrayContaining([expect.stringContaining("MESSAGE_TEMPLATE_FILE: the text begins and ends with '")]),
  );
});

describe(".env.example", () => {
  const lines = readFileSync(new URL("../../.env.example", import.meta.url), "utf8").split("\n");
  const settings = lines.flatMap((line) => /^# ([A-Z_]+)=(.*)$/.exec(line)?.slice(1, 3) ?? []);
  const documented = new Map(
    Array.from({ length: settings.length / 2 }, (_, index) => [settings[index * 2], settings[index * 2 + 1]]),
  );

  test("names every variable once, each below a comment", () => {
    expect(new Set(documented.keys())).toEqual(new Set(variables.keys()));
    expect(settings).toHaveLength(variables.size * 2);
    for (const [index, line] of lines.entries()) {
      if (/^# [A-Z_]+=/.test(line)) expect(lines[index - 1]).toMatch(/^# .*[.)]$/);
    }
  });
  test("names the same defaults as the code", () => {
    for (const [name, schema] of variables)
      expect(`${name}=${documented.get(name)}`).toBe(`${name}=${schema.default ?? ""}`);
  });
});
