import { closeSync, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import { decodeUtf8, NotUtf8 } from "../platform/decode-utf8.ts";
import { readSetting, type RawEnvironment } from "./environment.ts";
import type { Report } from "./configuration-error.ts";
import { listSecretFiles } from "./named-webhooks.ts";
import { variables } from "./schema.ts";

/** Maximum size of a secret's file, in bytes. No secret is that long, so a larger file is the wrong one. */
const BYTES_MAX = 65_536;

/** Mode bit of a file that every user of the machine may read. */
const OTHERS_READ = 0o004;

/**
 * Matches paths at which systemd, Docker and Kubernetes provide secrets, in memory. These programs decide who may read
 * the files, so the operator is not warned of the file mode.
 */
const MOUNTED = /^\/run\//;

/**
 * Reads each secret `NAME` from the file that `NAME_FILE` names, for example a systemd credential. Faults repeat
 * neither path nor content, because an operator may have put the secret where the path belongs.
 */
export function readSecretFiles(env: RawEnvironment, report: Report) {
  const read: Record<string, string> = {};
  const failed = new Set<string>();
  for (const [file, name] of listSecretFiles(env)) {
    const path = readSetting(env, file);
    if (path === undefined) continue;
    const wanted = `the path of a file that holds ${variables.get(name)?.description ?? "it"}`;
    if (readSetting(env, name) !== undefined) {
      report.fault(file, `set together with ${name}`, "one of the two");
      continue;
    }
    const found = readSecret(path);
    if (found.isOpen) report.warn(`${file}: every user of this machine can read that file; chmod o= keeps them out.`);
    if ("text" in found) read[name] = found.text;
    else {
      failed.add(name);
      report.fault(file, found.problem, wanted);
    }
  }
  const fault: Report["fault"] = (variable, problem, wanted) => {
    // If a secret's file was reported, the secret is not reported as missing too.
    if (failed.has(variable)) return;
    report.fault(Object.hasOwn(read, variable) ? `${variable}_FILE` : variable, problem, wanted);
  };
  // The environment with the secrets added. The report names a fault in a secret from a file by `NAME_FILE`.
  return { env: { ...env, ...read }, report: { ...report, fault } };
}

type Found = ({ readonly text: string } | { readonly problem: string }) & { readonly isOpen: boolean };

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  ENOTDIR: "there is no such file",
  EACCES: "this user may not read that file",
  EISDIR: "that is a folder",
};

function readSecret(path: string): Found {
  try {
    const descriptor = openSync(path, "r");
    try {
      const { mode } = fstatSync(descriptor);
      const isOpen = (mode & OTHERS_READ) !== 0 && !MOUNTED.test(realpathSync(path));
      const bytes = readStart(descriptor);
      if (bytes === undefined) return { problem: `that file holds more than ${BYTES_MAX} bytes`, isOpen };
      const text = decodeUtf8(bytes);
      return text.trim() === "" ? { problem: "that file is empty", isOpen } : { text, isOpen };
    } finally {
      closeSync(descriptor);
    }
  } catch (fault) {
    if (fault instanceof NotUtf8) return { problem: `that file is ${fault.message}`, isOpen: false };
    const { code = "" } = fault as NodeJS.ErrnoException;
    return { problem: PROBLEMS[code] ?? `that file cannot be read (${code})`, isOpen: false };
  }
}

/** Reads a file or pipe to its end; undefined if it is too large. */
function readStart(descriptor: number): Uint8Array | undefined {
  const bytes = Buffer.alloc(BYTES_MAX + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < bytes.length;) {
    read = readSync(descriptor, bytes, length, bytes.length - length, null);
    length += read;
  }
  return length > BYTES_MAX ? undefined : bytes.subarray(0, length);
}
