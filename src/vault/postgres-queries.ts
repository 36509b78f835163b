import type { Ask } from "./postgres-transaction.ts";
import {
  toLabel,
  type Claim,
  type Encrypted,
  type LabelRow,
  type SecretChanges,
  type SecretLabel,
  type SecretRow,
  type SecretRows,
  type WrappedKey,
  type NotesAndClaims,
} from "./secret-database.ts";

/**
 * Increases the revision of a set of secrets, and returns the label with the former revision. No other transaction can
 * increase it until this one ends.
 */
export async function countUp(ask: Ask): Promise<SecretLabel> {
  const rows = await ask<LabelRow>(
    `UPDATE reachlog_vault.stores SET revision = revision + 1 WHERE name = $1
     RETURNING revision - 1 AS changes, log, epoch, place`,
  );
  return toLabel(rows);
}

export async function readLabel(ask: Ask): Promise<SecretLabel> {
  const query = "SELECT revision AS changes, log, epoch, place FROM reachlog_vault.stores WHERE name = $1";
  return toLabel(await ask<LabelRow>(query));
}

/** Character that sorts after every character of a secret's name, to end a range of names with the same prefix. */
const LAST = "\u{10ffff}";

export function rowsIn(ask: Ask): Omit<SecretRows, "revision" | "label"> {
  const listNames = async (condition: string, prefix: string): Promise<readonly string[]> => {
    const rows = await ask<{ name: string }>(
      `SELECT name FROM reachlog_vault.secrets WHERE store = $1 AND name >= $2 AND name < $3 ${condition} ORDER BY name`,
      prefix,
      prefix + LAST,
    );
    return rows.map(({ name }) => name);
  };
  return {
    // Passes the names as an array and not with IN: without statistics the planner joins IN with a scan of all secrets.
    secrets: (names) =>
      ask<SecretRow>(
        `SELECT name, version, key, ciphertext FROM reachlog_vault.secrets
         WHERE store = $1 AND name = ANY (ARRAY(SELECT json_array_elements_text($2::text::json)))`,
        JSON.stringify(names),
      ),
    names: (prefix) => listNames("", prefix),
    buried: (prefix) => listNames("AND key IS NULL", prefix),
    dataKeys: () => ask<WrappedKey>("SELECT id, master, wrapped FROM reachlog_vault.data_keys WHERE store = $1"),
  };
}

/** Subquery that passes many rows as one parameter, $2, because a query for each row would cost ten times as much. */
const GIVEN = `(SELECT name, key, decode(ciphertext, 'base64') AS ciphertext
  FROM json_to_recordset($2::text::json) AS given (name text, key text, ciphertext text)) AS given`;

function toJsonRows(secrets: readonly (Encrypted | SecretRow)[]): string {
  const toText = (bytes: Uint8Array | null): string | null => bytes && Buffer.from(bytes).toString("base64");
  return JSON.stringify(secrets.map((secret) => ({ ...secret, ciphertext: toText(secret.ciphertext) })));
}

