import { Type } from "@sinclair/typebox";
import { apiReference } from "../../console/pages/api-reference.tsx";
import { renderPage } from "../../console/document.tsx";
import { feature, type HttpContext } from "../http-context.ts";
import { html, json, whole } from "../server/http-response.ts";
import { createCompressed } from "../server/compress.ts";
import { route, reply, textReply, type Endpoint } from "../server/endpoint.ts";
import { createDocument, forPrograms } from "../server/openapi.ts";
import { text } from "../../platform/common-schemas.ts";

/**
 * Creates the endpoints of the API document, for programs and for people. Each document is built on its first request,
 * so that the service starts faster: few callers ask for it.
 */
export function documentEndpoints(
  endpoints: () => readonly Endpoint[],
  { version, authentication, sessions }: HttpContext,
) {
  let [document, reference]: (ReturnType<typeof createCompressed<200>> | undefined)[] = [];
  const make = () => createDocument(forPrograms(endpoints()), version, authentication, sessions.cookie);
  return feature("documents", "")
    .get(
      "/openapi.json",
      async ({ request }) =>
        whole<200, { openapi: string }>(await (document ??= createCompressed(json(200, make())))(request)),
      route("getDocument", "service", "open", {
        response: {
          200: reply("OpenAPI 3.1.", Type.Object({ openapi: text("3.1.0") }, { additionalProperties: true })),
        },
        summary: "This document.",
        description:
          "The service generates it from the schemas that it validates with. It describes what programs call; the console's pages and forms are not in it.",
      }),
    )
    .get(
      "/docs",
      async ({ request }) =>
        whole(await (reference ??= createCompressed(html(200, renderPage(apiReference(make())))))(request)),
      route("getReference", "console", "open", {
        response: { 200: textReply("The page.", { mediaType: "text/html" }) },
        summary: "The document as a page.",
        description: "All operations for programs, with fields and examples.",
      }),
    );
}
