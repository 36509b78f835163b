import type fastCheck from "fast-check";
import type { EventStore } from "../../event-store-interface.ts";

/** Opens a new, empty store. `clock` (milliseconds since 1970, UTC) replaces the real one in tests about time. */
export type OpenStore = (options?: { readonly clock?: () => number }) => Promise<EventStore>;

type Work = () => unknown;

/** The functions of a test runner, such as `bun:test`, Vitest or Jest, and the store to test. */
export interface Runner {
  readonly open: OpenStore;
  describe(this: void, name: string, define: () => void): void;
  test(this: void, name: string, work: Work, timeoutMs?: number): void;
  beforeAll(this: void, work: Work): void;
  afterAll(this: void, work: Work): void;
  readonly expect: Expect;
  /**
   * The default export of `fast-check`. The caller passes it in, so that programs that use only other tools for tests
   * need not install it.
   */
  readonly fc: typeof fastCheck;
}

export interface Expect {
  (actual: unknown): {
    toBe(expected: unknown): void;
    toBeDefined(): void;
    toBeUndefined(): void;
    toBeInstanceOf(expected: new (...args: never[]) => unknown): void;
    toEqual(expected: unknown): void;
    toStrictEqual(expected: unknown): void;
    toMatchObject(expected: object): void;
    toHaveLength(expected: number): void;
  };
  any(expected: new (...args: never[]) => unknown): unknown;
  stringMatching(expected: RegExp): unknown;
}
