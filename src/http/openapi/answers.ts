import { Type, type TSchema } from "@sinclair/typebox";
import { CHANNELS } from "../../../events/channel.ts";
import { runEnd, skipReason, usage } from "../../../events/outreach.ts";

/** The bodies that endpoints answer. Clients must expect members beside these. */

const count = Type.Integer({ minimum: 0 });
const time = Type.String({ format: "date-time" });
const id = Type.String({ format: "uuid" });
const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const oneOf = <T extends string>(...values: T[]) => Type.Union(values.map((value) => Type.Literal(value)));
const perChannel = <T extends TSchema>(schema: T) =>
  Type.Object(Object.fromEntries(CHANNELS.map((name) => [name, schema])));

const counts = { sent: count, skipped: count, failed: count };

const run = Type.Object({
  id,
  dry_run: Type.Boolean(),
  started_at: time,
  ...counts,
  in_doubt: count,
  waiting: orNull(
    Type.Object({ reason: oneOf("pace", "rate_limited", "network_unavailable", "settling"), until: time }),
  ),
});

export const socialHealth = Type.Object({
  status: oneOf("ok", "degraded"),
  running: Type.Boolean(),
  run: orNull(run),
  authorized: Type.Boolean(),
  quota: Type.Object({ limit: count, used: count, remaining: count, resets_at: time }),
});

export const account = Type.Object({ id: Type.String(), username: Type.String(), name: Type.String() });

export const linkedAccount = Type.Object({ ...account.properties, scopes: Type.Array(Type.String()) });

export const runStarted = Type.Object({ run_id: id, dry_run: Type.Boolean(), status: Type.Literal("started") });

const recipient = Type.Object({ id: Type.Optional(Type.String()), username: Type.Optional(Type.String()) });

const rehearsal = {
  estimate: usage,
  variants: Type.Array(Type.Object({ variant: Type.String(), text: Type.String() })),
  would_send: Type.Array(Type.Object({ recipient, text: Type.String(), variant: Type.String() })),
  would_skip: Type.Array(Type.Object({ recipient, reason: skipReason })),
};

export const runFinished = Type.Object({
  run_id: id,
  dry_run: Type.Boolean(),
  status: Type.Literal("finished"),
  reason: runEnd,
  ...counts,
  in_doubt: count,
  started_at: time,
  finished_at: time,
  usage,
  ...Type.Partial(Type.Object(rehearsal)).properties,
});

export const stats = Type.Object({ ...counts, as_of: Type.Object({ position: count, time: orNull(time) }) });

export const apiHealth = Type.Object({
  status: oneOf("ok", "degraded"),
  version: Type.String(),
  log: Type.Object({ position: count }),
  channels: perChannel(
    Type.Object({
      configured: Type.Boolean(),
      pending: count,
      circuit: orNull(oneOf("closed", "open", "half_open")),
      suspended: orNull(Type.Object({ since: time, detail: Type.String() })),
    }),
  ),
});

export const delivered = Type.Object({ id, status: Type.Literal("delivered") });
export const pending = Type.Object({ id, status: Type.Literal("pending") });
export const recorded = Type.Object({ id });

export const tested = Type.Object({
  results: perChannel(
    Type.Object({
      ok: Type.Boolean(),
      status: oneOf("delivered", "failed", "in_doubt", "not_configured"),
      latency_ms: orNull(Type.Number({ minimum: 0 })),
      detail: Type.Optional(Type.String()),
    }),
  ),
});
