import { Type } from "@sinclair/typebox";
import type { Projector } from "../../projector/projector.ts";
import { json } from "../server/answer.ts";
import type { Operation } from "../server/endpoint.ts";
import { count, orNull, time } from "./schema.ts";

export interface StatsDeps {
  readonly projector: Projector;
  /** Since when the log is out of reach, in ms since 1970; undefined: it is in reach. */
  readonly awaySince: () => number | undefined;
}

const stats = Type.Object({
  sent: count,
  skipped: count,
  failed: count,
  as_of: Type.Object({ position: count, time: orNull(time), stale: Type.Optional(Type.Literal(true)) }),
});

export const showStats: Operation<StatsDeps> = {
  id: "getOutreachStats",
  tag: "outreach",
  summary: "All-time counts of messages sent, skipped and failed.",
  description: "Dry runs do not count. `stale` stands there while the log is out of reach: it may hold more by now.",
  answers: { 200: { says: "The counts.", schema: stats } },
  problems: [],
  handle({ projector, awaySince }) {
    const { sent, skipped, failed } = projector.state("stats");
    const stale = awaySince() === undefined ? {} : { stale: true };
    const as_of = { position: projector.position, time: projector.time ?? null, ...stale };
    return json(200, { sent, skipped, failed, as_of });
  },
};
