import { CHANNELS, type ChannelName } from "../../../events/channel.ts";
import { plain } from "../../history/words/phrases.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "../ask-service.ts";
import { Command, EXIT, JSON_OPTION, type MakeCommand } from "../command.ts";
import { table } from "../table.ts";

/** What `POST /api/tracking/test` answers. */
interface Tested {
  readonly results: Readonly<
    Record<ChannelName, { readonly ok: boolean; readonly status: string; readonly detail?: string }>
  >;
}

export const test: MakeCommand = (terminal, exit) =>
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
        const answer = (await askService(terminal, url, "/api/tracking/test", {})) as Tested;
        const rows = CHANNELS.map((channel) => ({ channel, ...answer.results[channel] }));
        terminal.out(
          json === true
            ? `${JSON.stringify(answer)}\n`
            : table(
                ["channel", "result", ""],
                rows.map(({ channel, status, detail = "" }) => [channel, plain(status), detail]),
              ),
        );
        return rows.every(({ ok, status }) => ok || status === "not_configured") ? EXIT.ok : EXIT.fault;
      }),
    );
