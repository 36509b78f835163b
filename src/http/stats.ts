import { Type } from "@sinclair/typebox";
import type { Projector } from "../projector/projector.ts";
import { json } from "./answer.ts";
import type { Operation } from "./endpoint.ts";
import { count, orNull, time } from "./schema.ts";

export interface StatsDeps {
  readonly projector: Projector;
}

const stats = Type.Object({
  sent: count,
  skipped: count,
  failed: count,
  as_of: Type.Object({ position: count, time: orNull(time) }),
});

export const showStats: Operation<StatsDeps> = {
  id: "getOutreachStats",
  tag: "outreach",
  summary: "All-time counts of messages sent, skipped and failed.",
  description: "Dry runs do not count.",
  answers: { 200: { says: "The counts.", schema: stats } },
  problems: [],
  handle({ projector }) {
    const { sent, skipped, failed } = projector.state("stats");
    const as_of = { position: projector.position, time: projector.time ?? null };
    return json(200, { sent, skipped, failed, as_of });
  },
};
