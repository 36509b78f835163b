// These tests call the code directly.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { manPage } from "../../packaging/man-page.ts";
import { describeCommands } from "../../src/commands/completion.ts";
import { loadReachlog } from "../../src/commands/shared/root-command.ts";
import { EXIT } from "../../src/commands/shared/terminal-answers-and-exit-codes.ts";
import { secretFiles, variables } from "../../src/config/schema.ts";

const reachlog = await loadReachlog();

const PAGE = manPage();

/** Text of the manual page as a reader sees it, without escapes. */
const TEXT = PAGE.replaceAll(String.raw`\-`, "-");

function sections(title: string): readonly string[] {
  const [, text = ""] = TEXT.split(`.SH ${title}\n`);
  return (text.split("\n.SH ")[0] ?? "").split(/^\.(?:SS|TP\n\.B) /m).slice(1);
}

test("the manual page describes each command and its options", () => {
  const silent = { env: {}, out() {}, err() {}, interactive: false, signal: AbortSignal.abort() };
  const commands = describeCommands(reachlog(silent));
  for (const { path, commands: below, options } of commands.filter((one) => one.path !== " help")) {
    if (below.length > 0) continue;
    const [, rest] = TEXT.split(new RegExp(String.raw`^\.SS ${path.trim()}(?= <| \[|$)`, "m"));
    const section = rest?.split(/^\.S[SH] /m)[0] ?? "";
    expect([path, section]).not.toEqual([path, ""]);
    for (const name of options.flatMap(({ names }) => names).filter((one) => one.startsWith("--") && one !== "--help"))
      expect([path, section]).toEqual([path, expect.stringContaining(`.B ${name}`)]);
  }
});

test("the manual page lists each exit code and each setting once", () => {
  const codes = sections("EXIT STATUS").map((text) => Number(text.split("\n")[0]));
  expect(codes).toEqual([...Object.values(EXIT), 130, 141]);
  const shown = sections("ENVIRONMENT").map((text) => text.split("=")[0] ?? "");
  expect(shown.toSorted()).toEqual([...variables.keys()].toSorted());
  for (const file of secretFiles.keys()) expect(TEXT.split(new RegExp(`\\b${file}\\b`))).toHaveLength(2);
});

test("no text of the manual page is read as a roff request", () => {
  const requests = new Set(PAGE.split("\n").flatMap((line) => /^[.'](\S*)/.exec(line)?.[1] ?? []));
  expect(requests).toEqual(new Set(["TH", "SH", "B", "I", "RI", "SS", "PP", "TP", "nf", "fi"]));
  expect(PAGE).toContain(
    `"reachlog ${JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8")).version}"`,
  );
});
