// These tests call the code directly.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/config/config.ts";
import { secretFiles, settingNames, variables } from "../../src/config/schema.ts";
import { temporaryFolder, type TemporaryFolder } from "../harness/temporary-folder.ts";

const noFile = (): string => {
  throw new Error("no other file is read");
};

const WEBHOOK_SECRET = `whsec_${Buffer.from("canary of the webhook, 32 bytes.").toString("base64")}`;

const WHATSAPP_NUMBER = { MESSAGING_PROVIDER: "whatsapp", WHATSAPP_PHONE_NUMBER_ID: "1", WHATSAPP_TO: "15550783881" };
const WHATSAPP = { ...WHATSAPP_NUMBER, WHATSAPP_ACCESS_TOKEN: "token" };

/** Name of each secret setting -> a valid value, and the other settings that this value requires. */
const VALUES: Readonly<Record<string, readonly [string, Record<string, string>?]>> = {
  DATABASE_URL: ["sqlite:/var/lib/reachlog/canary.sqlite"],
  KEYS_DATABASE_URL: [
    "postgres://keys:canary@127.0.0.1/keys",
    { DATABASE_URL: "postgres://log:canary@127.0.0.1/log", REACHLOG_KEY: "5".repeat(64) },
  ],
  REACHLOG_KEY: ["5".repeat(64)],
  REACHLOG_KEY_NEXT: ["6".repeat(64)],
  REACHLOG_TOKEN: ["reachlog_canary-0123456789"],
  AWS_SECRET_ACCESS_KEY: ["canary-of-a-store", { AWS_ACCESS_KEY_ID: "id" }],
  X_CLIENT_SECRET: ["canary-x", { X_CLIENT_ID: "id", MESSAGE_TEMPLATE: "hi" }],
  X_APP_BEARER_TOKEN: ["canary-of-an-app", { X_CLIENT_ID: "id", MESSAGE_TEMPLATE: "hi" }],
  META_ACCESS_TOKEN: ["canary-meta", { META_PIXEL_ID: "1" }],
  OPENAI_ADS_API_KEY: ["canary-openai", { OPENAI_ADS_PIXEL_ID: "1" }],
  SNAP_ACCESS_TOKEN: ["canary-snap", { SNAP_PIXEL_ID: "1" }],
  CHAT_WEBHOOK_URL: ["https://hooks.slack.com/services/T/B/canary"],
  TELEGRAM_BOT_TOKEN: ["1:canary", { TELEGRAM_CHAT_ID: "-100" }],
  LINE_CHANNEL_ACCESS_TOKEN: ["canary-line", { MESSAGING_PROVIDER: "line", LINE_TO: `U${"0".repeat(32)}` }],
  WHATSAPP_ACCESS_TOKEN: ["canary-whatsapp", WHATSAPP_NUMBER],
  WHATSAPP_APP_SECRET: ["canary-of-meta-app", { ...WHATSAPP, WHATSAPP_VERIFY_TOKEN: "verify-me" }],
  WHATSAPP_VERIFY_TOKEN: ["canary-verify", { ...WHATSAPP, WHATSAPP_APP_SECRET: "signs" }],
  WEBHOOK_URL: ["https://receiver.example/canary", { WEBHOOK_SECRET, WEBHOOK_EVENTS: "LinkClicked" }],
  WEBHOOK_SECRET: [WEBHOOK_SECRET, { WEBHOOK_URL: "https://receiver.example/", WEBHOOK_EVENTS: "LinkClicked" }],
  WEBHOOK_HEADERS: [
    "Authorization: Bearer canary",
    { WEBHOOK_URL: "https://receiver.example/", WEBHOOK_SECRET, WEBHOOK_EVENTS: "LinkClicked" },
  ],
};

let folder: TemporaryFolder;
beforeAll(() => {
  folder = temporaryFolder();
});
afterAll(() => folder[Symbol.dispose]());

