/** @jsxImportSource preact */
import type { VNode } from "preact";
import { channelsOf, type ControlledWorld } from "../world.ts";
import type { Person } from "../x/people.ts";
import { grouped, SandboxDocument } from "./document.tsx";
import { Sheet } from "./sheet.tsx";

/** People on one page; tests add thousands. */
const PEOPLE_SHOWN = 100;

const HEAD = ["handle", "name", "id", "our messages", "received"] as const;

/** The people on X, and the limits of each network. */
export function peoplePage(world: ControlledWorld, skip: number): VNode {
  const { x } = world;
  const people = [...x.people.values()];
  const shown = people.slice(skip, skip + PEOPLE_SHOWN);
  const limits = [
    ...Object.entries(x.limits).map(([name, value]) => [`X, ${LIMIT_WORDS[name] ?? name}`, String(value)] as const),
    ...channelsOf(world).map(({ title, counts, state }) => [`${title}, ${counts}`, grouped(state.limit)] as const),
  ];
  const rows = shown.map((person) => ({
    id: `person-${person.id}`,
    cells: {
      handle: <b>@{person.username}</b>,
      name: <bdi>{person.name}</bdi>,
      id: person.id,
      "our messages": person.can_authorize === true ? "may authorize" : takes(person),
      received: grouped(x.accepted.get(person.id) ?? 0),
    },
  }));
  return (
    <SandboxDocument title="People and limits" path="/people" now={world.clock.now()}>
      <h1>People on X</h1>
      <p>
        {shown.length === people.length
          ? `${grouped(people.length)} people.`
          : `${grouped(skip + 1)} to ${grouped(skip + shown.length)} of ${grouped(people.length)} people.`}{" "}
        {skip > 0 ? <a href="/people">First people</a> : null}{" "}
        {skip + shown.length < people.length ? <a href={`/people?skip=${skip + PEOPLE_SHOWN}`}>More people</a> : null}
      </p>
      <Sheet label="People on X" head={HEAD} rows={rows} />
      <h2>Limits</h2>
      <dl class="facts">
        {limits.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </SandboxDocument>
  );
}

const LIMIT_WORDS: Readonly<Record<string, string>> = {
  dmLimit: "messages in 15 minutes",
  dmDayLimit: "messages in 24 hours",
  dmReadLimit: "reads of conversations in 15 minutes",
  rateHeaders: "answers show the limits",
  lateCommitMs: "ms until a message shows in look-ups",
};

function takes({ exists, receives_your_dm, closed_when_sent, not_permitted }: Person): string {
  if (exists === false) return "deleted or suspended";
  if (receives_your_dm === false) return "closed";
  if (not_permitted === true) return "not permitted, found out only when sent";
  return closed_when_sent === true ? "closed, found out only when sent" : "open";
}
