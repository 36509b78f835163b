import { ServiceError } from "../platform/service-error.ts";
/** One thing that is wrong with the environment. `wanted` is what to write instead. */
export interface Fault {
  readonly variable: string;
  readonly problem: string;
  readonly wanted: string;
}

/** Lists every fault at once, one line each, so that an operator corrects the environment in one go. */
export function configurationError(faults: readonly Fault[]): ServiceError {
  const lines = faults.map(({ variable, problem, wanted }) => `${variable}: ${problem}; wanted: ${wanted}`);
  return new ServiceError("configuration", lines.join("\n"));
}

/**
 * Collects what is wrong while all parts of the configuration are read. A part that reports a fault
 * still returns something of the right shape: it is never used, because the faults are thrown at the end.
 */
export type Report = ReturnType<typeof createReport>;

export function createReport() {
  const faults: Fault[] = [];
  const warnings: string[] = [];
  return {
    faults,
    warnings,
    /** Hosts to which plain http is allowed, as the URL parser writes them. */
    plainHttpHosts: new Set<string>(),
    fault: (variable: string, problem: string, wanted: string): void => void faults.push({ variable, problem, wanted }),
    warn: (text: string): void => void warnings.push(text),
  };
}
