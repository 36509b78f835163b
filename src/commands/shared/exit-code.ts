import { classifyError } from "../../log/classify-store-error.ts";
import type { ErrorKind } from "../../platform/service-error.ts";
import { systemCode } from "../../platform/describe-system-errors.ts";
import { EXIT } from "./terminal-answers-and-exit-codes.ts";

/** Exit code of each kind of failure. Undefined for a bug or a failing machine, whose stack and cause are shown. */
const EXIT_CODES: Readonly<Record<ErrorKind, number | undefined>> = {
  usage: EXIT.usage,
  configuration: EXIT.config,
  damaged: EXIT.config,
  invalid: EXIT.fault,
  not_found: EXIT.fault,
  conflict: EXIT.fault,
  busy: EXIT.temporary,
  overloaded: EXIT.temporary,
  full: EXIT.temporary,
  closed: undefined,
  in_doubt: undefined,
  unavailable: EXIT.temporary,
  rate_limited: EXIT.fault,
  unauthorized: EXIT.fault,
  rejected: EXIT.fault,
  stopped: EXIT.fault,
};

/** Returns the exit code of a failure whose cause an operator can remove; undefined for any other. */
export function toExitCode(fault: unknown): number | undefined {
  const kind = classifyError(fault);
  if (kind !== undefined) return EXIT_CODES[kind];
  const code = systemCode(fault);
  // On a read-only file system the service cannot write any file, so the configuration is at fault.
  if (code === "EROFS") return EXIT.config;
  // The code of a system error, such as a missing file or a port in use, means that the operator can correct it.
  return code === undefined ? undefined : EXIT.fault;
}
