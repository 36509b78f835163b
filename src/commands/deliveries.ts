import { Command, group, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT, fail } from "./shared/terminal.ts";
import { discard, retry } from "./deliveries/letters.ts";
import { lag } from "./deliveries/lag.ts";
import { list } from "./deliveries/list.ts";
import { showDispatchCommand } from "./deliveries/show.ts";
import { resumeChannel } from "../delivery/suspension.ts";
import { COMMAND_METADATA, openSession } from "./shared/log-session.ts";
import { channelArgument } from "./deliveries/channel-name.ts";
import { type ChannelName, CHANNELS } from "../../events/channel.ts";
import { plain } from "../history/words/phrases.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "./shared/ask-service.ts";
import { table } from "./shared/table.ts";

const resume: MakeCommand = (terminal, exit) =>
  new Command("resume")
    .summary("resume a suspended channel")
    .description(
      `Resumes a suspended channel: a running service sends pending dispatches at once, and
suspends the channel again if the network still refuses it.`,
    )
    .addArgument(channelArgument())
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog deliveries resume chat")
    .action(
      exit(async (channel, { json }) => {
        await using session = await openSession(terminal);
        const ended = await resumeChannel(session, channel, COMMAND_METADATA);
        if (ended.kind === "not_suspended") return fail(terminal, `${channel} is not suspended`);
        const { since, repeated } = ended;
        const how = repeated ? "was resumed at the same moment" : `is resumed, suspended since ${since}`;
        return answer(terminal, json, { channel, since, repeated }, `${channel} ${how}\n`);
      }),
    );

/** What `POST /api/tracking/test` answers. */
interface Tested {
  readonly results: Readonly<
    Record<ChannelName, { readonly ok: boolean; readonly status: string; readonly detail?: string }>
  >;
}

const test: MakeCommand = (terminal, exit) =>
  new Command("test")
    .summary("send a test message to each channel")
    .description(
      `Asks the running service to send a test message to each channel, one attempt each,
as POST /api/tracking/test does. Exit code 1 when one that is configured does not
take it.

${TOKEN_HELP}`,
    )
    .option(...URL_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExample:\n  reachlog deliveries test")
    .action(
      exit(async ({ url, json }) => {
        const tested = (await askService(terminal, url, "/api/tracking/test", {})) as Tested;
        const rows = CHANNELS.map((channel) => ({ channel, ...tested.results[channel] }));
        const cells = rows.map(({ channel, status, detail = "" }) => [channel, plain(status), detail]);
        answer(terminal, json, tested, table(["channel", "result", ""], cells));
        return rows.every(({ ok, status }) => ok || status === "not_configured") ? EXIT.ok : EXIT.fault;
      }),
    );

export const deliveries = group(
  "deliveries",
  "show what is pending, suspended or dead, and decide about it",
  [list, showDispatchCommand, lag, retry, discard, resume, test],
  "All of them work beside a running service.",
);
