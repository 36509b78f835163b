/** Writes the service's OpenAPI document, of a deployment that wants tokens, to the file that the argument names. */
import { writeFileSync } from "node:fs";
import { createAuthentication } from "../src/http/access/authentication.ts";
import { createDocument } from "../src/http/server/openapi.ts";
import { describeEndpoints } from "../src/http/endpoints.ts";
import { VERSION } from "../src/platform/version.ts";

const [file = "openapi.json"] = process.argv.slice(2);
const guards = createAuthentication({ tokens: [], authPolicy: "strict", openRoutes: [] });
writeFileSync(file, JSON.stringify(createDocument(describeEndpoints(), VERSION, guards, "__Host-reachlog_session")));
