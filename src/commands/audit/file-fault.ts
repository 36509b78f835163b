import { ServiceError } from "../../platform/service-error.ts";

/** The file to be imported cannot be read as a log. Nothing was imported. */
export function fileFault(line: number, reason: string): ServiceError {
  return new ServiceError("invalid", `line ${line}: ${reason}; nothing was imported`);
}
