import { existsSync, readFileSync } from "node:fs";

/** Where Linux tells a process its own limits; other systems have no such file. */
const LIMITS = "/proc/self/limits";

const WARNING =
  "core dumps are on: a crash of the runtime itself would write the service's memory, and all secrets in it, to a file; " +
  "start it with ulimit -c 0 (systemd: LimitCORE=0; containers: --ulimit core=0)";

/** What to know of crash dumps, which a program of this runtime cannot switch off itself; undefined: they are off. */
export function coreDumpWarning(): string | undefined {
  if (!existsSync(LIMITS)) return undefined;
  const soft = /^Max core file size\s+(\S+)/m.exec(readFileSync(LIMITS, "utf8"))?.[1];
  return soft === undefined || soft === "0" ? undefined : WARNING;
}
