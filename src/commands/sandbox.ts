import { EXIT, parse, UsageError, type Command } from "./command.ts";
import { CHOICE_HELP, CHOICE_OPTIONS, choiceOf, loadSandbox } from "./load-sandbox.ts";

export const sandbox: Command = {
  summary: "run the sandbox of the networks alone",
  help: `reachlog sandbox [--port 4010] [--chat NAME] [--messaging NAME]

Serves stand-ins for the networks on loopback: X with its consent page and
OAuth, Meta's Conversions API, webhooks of Slack, Discord, Google Chat and
Teams, a Telegram bot, LINE and WhatsApp. Prints the settings that point a
service at them. Its page shows what arrived and switches faults on and off.

  --port N           port to listen on (0: any free one)
${CHOICE_HELP}
`,
  async run(args, terminal) {
    const { values } = parse(args, { port: { type: "string", default: "4010" }, ...CHOICE_OPTIONS });
    const port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError("--port wants a number to 65535");
    const loaded = await loadSandbox();
    const choice = choiceOf(values, loaded);
    const { startSandbox, settingsOf } = loaded;
    await using running = await startSandbox({ port });
    terminal.out(`sandbox at ${running.url}\n\n`);
    for (const [name, value] of Object.entries(settingsOf(running, choice))) terminal.out(`${name}=${value}\n`);
    await new Promise<void>((resolve) => terminal.signal.addEventListener("abort", () => resolve(), { once: true }));
    return EXIT.ok;
  },
};
