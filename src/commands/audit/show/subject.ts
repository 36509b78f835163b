import { linkOf } from "../../link.ts";
import { recipientOf } from "../../person.ts";
import { historyOfEvent } from "./event.ts";
import type { History, Reading } from "./history.ts";
import { historyOfLink } from "./link.ts";
import { historyOfPerson } from "./person.ts";

/** What a history is asked for. */
export interface Subject {
  readonly kind: "event or run" | "click of" | "person called";
  historyIn(reading: Reading): Promise<History | undefined>;
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** An address on X is that of a person; any other with a slash is a link. */
const PROFILE = /^(?:https?:\/\/)?(?:(?:www|mobile|m)\.)?(?:x|twitter)\.com\//i;

/** Tells an id, a link and a person apart by how they are written. Throws a ServiceError (usage) on what is none of them. */
export function subjectOf(text: string): Subject {
  if (UUID.test(text)) {
    return { kind: "event or run", historyIn: (reading) => historyOfEvent(reading, text.toLowerCase()) };
  }
  if (text.includes("/") && !PROFILE.test(text)) {
    const link = linkOf(text);
    return { kind: "click of", historyIn: (reading) => historyOfLink(reading, link) };
  }
  // Refuses what can be nobody's handle before the log is read.
  recipientOf(text);
  return { kind: "person called", historyIn: (reading) => historyOfPerson(reading, text) };
}
