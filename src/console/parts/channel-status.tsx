/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { ChannelBacklog, readChannels } from "../../delivery/channel-backlog-and-undelivered.ts";
import { countInWords, grouped } from "../../platform/format-numbers-and-lists.ts";
import { ActionForm, type Hindrance } from "./action-form.tsx";
import { Badge, type BadgeState } from "./icon-and-badge.tsx";
import { A } from "./links-forms-and-tabs.tsx";
import { Time } from "./time.tsx";
import type { View } from "../page-context.ts";

type Channel = Awaited<ReturnType<typeof readChannels>>[number];

interface TileProps {
  readonly view: View;
  readonly channel: Channel;
}

/**
 * Shows one channel: its state, its deliveries of a day as a curve, what is pending and for how long, and how much
 * arrived.
 */
export function ChannelTile({ view, channel }: TileProps): VNode {
  const { backlog, drainedIn, delivered, failed } = channel;
  const [state, why] = readStatus(view, channel);
  return (
    <section class="card tile" aria-label={backlog.title}>
      <header>
        <h2>{backlog.title}</h2>
        <Badge state={state} />
      </header>
      <Curve channel={channel} />
      <p class="ends">
        <span>24 hours ago</span> <span>now</span>
      </p>
      <dl>
        <div>
          <dt>Waiting</dt>
          <dd>{grouped(backlog.pending)}</dd>
        </div>
        <div>
          <dt>All sent in</dt>
          <dd>{drainedIn}</dd>
        </div>
      </dl>
      <p>
        {grouped(delivered)} delivered
        {failed === 0 ? "" : `, ${countInWords(failed, "request")} failed`} in 24 hours{why === undefined ? null : ". "}
        {why}
      </p>
      {backlog.suspended === null ? null : <Resume backlog={backlog} back="/deliveries" />}
    </section>
  );
}

/** Shows one channel in a line of the overview. */
export function ChannelLine({ view, channel }: TileProps): VNode {
  const { backlog, delivered } = channel;
  const [state] = readStatus(view, channel);
  const waiting =
    backlog.pending === 0
      ? "nothing waits"
      : `${countInWords(backlog.pending, "dispatch waits", "dispatches wait")}${sayDrain(channel)}`;
  return (
    <li class="channel">
      <h3>
        <A href={`/deliveries?channel=${backlog.name}`}>{backlog.title}</A>
      </h3>
      <Badge state={state} />
      <p class="quiet">
        {grouped(delivered)} in 24 hours, {waiting}
      </p>
    </li>
  );
}

/** Says when all waiting dispatches of a channel are sent, or why that is not known. */
function sayDrain({ lag, drainedIn }: Channel): string {
  if (lag.drained_in_seconds !== null) return `, all sent in about ${drainedIn}`;
  if (lag.suspended !== null) return " until you resume it";
  return lag.settled_per_minute === 0 ? "; none was sent in the last minutes" : "; more arrive than are sent";
}

/**
 * Returns why the channel gets nothing until the operator acts: the channel is suspended, or not configured. Undefined
 * otherwise, even while the circuit is open.
 */
export function hindranceToDeliver({ settings }: View, backlog: ChannelBacklog): Hindrance | undefined {
  if (backlog.suspended !== null) return { why: backlog.whySuspended };
  if (settings.configured.includes(backlog.name)) return undefined;
  return { why: `${backlog.title} is not configured`, nextStep: { href: "/setup", label: "What to set up" } };
}

/** Button that resumes a suspended channel. */
export function Resume({ backlog, back }: { backlog: ChannelBacklog; back: string }): VNode {
  return (
    <ActionForm back={back} action="/console/deliveries/resume" fields={{ channel: backlog.name }}>
      <button class="primary">Resume {backlog.title}</button>
    </ActionForm>
  );
}

const HEIGHT = 40;

/** Draws the deliveries of a day by quarters of an hour. Quarters in which requests failed are marked in red below. */
function Curve({ channel: { curve, delivered, failed } }: { readonly channel: Channel }): VNode {
  const most = Math.max(1, ...curve.map((quarter) => quarter.delivered));
  const step = 100 / (curve.length - 1);
  // The height of each point is the square root of the deliveries in a quarter of an hour. Otherwise one quarter with a
  // burst would make the line of all other quarters flat.
  const points = curve.map((quarter, at) => {
    const height = Math.sqrt(quarter.delivered / most) * (HEIGHT - 4);
    return `${(at * step).toFixed(1)} ${(HEIGHT - height).toFixed(1)}`;
  });
  const said = `Deliveries of the last 24 hours: ${grouped(delivered)}, and ${countInWords(failed, "failed request")}`;
  return (
    <svg class="curve" viewBox={`0 0 100 ${HEIGHT + 4}`} preserveAspectRatio="none" role="img" aria-label={said}>
      <path class="area" d={`M0 ${HEIGHT}L${points.join("L")}L100 ${HEIGHT}Z`} />
      <path class="line" d={`M${points.join("L")}`} />
      {curve.map((quarter, at) =>
        quarter.failed === 0 ? null : (
          <rect class="failed" x={(at * step - step / 2).toFixed(1)} y={HEIGHT} width={step.toFixed(1)} height="4" />
        ),
      )}
    </svg>
  );
}

function readStatus(view: View, { backlog, lag }: Channel): readonly [BadgeState, why?: ComponentChildren] {
  const { name, pending, suspended } = backlog;
  if (suspended !== null) {
    const why = (
      <>
        <bdi>{suspended.network}</bdi> refused it <Time at={suspended.since} />: <bdi>{suspended.detail}</bdi>
      </>
    );
    return [["bad", "pause", "Suspended"], why];
  }
  if (!view.settings.configured.includes(name)) {
    if (pending === 0) return [["neutral", "x", "Not configured"]];
    return [["bad", "x", "Not configured"], "What waits is sent once the channel is set up"];
  }
  const circuit = view.live?.circuit(name);
  if (circuit === "open") return [["bad", "pause", "Paused"], "Its network failed several times in a row"];
  if (circuit === "half_open") return [["warn", "clock", "Trying again"], "One request tells whether it works again"];
  const { failures_in_a_row: failures, settled_per_minute: rate } = lag;
  if (failures > 0) {
    const why = failures === 1 ? "The last attempt failed" : `The last ${grouped(failures)} attempts failed`;
    return [["warn", "triangleAlert", "Failing"], why];
  }
  if (pending === 0) return [["good", "check", "Up to date"]];
  return [["info", "clock", rate === 0 ? "Waiting" : "Delivering"]];
}
