import { Command, group, InvalidArgumentError, JSON_OPTION, Option, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT, table } from "./shared/terminal-answers-and-exit-codes.ts";
import { Value } from "@sinclair/typebox/value";
import { channelName, CHANNEL_NAMES, type ChannelName } from "../../events/channel-and-lane-names.ts";
import type { TestResult } from "../http/features/send-to-channel.ts";
import { plain } from "../history/sentences/sentence-parts.ts";
import { askService, TOKEN_HELP, URL_OPTION } from "./shared/ask-service.ts";

const channelOption = () =>
  Object.assign(new Option("--channel <name>", "only this channel, also webhook-NAME").argParser(parseChannel), {
    // The channels of webhooks (`webhook-NAME`) are accepted too. They are not listed, because only the configuration
    // knows their names.
    argChoices: [...CHANNEL_NAMES],
  });

function parseChannel(name: string): ChannelName {
  if (Value.Check(channelName, name)) return name;
  throw new InvalidArgumentError(`Allowed choices are ${CHANNEL_NAMES.join(", ")}, or webhook-NAME.`);
}

const test: MakeCommand = (terminal) =>
  new Command("test")
    .summary("send a test message to each channel, or to one")
    .description(
      `Asks the running service to send a test message to each channel, or to one, one attempt
each, as POST /api/tracking/test does. Exit code 1 if the test does not arrive at a
configured channel.

${TOKEN_HELP}`,
    )
    .addOption(channelOption())
    .option(...URL_OPTION)
    .option(...JSON_OPTION)
    .examples("reachlog deliveries test --channel webhook-crm")
    .action(async ({ channel: only, url, json }) => {
      const body = only === undefined ? {} : { channel: only };
      const tested = (await askService(terminal, url, "/api/tracking/test", body)) as {
        results: Record<string, TestResult>;
      };
      const rows = Object.entries(tested.results).map(([channel, result]) => ({ channel, ...result }));
      const cells = rows.map(({ channel, status, detail = "" }) => [channel, plain(status), detail]);
      answer(terminal, json, tested, table(["channel", "result", ""], cells));
      return rows.every(({ ok, status }) => ok || status === "not_configured") ? EXIT.ok : EXIT.fault;
    });

export const deliveries = group(
  "deliveries",
  "list, retry, discard, settle dispatches; test, resume channels",
  [test],
  "All of them work beside a running service.",
);
