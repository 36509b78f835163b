import { Type } from "@sinclair/typebox";
import type { EventLog } from "../log/event-log.ts";
import { requestStop } from "../outreach/stop-run.ts";
import { sleep } from "../platform/clock.ts";
import type { Projector } from "../projector/projector.ts";
import { json } from "./answer.ts";
import { jsonBody } from "./body.ts";
import { formOf } from "./console-form.ts";
import { post } from "./endpoint.ts";
import { appendedOrNothing, problems } from "./problem.ts";
import { closed, id } from "./schema.ts";

export interface StopRunDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
}

const body = Type.Object(
  {
    run_id: Type.Optional(
      Type.String({
        maxLength: 100,
        description: "Absent: the run in progress.",
        examples: ["01a1f3c4-7b1e-7c3a-9d52-6f0e8b2a4c11"],
      }),
    ),
  },
  closed,
);

const stopping = Type.Object({ run_id: id, status: Type.Literal("stopping") });

export const stopRun = post({
  id: "stopRun",
  tag: "outreach",
  summary: "Stops the run in progress.",
  description:
    "The run sends nothing more, settles what is in flight and ends as `stopped`, on whatever instance it is made; a wait of its ends at once. A message whose last look at the log came before the request may still go out. A dry run can be stopped too; a repeat changes nothing.",
  body: jsonBody(body),
  answers: { 202: { says: "The run is asked to stop.", schema: stopping } },
  problems: ["noRun"],
  async handle(deps: StopRunDeps, { body: { run_id: runId }, metadata }) {
    const asked = await appendedOrNothing(requestStop({ ...deps, sleep, random: Math.random }, runId, metadata));
    if (asked.kind === "not_in_progress") throw problems.noRun();
    return json(202, { run_id: asked.run_id, status: asked.kind });
  },
});

export const stopRunByForm = formOf(stopRun, {
  body: ({ run_id }) => ({ run_id }),
  says: () => "The run is asked to stop: it sends nothing more.",
});
