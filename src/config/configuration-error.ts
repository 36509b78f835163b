import { ServiceError } from "../platform/service-error.ts";
/** A fault of one setting in the environment. `wanted` is what to write instead. */
export interface Fault {
  readonly variable: string;
  readonly problem: string;
  readonly wanted: string;
}

/**
 * Creates the error that lists every fault at once, one line each, so that an operator corrects the environment in one
 * go.
 */
export function configurationError(faults: readonly Fault[]): ServiceError {
  const lines = faults.map(({ variable, problem, wanted }) => `${variable}: ${problem}; wanted: ${wanted}`);
  return new ServiceError("configuration", lines.join("\n"));
}

/**
 * Collects faults while all parts of the configuration are read. A part with a fault still returns a value of its type.
 * No value is used, because the faults are thrown once all parts are read.
 */
export type Report = ReturnType<typeof createReport>;

export function createReport() {
  const faults: Fault[] = [];
  const warnings: string[] = [];
  return {
    faults,
    warnings,
    /** Hosts for which the operator allows plain http, in the spelling of the URL parser. */
    plainHttpHosts: new Set<string>(),
    fault: (variable: string, problem: string, wanted: string): void => void faults.push({ variable, problem, wanted }),
    warn: (text: string): void => void warnings.push(text),
  };
}
