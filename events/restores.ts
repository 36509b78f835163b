import { Type } from "@sinclair/typebox";
import { defineEvent } from "./event.ts";

/**
 * A service first opened a log that continues a copy. Work done after the copy was made is missing from the log, but
 * may have happened.
 */
export const LogRestored = defineEvent(
  "LogRestored",
  Type.Object(
    {
      cause: Type.Union([
        /** A backup of another life of the log. */
        Type.Literal("restore"),
        /** The events of another log. */
        Type.Literal("import"),
        /** A copy made by other means, as the log noticed. */
        Type.Literal("copy"),
        /** A copy made by other means, as the operator said. */
        Type.Literal("operator"),
      ]),
      /** The log's life that begins with this event; each life has one such event. */
      epoch: Type.String(),
      /** Where the log ended, including events that commands have appended to the copy. */
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
    /** As in its manifest, ISO 8601. */
    made_at: Type.String(),
  },
  { additionalProperties: false },
);

/**
 * An operator said that the machine's clock is right although events have later times. The log's time stands still
 * until those times come. Meanwhile, the clock decides what depends on real days.
 */
export const LogTimeCorrected = defineEvent(
  "LogTimeCorrected",
  Type.Object(
    {
      /** The time that the clock showed, ISO 8601. */
      at: Type.String(),
      /** The calendar day of `at` (YYYY-MM-DD) for the quota, in `timezone`. */
      day: Type.String(),
      timezone: Type.String(),
    },
    { additionalProperties: false },
  ),
);

/** `reachlog backup` has written a backup of this log. */
export const BackupMade = defineEvent("BackupMade", backupSchema);

/** `reachlog restore --rehearse`, run with the configuration of this log, has proved a backup of it. */
export const BackupRehearsed = defineEvent("BackupRehearsed", backupSchema);

/**
 * `reachlog archive`, or a service with ARCHIVE_AFTER_DAYS, moved the oldest events from the database into segments.
 */
export const EventsArchived = defineEvent(
  "EventsArchived",
  Type.Object(
    {
      /** Position of the last archived event. */
      position: Type.Integer(),
      /** Events that this run moved, into `segments` segments of `bytes` bytes. */
      events: Type.Integer(),
      segments: Type.Integer(),
      bytes: Type.Integer(),
    },
    { additionalProperties: false },
  ),
);

/** An operator let the service continue although the log does not hold what its last checkpoint knew. */
export const LogLossAccepted = defineEvent(
  "LogLossAccepted",
  Type.Object(
    {
      reason: Type.Union([
        /** The log ended before the checkpoint's position. */
        Type.Literal("lost_tail"),
        /** The log held another event at that position. */
        Type.Literal("other_history"),
        /** An event after that position does not fit. */
        Type.Literal("broken_chain"),
        /** The checkpoint is of another log. */
        Type.Literal("other_log"),
        /** The checkpoint cannot be read or trusted. */
        Type.Literal("unknown"),
      ]),
      /** The last position that the checkpoint knew; absent if the checkpoint cannot be trusted. */
      expected_position: Type.Optional(Type.Integer()),
      expected_hash: Type.Optional(Type.String()),
      /** Where the log ended when the loss was accepted: right before this event, except for what others append. */
      found_position: Type.Integer(),
      found_hash: Type.String(),
      /** The first event that does not fit, if one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
