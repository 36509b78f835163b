const REDACTED = "[redacted]";

/** A value that logs, JSON, templates and debuggers show as `[redacted]`; only `reveal()` gives it away. */
export interface Secret {
  reveal(): string;
  toString(): string;
  toJSON(): string;
}

/** The value lives in a closure, so no walk over properties can find it. */
export function secret(value: string): Secret {
  const redacted = (): string => REDACTED;
  return Object.freeze({
    reveal: () => value,
    toString: redacted,
    toJSON: redacted,
    [Symbol.for("nodejs.util.inspect.custom")]: redacted,
  });
}
