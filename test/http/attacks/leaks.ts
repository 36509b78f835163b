import { TOKEN } from "../../harness/process.ts";
import { JSON_TYPE } from "../wire/raw-request-bytes.ts";
import type { Attack } from "./attack.ts";
import { PATHS } from "./routes.ts";

/** A text in the requests that no refusal may repeat. */
const CANARY = "canary-7f3a";

/** Internal details that no answer may contain: stack traces, file names, libraries, SQL. */
const INSIDE =
  /node_modules|\.ts\b|\.js\b|\bat [\w$.<>]+ \(|TypeError|SyntaxError|SQLITE|sqlite|elysia|typebox|JSON Parse|bun:/i;

/**
 * True for the console's scripts and styles. They are built before any request arrives and contain code of libraries.
 */
function isAsset(headers: ReadonlyMap<string, readonly string[]>): boolean {
  return /^text\/(css|javascript)/.test(headers.get("content-type")?.[0] ?? "");
}

/** The check for leaks. It runs after the other attacks, because it searches all answers that they got. */
export const leaks: readonly Attack[] = [
  {
    name: "no response contains a caller's input, internal details or secrets",
    expected: "found 0",
    async run({ ask, heard, world, stranger }) {
      for (const { path, method } of PATHS) {
        const headers = [JSON_TYPE, `Authorization: Bearer ${TOKEN}`, `X-Canary: ${CANARY}`];
        await ask({ method, path: `${path}?${CANARY}`, headers, body: `{"${CANARY}":{"a":"${CANARY}"}}` });
        await ask({ method: "DELETE", path: `${path}?${CANARY}`, headers });
        await ask({ method, path, headers: [...headers.slice(0, 1), `Authorization: Bearer ${CANARY}`] }, stranger());
      }
      const secrets = Object.entries(world.env).filter(([name]) => /TOKEN|SECRET|KEY|WEBHOOK/.test(name));
      const values = [TOKEN, world.directory, ...secrets.map(([, value]) => value)];
      const found = heard.filter(({ body, headers }) => {
        const all = `${body}\n${JSON.stringify([...headers])}`;
        // Removes three texts that a response may contain: the name of an unknown member, the requested address in the
        // sign-in form, and the names of the console's script files in the API document and the metrics.
        const named = all
          .replaceAll(`"path":"/${CANARY}"`, "")
          .replaceAll(/name="back" value="[^"<>]*"/g, "")
          .replaceAll(/"(?:GET )?\/(?:console|idiomorph)\.js"/g, "");
        return (
          (INSIDE.test(named) && !isAsset(headers)) ||
          named.includes(CANARY) ||
          values.some((value) => named.includes(value))
        );
      });
      return { tried: heard.length, seen: `found ${found.length}`, wrong: found.map(({ body }) => body) };
    },
  },
  {
    name: "each line of the logger is JSON, and none is an error",
    expected: "one JSON object a line, faults 0",
    async run({ service }) {
      const lines = service.log().trim().split("\n");
      const wrong = lines.filter((line) => {
        try {
          return (JSON.parse(line) as { level?: string }).level === "error";
        } catch {
          return true;
        }
      });
      return { tried: lines.length, seen: `broken or faults ${wrong.length}`, wrong };
    },
  },
];
