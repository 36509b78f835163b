import { ServiceError } from "../platform/service-error.ts";

/** What is wrapped was wrapped with another master key than the one given. Ids tell keys apart and disclose nothing else. */
export class KeyMismatch extends ServiceError<"configuration"> {
  override readonly name = "KeyMismatch";
  constructor(place: string, given: string, wrappedWith: readonly string[]) {
    const wanted = wrappedWith.length === 0 ? "another key" : `the key ${wrappedWith.join(" or ")}`;
    const remedy = "give the right one (REACHLOG_KEY or the key file)";
    super("configuration", `${place} was encrypted with ${wanted}, not with ${given}: ${remedy}`);
  }
}

/** The key is the right one, and yet something does not open: it was altered, or an older one was put in its place. */
export function damaged(place: string, what: string): ServiceError {
  const remedy = "it was altered; restore it from a backup";
  return new ServiceError("damaged", `${place}: ${what} does not open with the right key: ${remedy}`);
}

/** The master key cannot be used, or not for what is there. */
export function keyError(sentence: string): ServiceError {
  return new ServiceError("configuration", sentence);
}
