import { askReadiness, URL_OPTION } from "./shared/ask-service.ts";
import { Command, JSON_OPTION, type MakeCommand } from "./shared/command.ts";
import { answer, EXIT } from "./shared/terminal-answers-and-exit-codes.ts";

export const ready: MakeCommand = (terminal) =>
  new Command("ready")
    .summary("check that the running service is ready for requests")
    .description(
      `Asks the running service, as GET /readyz does. For the health check of a container
whose image has no other HTTP client.`,
    )
    .option(...URL_OPTION)
    .option(...JSON_OPTION)
    .examples("reachlog ready")
    .addHelpText("after", "\nExit codes: 0 ready, 75 not ready, or no service answers.")
    .action(async ({ url, json }) => {
      const { status, checks } = await askReadiness(terminal, url);
      const failed = Object.entries(checks).flatMap(([name, holds]) => (holds ? [] : [name.replaceAll("_", " ")]));
      const text = status === "ok" ? "ready\n" : `not ready: not ${failed.join(", not ")}\n`;
      answer(terminal, json, { status, checks }, text);
      return status === "ok" ? EXIT.ok : EXIT.temporary;
    });
