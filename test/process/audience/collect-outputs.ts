import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PROJECTION_NAMES } from "../../../projections/all.ts";
import { encodeState } from "../../../projections/encode-state.ts";
import { personalLinkOwner } from "../../../events/clicks-links-conversions.ts";
import { audit } from "../../../src/commands/audit.ts";
import { clicks, contacts, results } from "../../harness/in-process/operation-commands.ts";
import type { MakeCommand } from "../../../src/commands/shared/command.ts";
import { loadConfig } from "../../../src/config/config.ts";
import { parsePastName, unpackState } from "../../../src/projector/past-snapshots.ts";
import { openLog } from "../../../src/privacy/open-log.ts";
import { capture } from "../../harness/capture-command.ts";
import { BEARER, type Installation, type ListeningService } from "../../harness/process.ts";

/**
 * Texts in which a test looks for certain values, such as handles or codes of links, by the name of the file, output or
 * network that each text comes from.
 */
export type Texts = Readonly<Record<string, string>>;

/** Returns the output of a command that runs in this process. */
export async function outputOf({ env }: Installation, command: MakeCommand, ...args: string[]): Promise<string> {
  const { code, out, err } = await capture(command, args, { env });
  if (code !== 0) throw new Error(`${args.join(" ")} failed: ${err}`);
  return out;
}

/** Returns the bytes of all files in the service's folder, and the export of the log that needs no key. */
export async function readBytes(world: Installation): Promise<Texts> {
  const { directory } = world;
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(directory, name)).isFile(),
  );
  const bytes = files.map((name) => [name, readFileSync(join(directory, name), "latin1")] as const);
  return { ...Object.fromEntries(bytes), encrypted: await outputOf(world, audit, "export", "--encrypted") };
}

/** Returns the stored bytes of the encryption keys in the key file, by name. Keys on a server are not in that file. */
export function readKeys({ directory }: Installation): ReadonlyMap<string, string> {
  using database = new DatabaseSync(join(directory, "reachlog.keys.sqlite"), { readOnly: true });
  const rows = database.prepare("SELECT name, ciphertext FROM secrets JOIN ciphertexts USING (slot)").all();
  return new Map(rows.map(({ name, ciphertext }) => [String(name), toText(ciphertext as Uint8Array)]));
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("latin1");
}

/**
 * Returns what the service shows, as texts: log lines, metrics, statistics, and the output of the commands `results`
 * and `clicks`. The test searches these texts for personal data.
 */
export async function readFigures(world: Installation, service: ListeningService): Promise<Texts> {
  return {
    log: service.log(),
    metrics: await (await service.get("/metrics", { headers: BEARER })).text(),
    stats: await (await service.get("/social/stats", { headers: BEARER })).text(),
    results: await outputOf(world, results, "--by", "link", "--json"),
    clicks: await outputOf(world, clicks, "--json"),
  };
}

/** Returns everything that the networks received. They learn the browser of each click, and Meta also the address. */
export function readNetworks({ sandbox }: Installation): Texts {
  const { meta, slack, telegram } = sandbox;
  return {
    ads: JSON.stringify([...meta.events.kept]),
    chat: JSON.stringify(slack.messages.kept),
    messaging: JSON.stringify(telegram.messages.kept),
  };
}

/** All events, decrypted, in each export format, and the contacts as they are shown. */
export async function readDecrypted(world: Installation): Promise<Texts> {
  return {
    events: await outputOf(world, audit, "export"),
    csv: await outputOf(world, audit, "export", "--format", "csv"),
    cloudevents: await outputOf(world, audit, "export", "--format", "cloudevents"),
    contacts: await outputOf(world, contacts, "--json"),
    ...(await readStates(world)),
  };
}

/** The stored states of all projections, decrypted, including past states. */
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

/** Returns which of these codes of readers' own links have clicks that can still be decrypted. */
export async function readableLinks({ env }: Installation, codes: readonly string[]): Promise<readonly string[]> {
  await using log = await openLog(loadConfig(env, () => ""));
  const { keyring } = log;
  const readable: string[] = [];
  for (const code of codes)
    if ((await keyring.findUsable(keyring.refsOf({ id: personalLinkOwner(code).id }))).length > 0) readable.push(code);
  return readable;
}

/** Returns each of the `needles` that a text contains, with the name of the text. */
export function find(needles: readonly string[], texts: Texts): readonly string[] {
  return Object.entries(texts).flatMap(([where, text]) =>
    needles.filter((needle) => text.includes(needle)).map((needle) => `${needle} in ${where}`),
  );
}
