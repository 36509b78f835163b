// These tests start the service or commands as processes.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startDemo, type Demo } from "../harness/demo.ts";
import { temporaryFolder } from "../harness/temporary-folder.ts";

const TOUR = readFileSync(join(import.meta.dirname, "../../docs/tour.md"), "utf8");

test("the steps of the tour give the documented output", async () => {
  using folder = temporaryFolder();
  await using demo = await startDemo(folder.path);
  expect(demo.printed).toMatch(patternOf(blocks()[0]?.text ?? ""));
  await authorize(demo.url);
  let asked = "";
  for (const { language, text } of blocks().slice(1)) {
    if (language === "sh") {
      asked = "";
      for (const line of text.trim().split("\n")) asked += (await demo.shell(inDemo(line, demo, folder.path))).out;
    } else if (language === "json") {
      // The document docs/tour.md shows the JSON on several lines, but the command prints it on one line.
      expect(asked.replaceAll("\n", "")).toMatch(patternOf(text.replace(/\n */g, ""), true));
    } else {
      await followSession(demo, folder.path, text);
    }
  }
});

/** Returns the fenced blocks of the tour, in order. */
function blocks(): { readonly language: string; readonly text: string }[] {
  return [...TOUR.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = "", text = ""]) => ({ language, text }));
}

/** Runs the commands after `$` and compares their output. The first block contains the settings for all that follow. */
async function followSession(demo: Demo, directory: string, text: string): Promise<void> {
  const [settings = "", ...steps] = text.split(/^\$ /m).slice(1);
  for (const step of steps) {
    const [command = "", ...shown] = step.trimEnd().split("\n");
    const pattern = patternOf(shown.join("\n"));
    const line = inDemo(`${settings.trim()}; ${command}`, demo, directory);
    const { out } = await demo.shell(line, command.endsWith("audit tail") ? CLICK_AND_MORE : undefined);
    expect([command, out]).toEqual([command, expect.stringMatching(pattern)]);
  }
}

/**
 * `audit tail` follows the log until Ctrl-C. The test interrupts the command once its output holds this pattern: a line
 * about a click, and one line more.
 */
const CLICK_AND_MORE = / LinkClicked .*\n.*\n/;

/** Replaces the ports and the folder in a line of the tour by those of this demo. */
function inDemo(line: string, { url, printed }: Demo, directory: string): string {
  const sandbox = /^sandbox +(\S+)/m.exec(printed)?.[1] ?? "";
  return line
    .replaceAll("localhost:3000", new URL(url).host)
    .replaceAll("localhost:4010", new URL(sandbox).host)
    .replaceAll("/tmp/reachlog-demo-x", directory);
}

/**
 * Parts of a command's output that differ between demos. Each entry has a pattern for the part in docs/tour.md, and the
 * pattern for the part in this demo's output.
 */
const CHANGING: readonly (readonly [RegExp, string])[] = [
  [/[0-9a-f]{8}-(?:[0-9a-f]{4}-){0,3}…/, "[\\s\\S]*?"],
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/, "[0-9a-f-]{36}"],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/, "\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z"],
  [/\d{4}-\d\d-\d\d/, "\\d{4}-\\d\\d-\\d\\d"],
  [/\b[0-9a-f]{64}\b/, "[0-9a-f]{64}"],
  [/(?<=token +)[\w-]{32}/, "[\\w-]{32}"],
  [/127\.0\.0\.1:\d+\/l\/\w{10}/, "127\\.0\\.0\\.1:\\d+/l/\\w{10}"],
  [/127\.0\.0\.1:\d+/, "127\\.0\\.0\\.1:\\d+"],
  [/\/tmp\/reachlog-demo-x/, "\\S+"],
  // The number of events depends on how fast the networks answer.
  [/\b\d+(?= events)/, "\\d+"],
  [/(?<=; head )\d+/, "\\d+"],
  [/\b\d+(?= ms)/, "\\d+"],
  [/(?<=\n|^)\d+(?= \d{4}-)/, "\\d+"],
  [/(?<="position":)\d+/, "\\d+"],
  [/\n?…/, "[\\s\\S]*?"],
];
const ANY = new RegExp(CHANGING.map(([{ source }]) => `(${source})`).join("|"), "g");

/** Matches text that differs from the tour's only where demos differ or where the tour abbreviates with `…`. */
function patternOf(shown: string, isWhole = false): RegExp {
  let pattern = "";
  let at = 0;
  for (const found of shown.trimEnd().matchAll(ANY)) {
    const which = found.slice(1).findIndex((group) => group !== undefined);
    pattern += RegExp.escape(shown.slice(at, found.index)) + (CHANGING[which]?.[1] ?? "");
    at = found.index + found[0].length;
  }
  pattern += RegExp.escape(shown.slice(at).trimEnd());
  return new RegExp(isWhole ? `^${pattern}$` : pattern);
}

/**
 * Authorizes the service as a browser does that opens /social/auth, as docs/tour.md says, and chooses the first account
 * on the consent page.
 */
async function authorize(url: string): Promise<void> {
  const start = await fetch(`${url}/social/auth`, { redirect: "manual" });
  const cookie = (start.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const consent = new URL(start.headers.get("location") ?? "");
  const page = await (await fetch(consent)).text();
  const form = new URLSearchParams(consent.search);
  form.set(
    "account",
    /name="account"[^>]*value="(\d+)"|<option value="(\d+)"/.exec(page)?.slice(1).find(Boolean) ?? "",
  );
  form.set("decision", "authorize");
  const decided = await fetch(consent.origin + consent.pathname, { method: "POST", body: form, redirect: "manual" });
  const callback = new URL(decided.headers.get("location") ?? "");
  const linked = await fetch(url + callback.pathname + callback.search, {
    headers: { cookie, accept: "application/json" },
  });
  expect(linked.status).toBe(200);
}
