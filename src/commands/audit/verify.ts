import { configOf, EXIT, parse } from "../command.ts";
import { openExistingLog } from "../log-session.ts";
import { startProgress } from "../progress.ts";
import type { AuditAction } from "./action.ts";

export const verify: AuditAction = {
  usage: "verify [--json]",
  help: `verify   recomputes the hash chain; names the first event that does not fit and
         exits with 1
`,
  async run(args, terminal) {
    const { values } = parse(args, { json: { type: "boolean", default: false } });
    await using store = await openExistingLog(configOf(terminal));
    const { position } = await store.head();
    const progress = startProgress(terminal, "verifying", position);
    const { ok, checked, head, fault } = await store.verify({ onProgress: progress.update });
    progress.end();
    if (values.json) terminal.out(`${JSON.stringify({ ok, checked, head, fault: fault ?? null })}\n`);
    else if (fault === undefined)
      terminal.out(`${checked} events, the chain is whole; head ${head.position} ${head.hash}\n`);
    else terminal.out(`the chain is broken at position ${fault.position}: ${fault.reason}\n`);
    return ok ? EXIT.ok : EXIT.fault;
  },
};
