import type { Person } from "../x/people.ts";
import type { StoryEvent } from "./story-log-interface.ts";
import { RECIPIENTS, type Fate, type PlannedRun } from "./plan-runs.ts";

const FIRST_NAMES =
  "Ada Ben Cleo Dario Elif Felix Gus Hugo Ines Jonas Kofi Lena Mira Noah Omar Priya Quinn Ruth Sofia Tessa Uma Vera Will Xenia Yuki Zoe Aiko Bela Carla Dina Emil Fatma Greta Hana Ivan June Ken Lars Maja Nils Olga Paul Rosa Sam Tom Ursa Vito Wren Yara Zeno Alba Bram Cora Dag Esra Finn Gaia Hedda Ilse Jana Kaya Levi Mona Nora".split(
    " ",
  );
const CRAFTS = "ships paints reads sews bakes codes maps writes draws cooks".split(" ");
const PRODUCTS = ["the design kit", "the print shop", "the course", "the studio plan"];

/** Recipient in the story, a made-up history for the demo. */
export interface StoryPerson {
  readonly id: string;
  readonly username: string;
  readonly name: string;
  readonly product: string;
  readonly fate: Fate;
  /** True if the recipient lets us record their own clicks. */
  readonly isTracked: boolean;
}

const FIRST_ID = 1_710_000_000_000_000_000n;

/** Share of recipients who granted tracking, in twentieths. */
const TRACKED = 9;

/** Makes all recipients, in the order of the imported list: first those that runs write to. */
export function makePeople(runs: readonly PlannedRun[]): readonly StoryPerson[] {
  const fates = runs.flatMap((run) => run.fates);
  return Array.from({ length: RECIPIENTS }, (_, at): StoryPerson => {
    const name = FIRST_NAMES[at % FIRST_NAMES.length] ?? "";
    const round = Math.floor(at / FIRST_NAMES.length);
    const username = `${name.toLowerCase()}_${CRAFTS[((at % FIRST_NAMES.length) + round) % CRAFTS.length]}`;
    return {
      id: String(FIRST_ID + BigInt(at) * 1_000n),
      username,
      name,
      product: PRODUCTS[at % PRODUCTS.length] ?? "",
      // No planned run reaches a recipient beyond the planned outcomes. One in twelve of these recipients gave no
      // consent to messages; the others wait for a later run.
      fate: fates[at] ?? (at % 12 === 5 ? "no_consent" : "left"),
      isTracked: (at * 7) % 20 < TRACKED,
    };
  });
}

/** Returns the recipient as the simulated X knows them. */
export function toPersonOnX({ id, username, name, fate }: StoryPerson): Person {
  return {
    id,
    username,
    name,
    receives_your_dm: fate !== "protected" && fate !== "cannot_receive_dm",
    ...(fate === "protected" && { protected: true }),
    ...(fate === "failed" && { closed_when_sent: true }),
    ...(fate === "invalid_recipient" && { exists: false }),
  };
}

/** Returns the event of the recipient's import, with the evidence for their consent. */
export function toImport({ username, name, product, fate, isTracked }: StoryPerson, at: number): StoryEvent {
  const day = new Date(at).toISOString().slice(0, 10);
  const consent = { consent_at: day, consent_source: "the sign-up form", consent_text: "v3" };
  const basis = fate === "no_consent" ? { basis: "none" } : { basis: "opt_in", ...consent };
  const tracking = isTracked
    ? { tracking: "granted", tracking_at: day, tracking_source: "the sign-up form" }
    : { tracking: "unknown" };
  const fields = { product };
  return {
    type: "RecipientAdded",
    data: { recipient: { username }, name, ...basis, ...tracking, fields, source: "list" },
  };
}
