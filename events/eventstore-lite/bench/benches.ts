import { append1000 } from "./append-batches-of-1000.ts";
import { append64 } from "./append-by-64-callers.ts";
import { append1000Postgres, append64Postgres } from "./append-postgres.ts";
import type { Benches } from "./run-benches.ts";
import { dumpPostgres } from "./append-during-dump.ts";
import { peers, peersPostgres } from "./compare-peer-stores.ts";
import { read } from "./read.ts";
import { verify } from "./verify.ts";

export const storeBenches: Benches = {
  "append-64": append64,
  "append-1000": append1000,
  "append-64-postgres": append64Postgres,
  "append-1000-postgres": append1000Postgres,
  "dump-postgres": dumpPostgres,
  verify,
  read,
};

export const peerBenches: Benches = { peers, "peers-postgres": peersPostgres };
