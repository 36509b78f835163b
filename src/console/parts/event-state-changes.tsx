/** @jsxImportSource preact */
import type { VNode } from "preact";
import { shorten } from "../../history/event-sentences.ts";
import type { readEventPage } from "../../history/log-and-news-pages.ts";
import { Section } from "../document.tsx";
import { eventHref } from "../hrefs.ts";
import type { View } from "../page-context.ts";
import { Select } from "./action-form.tsx";
import { breakable, type Cell, Table } from "./table.tsx";
import { A, PageForm } from "./links-forms-and-tabs.tsx";

/** Maximum number of characters of the path to a changed value. */
const PATH_CHARACTERS_MAX = 300;

/** Maximum number of characters of a changed value, so that a page with twenty of them stays small. */
const VALUE_CHARACTERS_MAX = 2_000;

type StateChange = NonNullable<Awaited<ReturnType<typeof readEventPage>>>["change"];
type KnownChange = Extract<StateChange, { readonly isReady: true }>;

/** Shows how an event changed the state of a projection, and offers other projections. */
export function StateChanges({ view, position, change }: { view: View; position: number; change: StateChange }): VNode {
  return (
    <Section id="changes" title="What it changed">
      {change.isReady ? (
        <>
          <ProjectionForm position={position} change={change} />
          {change.projection === undefined ? (
            <p class="empty">It changed the state of no projection.</p>
          ) : (
            <>
              <Change change={change} />
              <p>
                {position > 1 ? (
                  <A href={`${eventHref(position - 1)}?projection=${change.projection}`}>One event back</A>
                ) : null}{" "}
                {position < view.position ? (
                  <A href={`${eventHref(position + 1)}?projection=${change.projection}`}>One event forward</A>
                ) : null}
              </p>
            </>
          )}
        </>
      ) : (
        <p class="notice" role="status">
          The log is being read up to this event. Reload the page in a few seconds.
        </p>
      )}
    </Section>
  );
}

function ProjectionForm({ position, change }: { readonly position: number; readonly change: KnownChange }): VNode {
  const folding = new Set(change.choices.flatMap(({ name, isFolding }) => (isFolding ? [name] : [])));
  return (
    <PageForm class="filter" action={eventHref(position)}>
      <Select
        name="projection"
        label="Projection"
        values={change.choices.map(({ name }) => name)}
        chosen={change.projection}
        inWords={(name) => (folding.has(name) ? `${name} (reads this event)` : name)}
        none="first that changed"
      />
      <button>Show</button>
    </PageForm>
  );
}

function Change({ change: { projection, differences, isCut, whole } }: { readonly change: KnownChange }): VNode {
  if (differences.length === 0)
    return <p class="empty">{`The state of ${projection} is the same before and after it.`}</p>;
  return (
    <>
      <Table
        label={`Changes of ${projection}`}
        columns={["Where", ...breakable("Before", "After")]}
        rows={differences.map(toCells)}
      />
      {isCut ? <p>{`These are the first ${differences.length} changes.`}</p> : null}
      {whole === undefined ? null : (
        <details>
          <summary>The whole state</summary>
          <h3>Before</h3>
          <pre tabIndex={0}>{whole.before}</pre>
          <h3>After</h3>
          <pre tabIndex={0}>{whole.after}</pre>
        </details>
      )}
    </>
  );
}

function toCells(difference: KnownChange["differences"][number]): readonly Cell[] {
  const where = <bdi>{shorten(difference.where, PATH_CHARACTERS_MAX)}</bdi>;
  if (difference.isReordered) return [where, "the same entries in another order"];
  const [before, after] = [difference.before, difference.after].map((value) =>
    value === undefined ? <span class="quiet">nothing</span> : <code>{shorten(value, VALUE_CHARACTERS_MAX)}</code>,
  );
  return [where, before, after];
}
