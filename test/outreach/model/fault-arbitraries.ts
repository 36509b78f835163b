import * as fc from "fast-check";
import type { Answer } from "../../harness/in-process/social-network.ts";
import { HOUR_MS, MINUTE_MS, type ReadFault } from "./perform-acts.ts";
import { SETTLE_MS } from "./instance.ts";
import type { Fate } from "./simulated-process.ts";

export const fate: fc.Arbitrary<Fate> = fc.record({
  what: fc.constantFrom("die", "pause"),
  calls: fc.nat(40),
  when: fc.constantFrom("before", "behind"),
});

/**
 * Maximum delay in ms after which the simulated network shows a message. A run waits longer before it settles an
 * attempt as not delivered.
 */
export const LATE_MS_MAX = SETTLE_MS - 10_000;

export const lateMs = fc.oneof(fc.constantFrom(0, LATE_MS_MAX), fc.nat(LATE_MS_MAX));

export const answer: fc.Arbitrary<Answer | undefined> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(undefined) },
  { weight: 3, arbitrary: fc.record({ doubt: fc.constantFrom("delivered", "lost"), lateMs }) },
  { weight: 2, arbitrary: fc.record({ waitMs: fc.constantFrom(0, 5_000, 90_000, 90_000, 5 * MINUTE_MS, HOUR_MS) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Answer[]>(
      "recipient_closed",
      "not_permitted",
      "rejected",
      "unreachable",
      "unauthorized",
      { stop: "credits_depleted" },
      { stop: "sender_restricted" },
    ),
  },
);

export const readFault = fc.oneof(
  { weight: 2, arbitrary: fc.constant<ReadFault>(undefined) },
  { weight: 1, arbitrary: fc.constantFrom<ReadFault[]>("unavailable", "unauthorized", "credits_depleted", 90_000) },
);
