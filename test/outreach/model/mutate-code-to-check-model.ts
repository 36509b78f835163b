/**
 * Breaks one rule of the outreach protocol at a time in a copy of the tree, and lets the model look for it:
 * `mutate-code-to-check-model.ts [NAME…]`. Exit code 1 if one goes unnoticed: no test checks that rule. Takes some
 * minutes.
 */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hunted } from "./search-random-histories.ts";
import { MUTATIONS, type Edit, type Mutation } from "./mutation-list.ts";

/** Histories to try for each mutation. It counts as not caught if none of them breaks a rule. */
const HISTORIES_MAX = 4_000;

/**
 * Maximum number of histories to try for each mutation of a rule of campaigns; these histories are about campaigns
 * alone.
 */
const OF_CAMPAIGNS_MAX = 300;

/** Names in the root folder that are not copied. */
const LEFT_OUT = new Set(["node_modules", ".git"]);

const root = join(import.meta.dirname, "../../..");
const wanted = process.argv.slice(2);
const chosen = MUTATIONS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));

const copy = mkdtempSync(join(tmpdir(), "reachlog-mutations-"));
try {
  copyTree();
  const missed: string[] = [];
  for (const mutation of chosen) if (!(await isCaught(mutation))) missed.push(mutation.name);
  console.log(`${chosen.length - missed.length} of ${chosen.length} mutations caught`);
  for (const name of missed) console.log(`not caught: ${name}`);
  process.exitCode = missed.length === 0 ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true });
}

function copyTree(): void {
  for (const name of readdirSync(root)) {
    if (!LEFT_OUT.has(name)) cpSync(join(root, name), join(copy, name), { recursive: true, filter: isSource });
  }
  mkdirSync(copy, { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
}

function isSource(path: string): boolean {
  return !path.endsWith("node_modules");
}

async function isCaught({ name, edits, isOfCampaigns }: Mutation): Promise<boolean> {
  const kept = new Map<string, string>();
  for (const edit of edits) apply(name, edit, kept);
  const { found, after, commands, rule } = await hunt(isOfCampaigns === true);
  for (const [file, text] of kept) writeFileSync(file, text);
  const told = found ? `yes, after ${after} histories, ${commands} commands: ${rule.replace(/ \{.*/s, "")}` : "NO";
  console.log(`${name}: ${told}`);
  return found;
}

/**
 * Edits a file in the temporary copy of the source tree. `kept` receives the text that the file had before its first
 * edit.
 */
function apply(name: string, { file, from, to }: Edit, kept: Map<string, string>): void {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  const found = text.split(from).length - 1;
  if (found !== 1) throw new Error(`${name}: ${file} holds the text to replace ${found} times`);
  if (!kept.has(path)) kept.set(path, text);
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
}

async function hunt(isOfCampaigns: boolean): Promise<Hunted> {
  const given = isOfCampaigns ? [String(OF_CAMPAIGNS_MAX), "47", "campaigns"] : [String(HISTORIES_MAX)];
  const hunting = Bun.spawn([process.execPath, "test/outreach/model/search-random-histories.ts", ...given], {
    cwd: copy,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([textOf(hunting.stdout), textOf(hunting.stderr), hunting.exited]);
  const last = out.trim().split("\n").at(-1) ?? "";
  if (!last.startsWith("{")) throw new Error(`the hunt broke off: ${err.slice(-2000)}`);
  return JSON.parse(last) as Hunted;
}

function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  return new Response(stream).text();
}
