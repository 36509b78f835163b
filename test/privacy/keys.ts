import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openKeyring, type Keyring } from "../../src/privacy/keyring.ts";

/** A key file in a folder of its own, and a clock that the test sets. */
export interface KeysWorld extends Disposable {
  readonly file: string;
  now: number;
  master: Uint8Array;
  /** The same file, as another process opens it. */
  open(): Keyring;
}

export function openKeysWorld(): KeysWorld {
  const directory = mkdtempSync(join(tmpdir(), "reachlog-keys-"));
  const opened: Keyring[] = [];
  const world: KeysWorld = {
    file: join(directory, "keys", "log.keys.sqlite"),
    now: Date.parse("2026-11-20T10:00:00.000Z"),
    master: new Uint8Array(32).fill(3),
    open() {
      const keyring = openKeyring(
        world.file,
        () => world.master,
        () => world.now,
      );
      opened.push(keyring);
      return keyring;
    },
    [Symbol.dispose]() {
      for (const keyring of opened) keyring[Symbol.dispose]();
      rmSync(directory, { recursive: true });
    },
  };
  return world;
}
