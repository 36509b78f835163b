import type { ChannelName } from "../../../events/channel-and-lane-names.ts";
import { STREAMS } from "../../log/event-log.ts";
import { record } from "../../log/decide-and-append.ts";
import { id, text } from "../../platform/common-schemas.ts";
import { operation, refusal } from "../../platform/operation.ts";
import type { Reachlog } from "../../privacy/log-context-types.ts";
import { makeReport } from "./make-team-report.ts";

interface ReportContext extends Reachlog {
  readonly delivery: { readonly configured: readonly ChannelName[] };
}

export const sendReport = operation({
  name: "report",
  id: "sendReport",
  tag: "outreach",
  access: ["token", "run"],
  summary: "Post a report of outreach to the team chat.",
  description:
    "One message with counts and no names: the newest run and its cost, the day's quota, replies, opt-outs and clicks since the last report, the better variant of the message, runs that were refused, and what needs attention. With REPORT_EXPECT it says if no run has begun for too long, so that a scheduler which asks for a report each day also reports its own failure. Each request posts another report.",
  personalRead: false,
  input: {},
  output: { id, report: text("Run 36, started 2026-11-29, message Autumn invite: 40 sent, 12 skipped.") },
  refusals: { chat_not_configured: refusal("configuration", "The team chat is not configured. Set CHAT_WEBHOOK_URL.") },
  async run(context: ReportContext, _input, caller) {
    if (!context.delivery.configured.includes("chat")) return "chat_not_configured";
    const { message, event } = await makeReport(context);
    const { ids } = await record(context, STREAMS.outreach, [event], { metadata: caller });
    return { id: ids[0]!, report: message };
  },
  text: ({ report }) => `${report}\n\nThe service posts this to the team chat.\n`,
  examples: [""],
});
