import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startPostgres, type PostgresServer } from "eventstore-lite/testing";
import { selfSigned } from "../networks/self-signed.ts";

export interface PostgresWithTls extends AsyncDisposable {
  readonly server: PostgresServer;
  /** Path of the certificate with which clients verify the test's server. It names only 127.0.0.1. */
  readonly certificate: string;
}

/**
 * Folder for the certificate. It is not below `/dev`, where Deno lets a program read only if the program may do
 * everything.
 */
const DISK = "/var/tmp";

const DAY_MS = 86_400_000;

export async function startPostgresWithTls(): Promise<PostgresWithTls> {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(DISK, "reachlog-certificate-"));
  stack.defer(() => rmSync(directory, { recursive: true }));
  const [certificate, key] = [join(directory, "server.crt"), join(directory, "server.key")];
  const identity = selfSigned("127.0.0.1", Date.now() + DAY_MS);
  writeFileSync(certificate, identity.cert);
  writeFileSync(key, identity.key, { mode: 0o600 });
  const settings = { ssl: "on", ssl_cert_file: certificate, ssl_key_file: key };
  const server = stack.use(await startPostgres({ settings }));
  const kept = stack.move();
  return { server, certificate, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
