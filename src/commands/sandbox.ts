import { EXIT, parse, UsageError, type Command } from "./command.ts";
import { loadSandbox } from "./load-sandbox.ts";

export const sandbox: Command = {
  summary: "run the sandbox of X, Meta, Slack and Telegram alone",
  help: `reachlog sandbox [--port 4010]

Serves stand-ins for the four networks on loopback: X with its consent page and
OAuth, Meta's Conversions API, a Slack webhook, a Telegram bot. Prints the
settings that point a service at them. Its page shows what arrived and switches
faults on and off.

  --port N   port to listen on (0: any free one)
`,
  async run(args, terminal) {
    const { values } = parse(args, { port: { type: "string", default: "4010" } });
    const port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new UsageError("--port wants a number to 65535");
    const { startSandbox, settingsOf } = await loadSandbox();
    await using running = await startSandbox({ port });
    terminal.out(`sandbox at ${running.url}\n\n`);
    for (const [name, value] of Object.entries(settingsOf(running))) terminal.out(`${name}=${value}\n`);
    await new Promise<void>((resolve) => terminal.signal.addEventListener("abort", () => resolve(), { once: true }));
    return EXIT.ok;
  },
};
