import { TOKEN } from "../../harness/process.ts";
import { JSON_TYPE } from "../wire/bytes.ts";
import type { Attack } from "./attack.ts";
import { PATHS } from "./routes.ts";

/** What a caller sent, which no refusal may repeat. */
const CANARY = "canary-7f3a";

/** Words of the inside: stacks, files, libraries, statements. */
const INSIDE =
  /node_modules|\.ts\b|\.js\b|\bat [\w$.<>]+ \(|TypeError|SyntaxError|SQLITE|sqlite|elysia|typebox|JSON Parse|bun:/i;

/** What the console's pages load was written before any request, libraries among it. */
function isAsset(headers: ReadonlyMap<string, readonly string[]>): boolean {
  return /^text\/(css|javascript)/.test(headers.get("content-type")?.[0] ?? "");
}

/** The last: it looks through all that was answered before. */
export const leaks: readonly Attack[] = [
  {
    name: "answers searched for what callers sent, for the inside and for secrets",
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
        // A member that is not known is named to who sent it; its value is not. A former address leads on with its query, and so does the form to sign in. The document and the figures name what the console loads.
        const named = all
          .replaceAll(`"path":"/${CANARY}"`, "")
          .replaceAll(new RegExp(`"/activity(/:position)?\\?${CANARY}"`, "g"), "")
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
    name: "lines of the service's own log, after all of this",
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
