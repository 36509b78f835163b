/** Writes the service's OpenAPI document, of a deployment that wants tokens, to the file that the argument names. */
import { writeFileSync } from "node:fs";
import { createAuthentication } from "../src/http/access/authentication.ts";
import { createDocument } from "../src/http/server/openapi.ts";
import { describeEndpoints } from "../src/http/endpoints.ts";
import { VERSION } from "../src/platform/version.ts";

export function describeApi(): string {
  const guards = createAuthentication({ tokens: [], authPolicy: "strict", openRoutes: [] });
  return JSON.stringify(createDocument(describeEndpoints(), VERSION, guards, "__Host-reachlog_session"));
}

if (import.meta.main) writeFileSync(process.argv[2] ?? "openapi.json", describeApi());
