import { afterAll } from "bun:test";
import { IN_FLIGHT_MAX } from "../../src/http/access/limit-requests-and-streams.ts";
import { tally, testAttacks, type Attack } from "../http/attacks/attack.ts";
import { goodBody } from "../http/attacks/routes.ts";
import { openTarget } from "../http/attacks/target.ts";
import { JSON_TYPE, requestBytes } from "../http/wire/raw-request-bytes.ts";
import { residentMiB } from "../http/wire/process-memory.ts";
import { TOKEN, until } from "../harness/process.ts";

const target = await openTarget();
afterAll(() => target[Symbol.asyncDispose]());

/** Number of callers: more than the service answers at the same time. */
const CALLERS = IN_FLIGHT_MAX + 500;

/**
 * Maximum growth of the service's memory, in MiB. Each waiting request takes memory for its text, its timer and its
 * place in the log's queue.
 */
const GROWTH_MIB_MAX = 200;

const overload: Attack = {
  name: `the service answers ${CALLERS} notifications at once while the chat does not answer`,
  expected: "each answered: 202, or 503 with Retry-After; health 200; then as before",
  async run({ open, url, service, world }) {
    world.sandbox.faults.add({ network: "slack", kind: "timeout_before" });
    const headers = [JSON_TYPE, `Authorization: Bearer ${TOKEN}`];
    const bytes = requestBytes(url, { method: "POST", path: "/api/notify", headers, body: goodBody("/api/notify") });
    const startMiB = residentMiB(service);
    const connections = await Promise.all(Array.from({ length: CALLERS }, () => open()));
    const answered = Promise.all(
      connections.map(async (connection) => {
        await connection.write(bytes);
        return (await connection.answered(1))[0];
      }),
    );
    const health = (await service.get("/api/health")).status;
    const answers = await answered;
    const grownMiB = residentMiB(service) - startMiB;
    for (const connection of connections) connection[Symbol.dispose]();
    world.sandbox.faults.clear();
    const statuses = answers.map((answer) => answer?.status ?? 0);
    const hopeless = answers.filter((answer) => answer?.status === 503 && !answer.headers.has("retry-after"));
    const wrong = statuses.filter((status) => status !== 202 && status !== 503).map(String);
    if (!statuses.includes(503)) wrong.push("no caller was told to come back");
    if (hopeless.length > 0) wrong.push(`${hopeless.length} × 503 without Retry-After`);
    if (health !== 200) wrong.push(`health ${health}`);
    if (grownMiB > GROWTH_MIB_MAX) wrong.push(`grew by ${grownMiB.toFixed()} MiB`);
    const { status } = await until(
      () => service.post("/api/tracking/test", {}, { authorization: `Bearer ${TOKEN}` }),
      (answer) => answer.status !== 503,
    );
    if (status !== 200) wrong.push(`afterwards ${status}`);
    return { tried: CALLERS, seen: `${tally(statuses)}; health ${health}; memory + ${grownMiB.toFixed()} MiB`, wrong };
  },
};

testAttacks([overload], () => target, 180_000);
