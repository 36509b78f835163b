// This file has the part of the upgrade check that reads what earlier versions stored. It does not verify that the data
// is intact.
import { existsSync } from "node:fs";
import { maintainSqliteLog, type ExaminedLog } from "eventstore-lite";
import { codec } from "../../events/event-types-and-codec.ts";
import { InvalidEvent } from "../../events/define-event.ts";
import type { Config } from "../config/config.ts";
import { locateSegments } from "../networks/s3/open-segment-storage.ts";
import { finding, type Finding } from "./examination-finding.ts";
import type { SecretPlace } from "../vault/secret-database.ts";
import { locateFiles, locateLog } from "../privacy/locate-log.ts";

/** Examines if this version of reachlog can read the log, the vault and the keys. Changes nothing. */
export async function examineStored(config: Config): Promise<readonly Finding[]> {
  return [...(await examineLog(config)), ...(await examineSecrets(config))];
}

/**
 * Sentence for a log on PostgreSQL, which the upgrade check does not examine: that would need a database role with the
 * right to change tables.
 */
const ON_A_SERVER =
  "on PostgreSQL, not examined: the first start updates its tables, and refuses an event or a table of a newer version";

async function examineLog(config: Config): Promise<readonly Finding[]> {
  const { log: place } = config;
  if (place.kind === "postgres") return [{ what: "log", state: "ok", detail: ON_A_SERVER }];
  const { file } = place;
  if (!existsSync(file))
    return [{ what: "log", state: "missing", detail: `${file} is missing; the first start creates it` }];
  const segments = locateSegments(place.archive ?? locateFiles(place).segments, config);
  const examine = () => maintainSqliteLog(file).examine(segments);
  const log = await finding("log", async () => checkFormat(await examine()));
  return log.state === "ok" ? [log, await finding("events", async () => checkEvents(await examine()))] : [log];
}

function checkFormat({ format, currentFormat }: ExaminedLog): string {
  if (format > currentFormat) {
    throw new Error(
      `it has format ${format}, and this version knows formats up to ${currentFormat}: a newer one wrote it`,
    );
  }
  if (format === currentFormat) return `format ${format}, the current one`;
  return `format ${format}: the first start converts it to ${currentFormat}, which older versions cannot open; back up first`;
}

/**
 * Checks that this version of reachlog can read the newest event of each type. The newest event has the highest schema
 * version of its type, so the older ones can be read too.
 */
async function checkEvents({ newest }: ExaminedLog): Promise<string> {
  const faults: string[] = [];
  for (const event of newest) {
    try {
      await codec.decode([event]);
    } catch (fault) {
      if (!(fault instanceof InvalidEvent)) throw fault;
      faults.push(fault.message);
    }
  }
  if (faults.length > 0) throw new Error(faults.join("; "));
  return `this version can read the newest event of each of ${newest.length} types`;
}

/**
 * Checks for a log in files that vault and keys can be opened, and changes nothing. Finds a fault if they have another
 * version's format. Returns no findings for a log on a server.
 */
async function examineSecrets(config: Config): Promise<readonly Finding[]> {
  // To open secrets on a server would create their tables, if they are missing.
  if (config.log.kind === "postgres") return [];
  const { vault, keys } = locateLog(config).secrets;
  const examine = (what: string, place: SecretPlace): Promise<Finding> =>
    finding(what, async () => {
      if (!(await place.isThere())) return { missing: `${place.name} is missing; the first start creates it` };
      await using _open = await place.open();
      return `${place.name} has the format of this version`;
    });
  return [await examine("vault", vault), await examine("keys", keys)];
}
