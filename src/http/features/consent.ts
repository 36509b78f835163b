import { Type } from "@sinclair/typebox";
import { basis, tracking } from "../../../events/outreach.ts";
import { sleep } from "../../platform/clock.ts";
import { isFault, parseConsent } from "../../recipients/parse-consent.ts";
import { recordConsent } from "../../recipients/record-consent.ts";
import { feature, type AppDeps } from "../deps.ts";
import { jsonBody } from "../server/body.ts";
import { operation, reply } from "../server/endpoint.ts";
import { appendedOrNothing, problems } from "../server/problem.ts";
import { recipientName } from "./recipients.ts";
import { closed, consentMembers } from "./schema.ts";

const consentBody = jsonBody(
  Type.Object(
    {
      recipient: recipientName,
      ...consentMembers,
    },
    closed,
  ),
);

export function consentEndpoints(deps: AppDeps) {
  return feature("consent", "/social").post(
    "/recipients/consent",
    async ({ body, call }) => {
      const record = parseConsent((member) => body[member], deps.clock());
      if (isFault(record)) throw problems.unusableConsent(record.reason, `/${record.member}`);
      if (Object.keys(record).length === 0) throw problems.unusableConsent("neither basis nor tracking is given");
      const recording = recordConsent({ ...deps, sleep, random: Math.random }, body.recipient, record, call.metadata);
      const { isKnown, contact } = await appendedOrNothing(recording);
      return { known: isKnown, basis: contact?.basis ?? "none", tracking: contact?.tracking.status ?? "unknown" };
    },
    {
      body: consentBody,
      response: {
        200: reply(
          "The recipient's consent from now on.",
          Type.Object({
            known: Type.Boolean({ description: "False: no recipient of that name was known." }),
            basis,
            tracking,
          }),
        ),
      },
      detail: operation("recordConsent", "outreach", ["token", "recipients"], {
        summary: "Records a recipient's consent, with its evidence.",
        description:
          "`basis`: why they may be written to. `tracking`: whether clicks by links of their own may be recorded. Each with its evidence: when, where, and to which wording. Evidence without its subject is refused; new evidence replaces the former as a whole. What is not named stays. A recipient who wrote first keeps the basis `dm_first`. Revoking granted tracking erases the recorded clicks by their own links. A repeat changes nothing.",
        problems: ["unusableConsent"],
        form: {
          path: "/console/recipients/consent",
          notice: () => "The consent is recorded.",
        },
      }),
    },
  );
}
