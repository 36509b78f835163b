import { resolve } from "node:path";

/** Plain sentences for the system's errors about files, by code. */
const SENTENCES: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `there is no file or folder ${path}`,
  ENOTDIR: (path) => `${path} passes through something that is not a folder`,
  EISDIR: (path) => `${path} is a folder, not a file`,
  EEXIST: (path) => `${path} exists already: nothing is overwritten`,
  EACCES: (path) => `this user has no permission for ${path}`,
  EPERM: (path) => `this user has no permission for ${path}`,
  EROFS: (path) => `${path} is on a read-only file system`,
  ENOSPC: (path) => `no space is left to write ${path}`,
};

/** Runs `work`, and adds the path to a system error that it throws. */
export function withPath<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (fault) {
    throw addPath(path, fault);
  }
}

/** Returns a system error with the path; any other fault stays as it is. */
export function addPath(path: string, fault: unknown): unknown {
  return fault instanceof Error && systemCode(fault) !== undefined ? Object.assign(fault, { path }) : fault;
}

/** Returns the code of a system error, such as `ENOENT`; undefined for any other fault. */
export function systemCode(fault: unknown): string | undefined {
  const code = (fault as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" && /^E[A-Z]+$/.test(code) ? code : undefined;
}

/**
 * Returns a plain sentence with the path if the fault's `cause`, or else the fault itself, is a system error about a
 * file, such as ENOENT. Otherwise returns the fault's message.
 */
export function describeFault(fault: Error): string {
  const system = systemCode(fault.cause) === undefined ? fault : fault.cause;
  const { path } = system as { readonly path?: unknown };
  const say = SENTENCES[systemCode(system) ?? ""];
  return say === undefined || typeof path !== "string" ? fault.message : say(resolve(path));
}
