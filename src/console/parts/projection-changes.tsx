/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Recorded } from "../../../events/catalog.ts";
import { PROJECTION_NAMES, type ProjectionName } from "../../../projections/all.ts";
import { type Difference, DIFFERENCES_MAX, formatPath, formatValue } from "../../projector/differences.ts";
import { PAST_WAIT_MS } from "../../projector/past-states.ts";
import { findChange, listFolding, type StateChange } from "../../projector/event-changes.ts";
import { Section } from "../document.tsx";
import { eventHref } from "../hrefs.ts";
import { readChoice, type View } from "../page-context.ts";
import { Select } from "./action-form.tsx";
import { shorten } from "./events.tsx";
import { breakable, type Cell, Table } from "./table.tsx";
import { A, PageForm } from "./link.tsx";

/** Characters of a value or a path that are shown; further down the page has the whole data of the event. */
const SHOWN_CHARACTERS_MAX = 300;

/**
 * The changes that an event made to the state of a projection: the one in the parameter `projection`, else the first
 * that changed.
 */
export async function renderStateChanges(view: View, event: Recorded): Promise<VNode> {
  const asked = readChoice(view, "projection", PROJECTION_NAMES);
  const folding = listFolding(event.type);
  const change = await findFirst(view, event, asked === undefined ? folding : folding.filter((name) => name === asked));
  const chosen = asked ?? (typeof change === "object" ? change.projection : undefined);
  return (
    <Section id="changes" title="What it changed">
      {change === "not ready" ? (
        <p class="notice" role="status">
          The log is being read up to this event. Reload the page in a few seconds.
        </p>
      ) : (
        <>
          <PageForm class="filter" action={eventHref(event.position)}>
            <Select
              name="projection"
              label="Projection"
              values={PROJECTION_NAMES}
              chosen={chosen}
              inWords={(name) => (folding.includes(name) ? `${name} (reads this event)` : name)}
              none="first that changed"
            />
            <button>Show</button>
          </PageForm>
          {chosen === undefined ? (
            <p class="empty">It changed the state of no projection.</p>
          ) : (
            <>
              <Change name={chosen} change={change} />
              <p>
                {event.position > 1 ? (
                  <A href={`${eventHref(event.position - 1)}?projection=${chosen}`}>One event back</A>
                ) : null}{" "}
                {event.position < view.position ? (
                  <A href={`${eventHref(event.position + 1)}?projection=${chosen}`}>One event forward</A>
                ) : null}
              </p>
            </>
          )}
        </>
      )}
    </Section>
  );
}

/**
 * Finds the change of the first of these projections whose state the event changed. To open all of them takes a second
 * in a long log.
 */
async function findFirst(
  { past }: View,
  event: Recorded,
  names: readonly ProjectionName[],
): Promise<StateChange | "not ready" | undefined> {
  const begun = performance.now();
  for (const name of names) {
    const isLate = performance.now() - begun > PAST_WAIT_MS;
    const states = isLate ? undefined : await past.at(event.position - 1, [name]);
    if (states === undefined) return "not ready";
    const change = await findChange(name, states[name], event);
    if (change.differences.length > 0) return change;
  }
  return undefined;
}

function Change({ name, change }: { readonly name: string; readonly change: StateChange | undefined }): VNode {
  if (change === undefined) return <p class="empty">{`The state of ${name} is the same before and after it.`}</p>;
  const { differences, whole } = change;
  return (
    <>
      <Table
        label={`Changes of ${name}`}
        columns={["Where", ...breakable("Before", "After")]}
        rows={differences.map(toCells)}
      />
      {differences.length < DIFFERENCES_MAX ? null : <p>{`These are the first ${DIFFERENCES_MAX} changes.`}</p>}
      {whole === undefined ? null : (
        <details>
          <summary>The whole state</summary>
          <h3>Before</h3>
          <pre tabIndex={0}>{formatState(whole.before)}</pre>
          <h3>After</h3>
          <pre tabIndex={0}>{formatState(whole.after)}</pre>
        </details>
      )}
    </>
  );
}

function toCells({ path, values }: Difference): readonly Cell[] {
  const where = <bdi>{shorten(formatPath(path), SHOWN_CHARACTERS_MAX)}</bdi>;
  if (values === "reordered") return [where, "the same entries in another order"];
  const [before, after] = [values.before, values.after].map((value) =>
    value === undefined ? (
      <span class="quiet">nothing</span>
    ) : (
      <code>{shorten(formatValue(value), SHOWN_CHARACTERS_MAX)}</code>
    ),
  );
  return [where, before, after];
}

/** Formats a state as JSON, with maps as objects, which are easier to read. */
function formatState(state: unknown): string {
  return JSON.stringify(state, (_key, inner: unknown) => (inner instanceof Map ? Object.fromEntries(inner) : inner), 2);
}
