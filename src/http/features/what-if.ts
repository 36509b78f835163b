import { Type } from "@sinclair/typebox";
import { parseOtherRules, WHAT_IF_RULES, type OtherRules, type WhatIfRule } from "../../config/parse-what-if-rules.ts";
import { whatIfFormPage, whatIfReportPage } from "../../console/pages/what-if.tsx";
import { answerWhatIf } from "../../outreach/what-if/answer-what-if.ts";
import { describeReport, whatIfReport, type WhatIfReport } from "../../outreach/what-if/report.ts";
import { createSlot } from "../access/limit-requests-and-streams.ts";
import { feature, type HttpContext } from "../http-context.ts";
import { jsonBody } from "../server/body.ts";
import { route, reply, type Form } from "../server/endpoint.ts";
import { appendedOrNothing, problems } from "../server/problem.ts";
import { closed } from "../../platform/common-schemas.ts";
import { usageError } from "../../platform/service-error.ts";
import { parseGiven } from "../server/refuse-invalid-query.ts";

const EXAMPLES: Readonly<Record<WhatIfRule, unknown>> = {
  DAILY_LIMIT: 20,
  QUOTA_TIMEZONE: "Europe/Berlin",
  REQUIRE_CONSENT: "evidence",
  STOP_AFTER_FAILURES: "30%",
  STOP_WORDS: "stop,unsubscribe",
  MESSAGE_TEMPLATE: "Hi {{name|there}}",
  SEND_WINDOW: "Mon-Fri 09:00-17:00",
  SEND_WINDOW_ZONE: "recipient",
  SEND_WINDOW_CLOSED: "pause",
  BOT_RULE: "lists",
  BOT_USER_AGENTS: "curl,wget",
};

const VALUES = [Type.String(), Type.Number(), Type.Boolean(), Type.Null()];

/** Request body of a what-if question: rules by name, with values that are checked like those of settings. */
const rulesBody = jsonBody(
  Type.Object(
    Object.fromEntries(
      WHAT_IF_RULES.map((name) => [name, Type.Optional(Type.Union(VALUES, { examples: [EXAMPLES[name]] }))]),
    ),
    { ...closed, description: "Other rules, with the names and values of settings; null unsets one." },
  ),
);

/** Words by which error messages refer to the rules. */
const SOURCE = "the rules";

const BUSY = "Another comparison is in progress. Nothing was recorded of this one: send it again in a few seconds.";

export function whatIfEndpoints(context: HttpContext) {
  const { encryptedLog: log, hashesOf, clock, stopping } = context;
  // Only one what-if question is calculated at a time, because each calculation holds all recipients in memory twice:
  // as the log has them, and as they would be under the other rules.
  const comparisons = createSlot(BUSY);
  const parse = (given: Readonly<Record<string, unknown>>): OtherRules =>
    parseOtherRules(given, SOURCE, context.config.outreachWith);
  const form: Form = {
    path: "/console/what-if",
    description: "Answers with the page that shows the comparison, or what is wrong with the rules.",
    body: (fields) =>
      refusing(() => {
        const given = readFields(fields);
        parse(given);
        return given;
      }),
    page: (report: WhatIfReport, fields) => whatIfReportPage(describeReport(report), fields),
    refused: whatIfFormPage,
    pageDescription: "The comparison.",
  };

  return feature("what-if", "/api").post(
    "/what-if",
    async ({ request, body, call }) => {
      const rules = refusing(() => parse(body));
      const signal = AbortSignal.any([stopping, request.signal]);
      const asked = { log, hashesOf, today: context.config.outreach, clock, metadata: call.metadata, signal };
      const found = await appendedOrNothing(comparisons.take(() => answerWhatIf(rules, asked)));
      if (found === undefined) throw problems.logUnavailable(true);
      return found;
    },
    route("askWhatIf", "outreach", ["token", "read"], {
      body: rulesBody,
      response: { 200: reply("The comparison.", whatIfReport) },
      personalRead: "preview",
      summary: "What other rules would have done.",
      description:
        "Decides all runs of the log again by other rules, as `reachlog replay --what-if` does, and compares. A rule that is not named stays as it was. One comparison at a time (503 `overloaded` for others); it ends when the caller hangs up. Recorded as `WhatIfAsked`.",
      isSlow: true,
      problems: ["unusableRules"],
      form,
    }),
  );
}

/** Reads the rules in the fields of a form. An empty field is no rule, and `none` unsets a setting. */
function readFields(fields: Readonly<Record<string, string>>): Readonly<Record<string, string | null>> {
  const given = WHAT_IF_RULES.flatMap((name) => {
    const value = fields[name]?.trim() ?? "";
    return value === "" ? [] : [[name, value === UNSET && name !== "BOT_RULE" ? null : value] as const];
  });
  if (given.length === 0) throw usageError(`${SOURCE}: none differs. Fill in at least one`);
  return Object.fromEntries(given);
}

/** Word in a field that unsets a setting. For `BOT_RULE` it is a value like any other. */
const UNSET = "none";

/**
 * Runs a parser of rules, and throws the problem 422 if they are invalid. Programs get the names of the faulty rules;
 * the page shows the form again with the full message.
 */
function refusing<Result>(parse: () => Result): Result {
  return parseGiven(parse, (message) => {
    const names = WHAT_IF_RULES.filter((name) => message.includes(`${name}:`));
    return problems.unusableRules(names).with({}, { words: `${message}.` });
  });
}