export function changesIn(ask: Ask): Omit<SecretChanges, keyof SecretRows> {
  return {
    async add(secrets) {
      const { count } = await ask(
        `INSERT INTO reachlog_vault.secrets (store, name, version, key, ciphertext)
         SELECT $1, given.name, 1, given.key, given.ciphertext FROM ${GIVEN} ON CONFLICT DO NOTHING`,
        toJsonRows(secrets),
      );
      return count;
    },
    async replace(secret, expected) {
      const { count } = await ask(
        `UPDATE reachlog_vault.secrets AS secret
         SET version = version + 1, key = given.key, ciphertext = given.ciphertext FROM ${GIVEN}
         WHERE store = $1 AND secret.name = given.name AND version = $3 AND secret.key IS NOT NULL`,
        toJsonRows([secret]),
        expected,
      );
      return count === 1;
    },
    async reencrypt(secrets) {
      await ask(
        `UPDATE reachlog_vault.secrets AS secret SET key = given.key, ciphertext = given.ciphertext FROM ${GIVEN}
         WHERE store = $1 AND secret.name = given.name`,
        toJsonRows(secrets),
      );
    },
    async remove(name) {
      await ask("DELETE FROM reachlog_vault.secrets WHERE store = $1 AND name = $2", name);
    },
    async bury(name) {
      await ask(
        `INSERT INTO reachlog_vault.secrets (store, name, version) VALUES ($1, $2, 0)
         ON CONFLICT (store, name) DO UPDATE SET key = NULL, ciphertext = NULL`,
        name,
      );
    },
    async addDataKey({ id, master, wrapped }) {
      const query = "INSERT INTO reachlog_vault.data_keys (store, id, master, wrapped) VALUES ($1, $2, $3, $4)";
      await ask(query, id, master, wrapped);
    },
    async removeDataKeys(master) {
      const query = "DELETE FROM reachlog_vault.data_keys WHERE store = $1 AND master = coalesce($2, master)";
      await ask(query, master ?? null);
    },
    claims: () => ask<Claim>("SELECT name, until FROM reachlog_vault.claims WHERE store = $1"),
    async relabel({ changes, binding }) {
      const query = "UPDATE reachlog_vault.stores SET revision = $2, log = $3, epoch = $4, place = $5 WHERE name = $1";
      await ask(query, changes + 1, binding?.log ?? null, binding?.epoch ?? null, binding?.place ?? null);
    },
    async clear() {
      for (const table of ["data_keys", "secrets", "claims"]) {
        await ask(`DELETE FROM reachlog_vault.${table} WHERE store = $1`);
      }
    },
    async insert(secrets, claims) {
      await ask(
        `INSERT INTO reachlog_vault.secrets (store, name, version, key, ciphertext)
         SELECT $1, name, version, key, decode(ciphertext, 'base64')
         FROM json_to_recordset($2::text::json) AS given (name text, version bigint, key text, ciphertext text)`,
        toJsonRows(secrets),
      );
      await ask(
        `INSERT INTO reachlog_vault.claims (store, name, until)
         SELECT $1, name, until FROM json_to_recordset($2::text::json) AS given (name text, until bigint)`,
        JSON.stringify(claims),
      );
    },
  };
}

/**
 * Returns the queries for notes (texts that are not secret) and claims (names that one process can take until a given
 * time). None of them changes the revision of the secrets.
 */
export function notesAndClaimsIn(ask: Ask): NotesAndClaims {
  return {
    async note(name) {
      const query = "SELECT note FROM reachlog_vault.notes WHERE store = $1 AND name = $2";
      const [row] = await ask<{ note: string }>(query, name);
      return row?.note;
    },
    async keepNote(name, text) {
      if (text === undefined) await ask("DELETE FROM reachlog_vault.notes WHERE store = $1 AND name = $2", name);
      else
        await ask(
          `INSERT INTO reachlog_vault.notes (store, name, note) VALUES ($1, $2, $3)
           ON CONFLICT (store, name) DO UPDATE SET note = excluded.note`,
          name,
          text,
        );
    },
    async claim(name, until, now) {
      // Deletes some of the expired claims at each new claim, so that a flood of claims cannot fill the disk.
      const { count } = await ask(
        `WITH over AS (DELETE FROM reachlog_vault.claims WHERE store = $1 AND name IN (
           SELECT name FROM reachlog_vault.claims WHERE store = $1 AND until <= $4 AND name <> $2
           LIMIT 100 FOR UPDATE SKIP LOCKED))
         INSERT INTO reachlog_vault.claims AS claim (store, name, until) VALUES ($1, $2, $3)
         ON CONFLICT (store, name) DO UPDATE SET until = excluded.until WHERE claim.until <= $4`,
        name,
        until,
        now,
      );
      return count === 1;
    },
    async isClaimed(name, now) {
      const { count } = await ask(
        "SELECT FROM reachlog_vault.claims WHERE store = $1 AND name = $2 AND until > $3",
        name,
        now,
      );
      return count > 0;
    },
  };
}