function write(name: string, content: string, mode = 0o600): string {
  const path = folder.file(name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

function refusal(env: Record<string, string>): string {
  try {
    loadConfig(env, noFile);
  } catch (fault) {
    return (fault as Error).message;
  }
  return "";
}

/**
 * Loads the configuration and returns it with every secret in plain text, so that a test can compare two
 * configurations.
 */
function revealed(env: Record<string, string>): unknown {
  const reveal = (_: string, value: unknown): unknown =>
    typeof value === "object" && value !== null && "reveal" in value ? (value.reveal as () => string)() : value;
  const { warnings: _, outreachWith, ...config } = loadConfig(env, noFile);
  const walk = (value: unknown): unknown => {
    const shown = reveal("", value);
    if (typeof shown !== "object" || shown === null) return shown;
    if (Array.isArray(shown)) return shown.map(walk);
    if (shown instanceof Map) return [...shown].map(walk);
    return Object.fromEntries(Object.entries(shown).map(([name, one]) => [name, walk(one)]));
  };
  return walk({ ...config, unchanged: outreachWith({}) });
}

function makeFolder(): string {
  mkdirSync(folder.file("folder"), { recursive: true });
  return folder.file("folder");
}

test("docs/configure.md names each secret file setting", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/configure.md"), "utf8");
  const named = /`NAME_FILE` in the place of `NAME`, for (.*?)\.(?: |$)/m.exec(text)?.[1] ?? "";
  expect([...named.matchAll(/`(\w+)`/g)].map(([, name]) => name)).toEqual([...secretFiles.values()]);
});

test("every secret setting has a file setting", () => {
  const words = /SECRET|TOKENS?$|(?<!PUBLIC_)KEY(?:_NEXT)?$|WEBHOOK_(?:URL|HEADERS)|DATABASE_URL/;
  const secrets = [...variables.keys()].filter((name) => words.test(name));
  for (const name of secrets) expect(settingNames).toContain(`${name}_FILE`);
  expect([...secretFiles.values()].toSorted()).toEqual(secrets.filter((name) => name !== "API_TOKENS").toSorted());
  expect(Object.keys(VALUES).toSorted()).toEqual([...secretFiles.values()].toSorted());
});

describe.each([...secretFiles])("%s", (file, name) => {
  const [value, beside = {}] = VALUES[name] ?? [""];

  test.each(["", "\n", "\r\n"])("equals the setting, with %j at the file's end", (end) => {
    const path = write(name, value + end);
    expect(revealed({ ...beside, [file]: path })).toEqual(revealed({ ...beside, [name]: value }));
  });

  test("is refused together with the setting", () => {
    const both = refusal({ ...beside, [name]: value, [file]: write(name, value) });
    expect(both).toBe(`${file}: set together with ${name}; wanted: one of the two`);
  });
});

const FAULTY: readonly (readonly [string, () => string, string])[] = [
  ["that does not exist", () => folder.file("none"), "there is no such file"],
  ["below a file", () => `${write("plain", "x")}/none`, "there is no such file"],
  ["that is a folder", makeFolder, "that is a folder"],
  ["that is empty", () => write("empty", " \n"), "that file is empty"],
  ["that has no end", () => "/dev/zero", "that file holds more than 65536 bytes"],
];

test.each(FAULTY)("a file %s is refused without its path", (_, make, problem) => {
  const path = make();
  const line = refusal({ META_PIXEL_ID: "1", META_ACCESS_TOKEN_FILE: path });
  expect(line).toBe(
    `META_ACCESS_TOKEN_FILE: ${problem}; wanted: the path of a file that holds an access token without spaces`,
  );
  expect(line).not.toContain(path);
});

test.each([
  ["Windows-1252", Buffer.from("t\u00f6ken", "latin1"), "that file is not valid UTF-8 (line 1; perhaps Windows-1252)"],
  ["UTF-16", Buffer.from("\ufefftoken", "utf16le"), "that file is not valid UTF-8 (line 1; perhaps UTF-16)"],
])("a file in %s is refused", (_, bytes, problem) => {
  const path = write("encoded", "");
  writeFileSync(path, bytes);
  expect(refusal({ META_PIXEL_ID: "1", META_ACCESS_TOKEN_FILE: path })).toStartWith(
    `META_ACCESS_TOKEN_FILE: ${problem}; wanted: `,
  );
});

test("an invalid value in a file is refused without the value", () => {
  const message = refusal({ META_PIXEL_ID: "1", META_ACCESS_TOKEN_FILE: write("bad", "two canaries") });
  expect(message).toStartWith("META_ACCESS_TOKEN_FILE: the value is not accepted; wanted: ");
  expect(message).not.toContain("canaries");
});

test("a file that every user of the machine can read causes a warning", () => {
  const warnings = (mode: number) =>
    loadConfig({ REACHLOG_KEY_FILE: write("key", "5".repeat(64), mode) }, noFile).warnings.filter((text) =>
      text.startsWith("REACHLOG_KEY_FILE"),
    );
  expect([0o400, 0o600, 0o640].flatMap(warnings)).toEqual([]);
  expect(warnings(0o644)).toEqual([
    "REACHLOG_KEY_FILE: every user of this machine can read that file; chmod o= keeps them out.",
  ]);
});
