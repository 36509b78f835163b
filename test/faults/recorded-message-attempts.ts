import { exported, type Installation } from "../harness/process.ts";

type Data = Readonly<Record<string, unknown>>;

/** Attempts to send a message that the log records; the lists contain recipients' ids at X. */
export interface Attempts {
  /** All recipients with a recorded intent. */
  readonly intended: readonly string[];
  /** Number of attempts without a final outcome. */
  readonly open: number;
  /** Number of attempts that were found delivered when the service read the conversation. */
  readonly foundSent: number;
  readonly notDelivered: readonly string[];
  readonly abandonedRuns: number;
  /** Day -> number of quota places that messages used. A place is free again if X certainly refused its message. */
  readonly places: Readonly<Record<string, number>>;
}

export async function attemptsOf(world: Installation): Promise<Attempts> {
  const events = await exported(world);
  const ofType = (wanted: string) => events.filter(({ type }) => type === wanted).map(({ data }) => data);
  const [intents, sent, failed] = [
    ofType("DirectMessageAttempted"),
    ofType("DirectMessageSent"),
    ofType("DirectMessageFailed"),
  ];
  const closed = new Set([...sent, ...failed].map((data) => data["attempt_id"]));
  return {
    intended: intents.map(idOf),
    open: intents.filter((data) => !closed.has(data["attempt_id"])).length,
    foundSent: sent.filter((data) => data["settled_by"] === "lookup").length,
    notDelivered: failed.filter((data) => data["reason"] === "not_delivered").map(idOf),
    abandonedRuns: ofType("RunAbandoned").length,
    places: placesOf(intents, failed),
  };
}

function placesOf(intents: readonly Data[], failed: readonly Data[]): Record<string, number> {
  const freed = new Set(failed.filter((data) => data["frees_quota"] === true).map((data) => data["attempt_id"]));
  const places: Record<string, number> = {};
  for (const { day, attempt_id } of intents) {
    if (!freed.has(attempt_id)) places[String(day)] = (places[String(day)] ?? 0) + 1;
  }
  return places;
}

function idOf(data: Data): string {
  return (data["recipient"] as { id: string }).id;
}
