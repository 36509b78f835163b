import { Type, type Static } from "@sinclair/typebox";
import { createResults, GROUPINGS, parseInterval, resultFigures, resultGroup } from "../../history/results.ts";
import { CLICKS_NOTE, resultsAsCsv, resultsAsJson } from "../../history/results-format.ts";
import { feature, type AppDeps } from "../deps.ts";
import { attachment, whole } from "../server/answer.ts";
import { route, reply } from "../server/endpoint.ts";
import { choiceIn, parseGiven, refuseQuery } from "../server/query.ts";
import { count, oneOf, orNull, text, time } from "../../platform/common-schemas.ts";

const previous = Type.Object({ previous: orNull(resultFigures) });

const interval = Type.Object({ from: orNull(time), to: orNull(time) });

const table = Type.Object({
  by: oneOf(...GROUPINGS),
  interval,
  previous_interval: orNull(interval),
  rows: Type.Array(Type.Composite([resultGroup, resultFigures, previous])),
  omitted: count,
  clicks_merged_to: orNull(text("2026-11-20")),
  total: Type.Composite([resultFigures, previous]),
  unique_standard_error: Type.Number({ examples: [0.023] }),
  as_of: Type.Object({ position: count, time: orNull(time), stale: Type.Optional(Type.Literal(true)) }),
});

export function resultsEndpoints({ projector, clock, awaySince }: AppDeps) {
  return feature("results", "/social").get(
    "/results",
    async ({ request }) => {
      const { searchParams } = new URL(request.url);
      const by = choiceIn(searchParams, "by", GROUPINGS, "variant");
      const states = { results: projector.state("results"), visits: projector.state("visits") };
      const [from, to] = ["from", "to"].map((name) => searchParams.get(name) ?? undefined);
      const interval = parseGiven(() => parseInterval(from, to, clock()), refuseQuery);
      const found = await createResults(states, by, interval);
      const stale = awaySince() === undefined ? {} : { stale: true as const };
      const as_of = { position: projector.position, time: projector.time ?? null, ...stale };
      const answer: Static<typeof table> = { ...resultsAsJson(by, found), as_of };
      const accepted = request.headers.get("accept")?.includes("text/csv") === true ? "csv" : "json";
      const isCsv = choiceIn(searchParams, "format", ["json", "csv"], accepted) === "csv";
      return isCsv ? whole({ ...CSV, body: resultsAsCsv(by, found) }, answer) : answer;
    },
    route("getResults", "outreach", ["session", "read"], {
      response: { 200: { ...reply("The results.", table), otherMediaTypes: ["text/csv"] } },
      personalRead: "results",
      summary: "Outcomes of messages, and the clicks on their links.",
      description: `Outcomes until now of the messages attempted in the interval. ${CLICKS_NOTE} They count for a template or variant whose messages alone hold the link. \`tracked\`: of recipients who granted tracking, on links of their own; by run, source and basis no other clicks are known. Clicks up to \`clicks_merged_to\` are no longer told apart by day: they count only in an answer without \`from\` that ends later. Needs a token or a console session once a token is configured.`,
      query: {
        by: `What to group by: ${GROUPINGS.map((name) => `\`${name}\``).join(", ")}. Default: \`variant\`.`,
        from: "The first UTC day, or a time in it. The interval of the same length before is then in `previous`. Default: from the beginning.",
        to: "The last UTC day, or a time in it. Default: now.",
        format: "`json` or `csv`. Default: by `Accept`.",
      },
      requestHeaders: ["Accept"],
      problems: ["invalid"],
    }),
  );
}

const CSV = { status: 200, headers: attachment("text/csv; charset=utf-8", "reachlog-results.csv") } as const;
