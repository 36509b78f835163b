import type fastCheck from "fast-check";
import { KeyReused, VersionConflict } from "../../errors.ts";
import type { ExpectedVersion } from "../../event-store-interface.ts";
import { newEvents, take } from "./make-events-and-collect-results.ts";
import type { Runner } from "./test-runner-interface.ts";

/** Number of runs of a fast-check property. Each run opens a store, so there are fewer than fast-check's hundred. */
const RUNS = 15;
/** Time limit of the property test, in ms; a busy machine needs longer than the runner's five seconds. */
const TIMEOUT_MS = 1_200_000;

interface PlannedAppend {
  readonly stream: string;
  readonly expected: ExpectedVersion;
  readonly count: number;
  readonly key: { readonly key: string; readonly digest?: string } | undefined;
  /**
   * True if the caller awaits the outcome of this append before its next one, so that they do not share a transaction.
   */
  readonly waits: boolean;
}

type Outcome =
  { first: number; last: number; version: number; repeated: boolean } | { actual: number } | { reused: true };

const plannedAppend = (fc: typeof fastCheck): fastCheck.Arbitrary<PlannedAppend> =>
  fc.record({
    stream: fc.constantFrom("a", "b", "c"),
    expected: fc.oneof(fc.constantFrom<ExpectedVersion>("any", "none", "exists"), fc.nat({ max: 6 })),
    count: fc.integer({ min: 1, max: 3 }),
    key: fc.option(
      fc.record(
        { key: fc.constantFrom("k1", "k2", "k3"), digest: fc.constantFrom("one", "other") },
        { requiredKeys: ["key"] },
      ),
      { nil: undefined, freq: 3 },
    ),
    waits: fc.boolean(),
  });

/**
 * Creates the model of a log in twenty lines: a function that returns the expected outcome of each append, in the order
 * of their submission.
 */
function createModel(): (append: PlannedAppend) => Outcome {
  const versions = new Map<string, number>();
  const kept = new Map<string, { readonly digest: string | undefined; readonly outcome: Outcome }>();
  let head = 0;
  return ({ stream, expected, count, key }) => {
    const known = key === undefined ? undefined : kept.get(key.key);
    const digests = [known?.digest, key?.digest].filter((digest) => digest !== undefined);
    if (new Set(digests).size > 1) return { reused: true };
    if (known) return { ...known.outcome, repeated: true };
    const actual = versions.get(stream) ?? 0;
    const holds =
      expected === "any" ||
      (expected === "none" && actual === 0) ||
      (expected === "exists" && actual > 0) ||
      expected === actual;
    if (!holds) return { actual };
    const outcome = { first: head + 1, last: head + count, version: actual + count, repeated: false };
    head += count;
    versions.set(stream, outcome.version);
    if (key !== undefined) kept.set(key.key, { digest: key.digest, outcome });
    return outcome;
  };
}

export function modelContract({ describe, expect, fc, open, test }: Runner): void {
  describe("any interleaving of appends", () => {
    test(
      "gives the results of an in-memory model and leaves an intact chain",
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(plannedAppend(fc), { maxLength: 40 }), async (plan) => {
            await using store = await open();
            const model = createModel();
            const outcomes: Promise<Outcome>[] = [];
            for (const append of plan) {
              const { stream, expected, count, key, waits } = append;
              const outcome = store.append(stream, newEvents(count), { expected, ...key }).catch(refusal);
              outcomes.push(outcome);
              if (waits) await outcome;
            }
            expect(await Promise.all(outcomes)).toEqual(plan.map(model));

            const events = await take(store.read());
            expect(events.map((event) => event.position)).toEqual(events.map((_, index) => index + 1));
            expect(await store.verify()).toMatchObject({ ok: true, checked: events.length });
          }),
          { numRuns: RUNS },
        );
      },
      TIMEOUT_MS,
    );
  });
}

function refusal(error: unknown): Outcome {
  if (error instanceof VersionConflict) return { actual: error.actual };
  if (error instanceof KeyReused) return { reused: true };
  throw error;
}
