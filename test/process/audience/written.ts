import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PROJECTION_NAMES } from "../../../projections/all.ts";
import { encodeState } from "../../../projections/snapshot.ts";
import { personalLinkOwner } from "../../../events/tracking.ts";
import { audit } from "../../../src/commands/audit.ts";
import { clicks, contacts } from "../../harness/memory/operation-commands.ts";
import { results } from "../../../src/commands/results.ts";
import type { MakeCommand } from "../../../src/commands/shared/command.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { parsePastName, unpackState } from "../../../src/projector/snapshots.ts";
import { openLog } from "../../../src/privacy/open-log.ts";
import { capture } from "../../harness/capture.ts";
import { BEARER, type Installation, type Running } from "../../harness/process.ts";

/** Texts by where they stand. */
export type Texts = Readonly<Record<string, string>>;

/** The output of a command that is run in this process. */
export async function outputOf({ env }: Installation, command: MakeCommand, ...args: string[]): Promise<string> {
  const { code, out, err } = await capture(command, args, { env });
  if (code !== 0) throw new Error(`${args.join(" ")} failed: ${err}`);
  return out;
}

/** Every byte of every file in the service's folder, and what needs no key to be read. */
export async function readBytes(world: Installation): Promise<Texts> {
  const { directory } = world;
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(directory, name)).isFile(),
  );
  const bytes = files.map((name) => [name, readFileSync(join(directory, name), "latin1")] as const);
  return { ...Object.fromEntries(bytes), encrypted: await outputOf(world, audit, "export", "--encrypted") };
}

/** The keys of personal data by name, as the bytes in which a file holds them; those on a server are not looked at. */
export function readKeys({ directory }: Installation): ReadonlyMap<string, string> {
  using database = new DatabaseSync(join(directory, "reachlog.keys.sqlite"), { readOnly: true });
  const rows = database.prepare("SELECT name, ciphertext FROM secrets JOIN ciphertexts USING (slot)").all();
  return new Map(rows.map(({ name, ciphertext }) => [String(name), toText(ciphertext as Uint8Array)]));
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

/** What the service says of itself and of clicks, to operators and to other programs. */
export async function readFigures(world: Installation, service: Running): Promise<Texts> {
  return {
    log: service.log(),
    metrics: await (await service.get("/metrics", { headers: BEARER })).text(),
    stats: await (await service.get("/social/stats", { headers: BEARER })).text(),
    results: await outputOf(world, results, "--by", "link", "--json"),
    clicks: await outputOf(world, clicks, "--json"),
  };
}

/** What the networks were told, which hear of each click by what browser, and Meta from which address. */
export function readNetworks({ sandbox }: Installation): Texts {
  const { meta, slack, telegram } = sandbox;
  return {
    ads: JSON.stringify([...meta.events.kept]),
    chat: JSON.stringify(slack.messages.kept),
    messaging: JSON.stringify(telegram.messages.kept),
  };
}

/** All events, decrypted, in each form of the export, and what is shown of contacts. */
export async function readDecrypted(world: Installation): Promise<Texts> {
  return {
    events: await outputOf(world, audit, "export"),
    csv: await outputOf(world, audit, "export", "--format", "csv"),
    cloudevents: await outputOf(world, audit, "export", "--format", "cloudevents"),
    contacts: await outputOf(world, contacts, "--json"),
    ...(await readStates(world)),
  };
}

/** The stored states of all projections, decrypted, those of the past among them. */
export async function readStates({ env }: Installation): Promise<Texts> {
  await using log = await openLog(loadConfig(env, () => ""));
  const texts: Record<string, string> = {};
  for (const { name } of await log.snapshots.list("")) {
    const projection = parsePastName(name)?.projection ?? name;
    if (!PROJECTION_NAMES.some((known) => known === projection)) continue;
    const state = (await log.snapshots.load(name))?.state ?? "";
    if (state !== "") texts[`state ${name}`] = encodeState(await unpackState(state));
  }
  return texts;
}

/** Those of the links of a reader's own whose clicks can still be decrypted. */
export async function readableLinks({ env }: Installation, codes: readonly string[]): Promise<readonly string[]> {
  await using log = await openLog(loadConfig(env, () => ""));
  const { keyring } = log;
  const readable: string[] = [];
  for (const code of codes)
    if ((await keyring.findUsable(keyring.refsOf({ id: personalLinkOwner(code).id }))).length > 0) readable.push(code);
  return readable;
}

/** Each needle that a text holds, and where. */
export function find(needles: readonly string[], texts: Texts): readonly string[] {
  return Object.entries(texts).flatMap(([where, text]) =>
    needles.filter((needle) => text.includes(needle)).map((needle) => `${needle} in ${where}`),
  );
}
