import { untilAborted } from "../../platform/signals.ts";
import { Command, Option, parsePort, type MakeCommand } from "../shared/command.ts";
import { loadSandbox } from "./load-sandbox-and-postgres.ts";

export const sandbox: MakeCommand = (terminal) =>
  new Command("sandbox")
    .summary("run the sandbox of the networks alone")
    .description(
      `Serves stand-ins for the networks on loopback: X with its consent page and
OAuth, Meta's Conversions API, webhooks of Slack, Discord, Google Chat and
Teams, a Telegram bot, LINE and WhatsApp. Prints the settings that point a
service at them. Its pages show what arrived and switch faults on and off.`,
    )
    .option("--port <port>", "port to listen on (0: any free one)", parsePort, 4010)
    .addOption(chatOption())
    .addOption(messagingOption())
    .examples("reachlog sandbox --chat discord --messaging line")
    .action(async ({ port, chat, messaging }) => {
      const { startSandbox, settingsOf } = await loadSandbox();
      await using running = await startSandbox({ port });
      terminal.out(`sandbox at ${running.url}\n\n`);
      const settings = settingsOf(running, { chat, messaging });
      for (const [name, value] of Object.entries(settings)) terminal.out(`${name}=${value}\n`);
      await untilAborted(terminal.signal);
    });

export const chatOption = () =>
  new Option("--chat <name>", "the chat network that the settings are for")
    .choices(["slack", "discord", "google_chat", "teams"] as const)
    .default("slack" as const);

export const messagingOption = () =>
  new Option("--messaging <name>", "the messaging network that the settings are for")
    .choices(["telegram", "line", "whatsapp"] as const)
    .default("telegram" as const);
