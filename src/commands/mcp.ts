import { once } from "node:events";
import { loadOperations } from "../operations.ts";
import { Command, type MakeCommand, readConfig } from "./shared/command.ts";

export const mcp: MakeCommand = (terminal) =>
  new Command("mcp")
    .summary("answer an assistant's questions (MCP, on stdio)")
    .description(
      `Serves the Model Context Protocol on standard input and output to an assistant
that starts it: recipients, skips and their reasons, clicks, the quota, and what a
run would do. It reads the configured log beside a running service, and cannot
send, spend or erase anything. The assistant sees people's handles and texts.
Ends when its input does.`,
    )
    .action(async () => {
      // The configuration is read now, so that a fault is reported at the start and not in each answer.
      readConfig(terminal);
      const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
      const { createMcpServer } = await import("./mcp/server.ts");
      const operations = await loadOperations();
      const ended = once(process.stdin, "end", { signal: terminal.signal }).catch(() => {});
      const serving = serveStdio(() => createMcpServer(terminal, operations));
      await ended;
      await serving.close();
    });
