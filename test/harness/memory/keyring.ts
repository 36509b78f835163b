import { openKeyring, type Keyring } from "../../../src/privacy/keyring.ts";
import { temporaryFolder } from "../temporary.ts";

/** A key file in a folder of its own, and a clock that the test sets. */
export interface KeysHarness extends Disposable {
  readonly file: string;
  now: number;
  master: Uint8Array;
  /** The same file, as another process opens it. */
  open(): Keyring;
}

export function openKeys(): KeysHarness {
  const folder = temporaryFolder();
  const opened: Keyring[] = [];
  const world: KeysHarness = {
    file: folder.file("keys/log.keys.sqlite"),
    now: Date.parse("2026-11-20T10:00:00.000Z"),
    master: new Uint8Array(32).fill(3),
    open() {
      const { file, master } = world;
      const keyring = openKeyring({ file, master, renew: () => world.master }, () => world.now);
      opened.push(keyring);
      return keyring;
    },
    [Symbol.dispose]() {
      for (const keyring of opened) keyring[Symbol.dispose]();
      folder[Symbol.dispose]();
    },
  };
  return world;
}
