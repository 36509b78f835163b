import { Type } from "@sinclair/typebox";
import { defineEvent } from "./define-event.ts";

/**
 * Event: a service first opened a log that continues a copy. Work done after the copy was made is missing from the log,
 * but may have happened.
 */
export const LogRestored = defineEvent(
  "LogRestored",
  Type.Object(
    {
      cause: Type.Union([
        /**
         * Cause of LogRestored: the log was restored from a backup, which belongs to an earlier epoch. An epoch of a
         * log lasts from one restore, import or copy to the next.
         */
        Type.Literal("restore"),
        /** Cause of LogRestored: the log was made from the events of another log. */
        Type.Literal("import"),
        /** Cause of LogRestored: the service noticed that the log is a copy made by other means. */
        Type.Literal("copy"),
        /** Cause of LogRestored: an operator said that the log is a copy made by other means. */
        Type.Literal("operator"),
      ]),
      /**
       * Id of the log's new epoch. A restored, imported or copied log begins an epoch, and each epoch has at most one
       * LogRestored.
       */
      epoch: Type.String(),
      /**
       * Last position that the log held when a service first opened it in the new epoch. Events that commands had
       * appended to the restored, imported or copied log by then are included.
       */
      found_position: Type.Integer(),
      found_hash: Type.String(),
    },
    { additionalProperties: false },
  ),
);

const backupSchema = Type.Object(
  {
    /** Last position of the log in the backup. */
    position: Type.Integer(),
    hash: Type.String(),
    /** Time at which the backup was made, as its manifest says, ISO 8601. */
    made_at: Type.String(),
  },
  { additionalProperties: false },
);

/**
 * Event: an operator confirmed the machine's clock although events have later times. Until the clock passes them, new
 * events get the latest of these times, and rules about real days, such as the quota, use the clock.
 */
export const LogTimeCorrected = defineEvent(
  "LogTimeCorrected",
  Type.Object(
    {
      /** Time that the machine's clock showed, ISO 8601. */
      at: Type.String(),
      /** The calendar day of `at` (YYYY-MM-DD) for the quota, in `timezone`. */
      day: Type.String(),
      timezone: Type.String(),
    },
    { additionalProperties: false },
  ),
);

/** Event: `reachlog backup` has written a backup of this log. */
export const BackupMade = defineEvent("BackupMade", backupSchema);

/** Event: `reachlog restore --rehearse`, run with the configuration of this log, has proved a backup of it. */
export const BackupRehearsed = defineEvent("BackupRehearsed", backupSchema);

/**
 * Event: `reachlog archive`, or a service with ARCHIVE_AFTER_DAYS, moved the oldest events from the database into
 * segments.
 */
export const EventsArchived = defineEvent(
  "EventsArchived",
  Type.Object(
    {
      /** Position of the last archived event. */
      position: Type.Integer(),
      /** Number of events that were moved now. */
      events: Type.Integer(),
      /** Number of segments into which the events were moved. */
      segments: Type.Integer(),
      /** Size of these segments' files, in bytes. */
      bytes: Type.Integer(),
    },
    { additionalProperties: false },
  ),
);

/**
 * Event: an operator let the service continue although the log does not hold all events that its last checkpoint
 * covers.
 */
export const LogLossAccepted = defineEvent(
  "LogLossAccepted",
  Type.Object(
    {
      reason: Type.Union([
        /**
         * Reason of LogLossAccepted: events are missing at the end, because the log ended before the checkpoint's
         * position.
         */
        Type.Literal("lost_tail"),
        /** Reason of LogLossAccepted: the log held another event at the checkpoint's position. */
        Type.Literal("other_history"),
        /** Reason of LogLossAccepted: an event after the checkpoint's position does not fit the hash chain. */
        Type.Literal("broken_chain"),
        /** Reason of LogLossAccepted: the checkpoint is of another log. */
        Type.Literal("other_log"),
        /** Reason of LogLossAccepted: the checkpoint cannot be read or trusted. */
        Type.Literal("unknown"),
      ]),
      /** Position of the checkpoint, which the log should have reached; absent if the checkpoint cannot be trusted. */
      expected_position: Type.Optional(Type.Integer()),
      expected_hash: Type.Optional(Type.String()),
      /**
       * Last position of the log when the loss was accepted. This event follows it, unless another process appended in
       * between.
       */
      found_position: Type.Integer(),
      found_hash: Type.String(),
      /** Position of the first event that does not fit the hash chain, if one is known. */
      broken_position: Type.Optional(Type.Integer()),
    },
    { additionalProperties: false },
  ),
);
