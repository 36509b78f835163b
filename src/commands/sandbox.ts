import { Command, EXIT, type MakeCommand } from "./command.ts";
import { chatOption, loadSandbox, messagingOption, portOf } from "./load-sandbox.ts";

export const sandbox: MakeCommand = (terminal, exit) =>
  new Command("sandbox")
    .summary("run the sandbox of the networks alone")
    .description(
      `Serves stand-ins for the networks on loopback: X with its consent page and
OAuth, Meta's Conversions API, webhooks of Slack, Discord, Google Chat and
Teams, a Telegram bot, LINE and WhatsApp. Prints the settings that point a
service at them. Its pages show what arrived and switch faults on and off.`,
    )
    .option("--port <port>", "port to listen on (0: any free one)", portOf, 4010)
    .addOption(chatOption())
    .addOption(messagingOption())
    .addHelpText("after", "\nExample:\n  reachlog sandbox --chat discord --messaging line")
    .action(
      exit(async ({ port, chat, messaging }) => {
        const { startSandbox, settingsOf } = await loadSandbox();
        await using running = await startSandbox({ port });
        terminal.out(`sandbox at ${running.url}\n\n`);
        const settings = settingsOf(running, { chat, messaging });
        for (const [name, value] of Object.entries(settings)) terminal.out(`${name}=${value}\n`);
        await new Promise<void>((resolve) =>
          terminal.signal.addEventListener("abort", () => resolve(), { once: true }),
        );
        return EXIT.ok;
      }),
    );
