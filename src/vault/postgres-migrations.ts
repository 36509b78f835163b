/** Where in the database the tables of secrets are: apart from the log, so that a role or a dump can leave them out. */
export const SCHEMA = "reachlog_vault";

/**
 * Each brings the tables to the next format. One that was released is never changed.
 *
 * What is emptied or deleted here stays in dead rows until they are vacuumed, and in the write-ahead log, on standbys and
 * in backups for as long as those are kept: encrypted with the data key of then, which only the master key of then opens.
 * So the rows are vacuumed soon; KEYS_DATABASE_URL takes the keys of personal data to a database whose backups are short-lived;
 * and whoever exchanges the master key and destroys the former one has destroyed all that was deleted before, but for
 * copies of the time in which both were good: these hold both.
 */
export const MIGRATIONS: readonly string[] = [
  `
  -- The sets of secrets. Whoever changes one counts its revision up, and so is the only one who changes it.
  CREATE TABLE stores (name text COLLATE "C" PRIMARY KEY, revision bigint NOT NULL) WITH (fillfactor = 50);
  INSERT INTO stores VALUES ('vault', 0), ('keys', 0);

  -- One data key; more than one row only while the master key is exchanged.
  CREATE TABLE data_keys (
    store text COLLATE "C" NOT NULL,
    id text NOT NULL,
    master text NOT NULL,
    wrapped bytea NOT NULL,
    PRIMARY KEY (store, id, master)
  );

  CREATE TABLE secrets (
    store text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    key text, -- the id of the data key
    ciphertext bytea, -- NULL for what is gone
    PRIMARY KEY (store, name)
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1);

  -- What may be used once.
  CREATE TABLE claims (
    store text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    until bigint NOT NULL, -- milliseconds since 1970, UTC: it is remembered until then
    PRIMARY KEY (store, name)
  );
  CREATE INDEX claims_until ON claims (store, until);`,
];
