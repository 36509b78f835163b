import { Type } from "@sinclair/typebox";
import { apiReference } from "../../console/pages/api-reference.tsx";
import { renderPage } from "../../console/document.tsx";
import { feature, type AppDeps } from "../deps.ts";
import { html, json, whole, type HttpResponse } from "../server/answer.ts";
import { route, reply, textReply, type Endpoint } from "../server/endpoint.ts";
import { createDocument, forPrograms } from "../server/openapi.ts";
import { text } from "../../platform/common-schemas.ts";

/** The document for programs and for people, each made when it is first asked for: few callers ask, and a start is quicker. */
export function documentEndpoints(
  endpoints: () => readonly Endpoint[],
  { version, authentication, sessions }: AppDeps,
) {
  let [document, reference]: (HttpResponse<200> | undefined)[] = [];
  const make = () => createDocument(forPrograms(endpoints()), version, authentication, sessions.cookie);
  return feature("documents", "")
    .get(
      "/openapi.json",
      () => whole<200, { openapi: string }>((document ??= json(200, make()))),
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
      () => whole((reference ??= html(200, renderPage(apiReference(make()))))),
      route("getReference", "console", "open", {
        response: { 200: textReply("The page.", { mediaType: "text/html" }) },
        summary: "The document as a page.",
        description: "All operations for programs, with fields and examples.",
      }),
    );
}
