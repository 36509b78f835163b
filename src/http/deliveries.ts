import { Type } from "@sinclair/typebox";
import { channelName } from "../../events/channel.ts";
import { resumeChannel } from "../delivery/resume.ts";
import type { EventLog } from "../log/event-log.ts";
import type { Projector } from "../projector/projector.ts";
import { json } from "./answer.ts";
import { jsonBody } from "./body.ts";
import { formOf } from "./console-form.ts";
import { post } from "./endpoint.ts";
import { appendedOrNothing, problems } from "./problem.ts";
import { closed, time } from "./schema.ts";

export interface DeliveriesDeps {
  readonly eventLog: EventLog;
  readonly projector: Projector;
}

const resumed = Type.Object({ channel: channelName, suspended_since: time });

export const resumeDeliveries = post({
  id: "resumeDeliveries",
  tag: "tracking",
  summary: "Goes on with a suspended channel.",
  description: "Sends what is pending at once; the channel is suspended again if its network still refuses it.",
  body: jsonBody(Type.Object({ channel: channelName }, closed)),
  answers: { 200: { says: "The channel goes on.", schema: resumed } },
  problems: ["notSuspended"],
  async handle(deps: DeliveriesDeps, { body: { channel }, metadata }) {
    const ended = await appendedOrNothing(resumeChannel(deps, channel, metadata));
    if (ended.kind === "not_suspended") throw problems.notSuspended(channel);
    return json(200, { channel, suspended_since: ended.since });
  },
});

export const resumeDeliveriesByForm = formOf(resumeDeliveries, {
  body: ({ channel }) => ({ channel }),
  says: ({ channel }: { channel: string }) => `${channel} goes on.`,
});
