import { keysIn } from "../../../src/privacy/key-store.ts";
import { openKeyring, type Keyring } from "../../../src/privacy/keyring.ts";
import type { SecretPlace } from "../../../src/vault/secret-database.ts";
import { openSecretStore } from "../../../src/vault/secret-store.ts";
import { sqliteSecrets } from "../../../src/vault/sqlite-secrets.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Test harness: keys of personal data in a separate place, by default a file, and a clock that the test sets. */
export interface KeysHarness extends AsyncDisposable {
  readonly file: string;
  now: number;
  master: Uint8Array;
  /** Opens the same keys as another process does. */
  open(): Promise<Keyring>;
}

export function openKeys(elsewhere?: SecretPlace): KeysHarness {
  const folder = temporaryFolder();
  const opened = new AsyncDisposableStack();
  const world: KeysHarness = {
    file: folder.file("keys/log.keys.sqlite"),
    now: Date.parse("2026-11-20T10:00:00.000Z"),
    master: new Uint8Array(32).fill(3),
    async open() {
      const { file, master } = world;
      const renew = async (): Promise<Uint8Array> => world.master;
      const secrets = opened.use(await openSecretStore({ place: elsewhere ?? sqliteSecrets(file), master, renew }));
      return openKeyring(keysIn(secrets), () => world.now);
    },
    async [Symbol.asyncDispose]() {
      await opened.disposeAsync();
      folder[Symbol.dispose]();
    },
  };
  return world;
}
