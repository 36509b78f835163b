import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/**
 * A service first opened a log that goes on with a backup of another life of it (`restore`), with the events of another log
 * (`import`), or with a copy that was made by other means, which the log noticed (`copy`) or the operator has said
 * (`operator`): what was done since the copy was made is not in it, and may have been done all the same.
 */
export const LogRestored = defineEvent(
  "LogRestored",
  Type.Object(
    {
      cause: Type.Union([
        Type.Literal("restore"),
        Type.Literal("import"),
        Type.Literal("copy"),
        Type.Literal("operator"),
      ]),
      /** The log's life that begins with this: each has one such event. */
      epoch: Type.String(),
      /** Where the log ended: with what was copied, and what commands have appended to it since. */
      found_position: Type.Integer(),
      found_hash: Type.String(),
    },
    { additionalProperties: false },
  ),
);

const backupSchema = Type.Object(
  {
    /** Where the copied log ended. */
    position: Type.Integer(),
    hash: Type.String(),
    /** As its manifest says, ISO 8601. */
    made_at: Type.String(),
  },
  { additionalProperties: false },
);

/**
 * An operator said that the machine's clock is right where events were recorded at later times. The log's time stands still
 * until that time comes; what depends on real days goes by the clock meanwhile.
 */
export const LogTimeCorrected = defineEvent(
  "LogTimeCorrected",
  Type.Object(
    {
      /** Time that the clock showed, ISO 8601. */
      at: Type.String(),
      /** Its calendar day (YYYY-MM-DD) for the quota, in the zone. */
      day: Type.String(),
      timezone: Type.String(),
    },
    { additionalProperties: false },
  ),
);

/** `reachlog backup` has written a backup of this log. */
export const BackupMade = defineEvent("BackupMade", backupSchema);

/** `reachlog restore --rehearse` has proved a backup of this log, where the log itself is. */
export const BackupRehearsed = defineEvent("BackupRehearsed", backupSchema);

/** `reachlog archive`, or a service with ARCHIVE_AFTER_DAYS, moved the oldest events out of the database into segments. */
export const EventsArchived = defineEvent(
  "EventsArchived",
  Type.Object(
    {
      /** Of the last event that is archived now. */
      position: Type.Integer(),
      /** What this work moved, into how many segments of how many bytes. */
      events: Type.Integer(),
      segments: Type.Integer(),
      bytes: Type.Integer(),
    },
    { additionalProperties: false },
  ),
);

/**
 * An operator let the service go on although the log does not hold what its last checkpoint knew:
 * `lost_tail`, it ended before it; `other_history`, it held another event there; `broken_chain`, an event after it does
 * not fit; `other_log`, the checkpoint is of another log; `unknown`, the checkpoint cannot be read or trusted.
 */
export const LogLossAccepted = defineEvent(
  "LogLossAccepted",
  Type.Object(
    {
      reason: Type.Union([
        Type.Literal("lost_tail"),
        Type.Literal("other_history"),
        Type.Literal("broken_chain"),
        Type.Literal("other_log"),
        Type.Literal("unknown"),
      ]),
      /** What the checkpoint knew; absent when it cannot be trusted. */
      expected_position: Type.Optional(Type.Integer()),
      expected_hash: Type.Optional(Type.String()),
      /** Where the log ended when the loss was accepted: right before this event, but for what others append. */
      found_position: Type.Integer(),
      found_hash: Type.String(),
      /** The first event that does not fit, where one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
