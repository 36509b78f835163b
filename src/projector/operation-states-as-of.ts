import { Type, type Static } from "@sinclair/typebox";
import type { LogStore } from "../../events/event-types-and-codec.ts";
import type { ProjectionName, SomeStates } from "../../projections/all.ts";
import type { Clock } from "../platform/clock-ids-and-timers.ts";
import { count, named, orNull, time } from "../platform/common-schemas.ts";
import { ServiceError } from "../platform/service-error.ts";
import { findPlace, parseMoment, type Moment, type Place } from "./parse-moment.ts";
import type { PastStates } from "./past-states.ts";
import type { HeldStates, Projector } from "./projector.ts";

/** States of projections, and the moment for which they hold. */
export interface StatesAt<Name extends ProjectionName = ProjectionName> extends AnswerMoment {
  readonly states: SomeStates<Name>;
}

/** Moment whose state an operation's answer shows: now, or an earlier time or position. */
export interface AnswerMoment extends Place {
  /** The moment that the caller asked for. The position and the time found for it are in the other members. */
  readonly moment: Moment;
  /** True while the log is out of reach, so that it may hold newer events than the answer. */
  readonly isStale?: boolean;
}

/** Context of an operation that reads, in a running service or in a separate command. */
export interface LogReader {
  readonly store: LogStore;
  /** Returns the time of the log's clock, in ms since 1970. */
  readonly clock: Clock;
  /** The present states of a running service; undefined in a separate command, which holds none. */
  readonly held?: HeldStates;
  /**
   * Returns the states of projections at a moment; undefined stands for now. Throws a ServiceError (usage) if the text
   * is no moment of this log.
   */
  at<Name extends ProjectionName>(asOf: string | undefined, ...names: readonly Name[]): Promise<StatesAt<Name>>;
}

/** Maximum length of a text for a moment. A day or a time with its offset is shorter. */
export const MOMENT_CHARACTERS_MAX = 40;

/** Input schema for operations that can answer for an earlier moment. */
export const asOfInput = {
  as_of: Type.Optional(
    Type.String({
      title: "moment",
      maxLength: MOMENT_CHARACTERS_MAX,
      description:
        "As it was at an earlier moment: a time in ISO 8601, such as 2026-11-21T09:00:00Z; a day, such as 2026-11-21, " +
        "which means its end; or a position, which means after that event (0: before the first). A day, or a time " +
        "without Z or offset, is in QUOTA_TIMEZONE. A future time means now",
      examples: ["2026-11-21"],
    }),
  ),
};

/** Output schema for the moment that a response is about. */
const asOfOutput = named(
  "Moment",
  Type.Object({
    position: count,
    time: orNull(time),
    stale: Type.Optional(Type.Literal(true, { description: "The log is out of reach: it may hold more by now." })),
  }),
);

export const asOf = { as_of: asOfOutput };

/** Returns a moment in ms since 1970: the requested time, the time of the requested position, or now. */
export function resolveEnd({ moment: { to, until }, time: at }: AnswerMoment, now: number): number {
  if (to !== undefined && at !== undefined) return Date.parse(at);
  return Math.min(now, until?.getTime() ?? now);
}

export function toMomentJson({
  position,
  time: at,
  isStale = false,
}: Place & { readonly isStale?: boolean }): Static<typeof asOfOutput> {
  return { position, time: at ?? null, ...(isStale ? { stale: true } : {}) };
}

export function describeMomentJson({ position, time: at }: Place | Static<typeof asOfOutput>): string {
  return `as of position ${position}, ${at ?? "before the first event"}`;
}

/** Error: the states of an earlier moment are not ready. Folding continues, so a retry soon finds them. */
export class MomentFolding extends ServiceError<"busy"> {
  override readonly name = "MomentFolding";
  constructor(position: number) {
    super("busy", `The states as of position ${position} are being folded from the log`);
  }
}

interface ServiceParts {
  readonly store: LogStore;
  readonly projector: Projector;
  readonly past: PastStates;
  readonly clock: Clock;
  readonly timezone: string;
  readonly awaySince: () => number | undefined;
}

/** Creates a reader of the states that a running service holds; those of earlier moments it folds from the log. */
export function createServiceReader({ store, projector, past, clock, timezone, awaySince }: ServiceParts): LogReader {
  return {
    store,
    clock,
    held: projector,
    async at<Name extends ProjectionName>(text: string | undefined, ...names: readonly Name[]) {
      if (text === undefined) {
        const states = Object.fromEntries(names.map((name) => [name, projector.state(name)])) as SomeStates<Name>;
        const { position, time: newest } = projector;
        return { states, position, time: newest, moment: {}, isStale: awaySince() !== undefined };
      }
      const moment = parseMoment(text, timezone);
      const place = await findPlace(store, moment);
      const states = names.length === 0 ? ({} as SomeStates<Name>) : await past.at(place.position, names);
      if (states === undefined) throw new MomentFolding(place.position);
      return { states, ...place, moment };
    },
  };
}
