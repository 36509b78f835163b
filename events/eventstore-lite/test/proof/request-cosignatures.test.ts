import { afterEach, expect, test } from "bun:test";
import { openSqliteStore } from "eventstore-lite";
import {
  createLogTree,
  openCheckpoint,
  openWitness,
  requestCosignature,
  signCheckpoint,
  signingKeyOf,
  startCosigning,
  type Witnessed,
} from "eventstore-lite/proof";
import { cosignedAt, parseNote } from "../../src/proof/signed-note.ts";
import { newEvents } from "../../src/testing/contract/make-events-and-collect-results.ts";
import { temporaryLogs } from "../temporary-logs.ts";

const newLogPath = temporaryLogs();
const logKey = signingKeyOf(new Uint8Array(32).fill(1));
const { privateKey, publicKey } = signingKeyOf(new Uint8Array(32).fill(2));
const cosigner = { name: "witness.example", publicKey };
const config = { url: "https://witness.example/", cosigner };
const NOW_MS = 1_764_000_000_000;

const stack: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of stack.splice(0).toReversed()) await end();
});

/**
 * Opens an empty log, to which `append` adds events, and a witness, which cosigns the log's heads. `request` asks the
 * witness by a direct call instead of over HTTP.
 */
async function openWorld() {
  const store = await openSqliteStore({ file: newLogPath() });
  stack.push(() => store[Symbol.asyncDispose]());
  const logKeys = [logKey.publicKey];
  const witness = openWitness({
    file: newLogPath(),
    mayBegin: true,
    cosigner,
    privateKey,
    logKeys,
    clock: () => NOW_MS,
  });
  stack.push(() => witness[Symbol.dispose]());
  const asked: string[] = [];
  const sign = async (): Promise<string> => {
    const { position, hash } = await store.head();
    const root = await createLogTree(store).root(position);
    return signCheckpoint({ origin: `example.com/${store.id}`, position, hash, root, time: undefined }, logKey);
  };
  return {
    asked,
    sign,
    append: (count: number) => store.append("a", newEvents(count)),
    async request(note: string, old: number, away?: string): Promise<Witnessed> {
      const post = async (url: string, body: string) => {
        asked.push(url);
        if (away !== undefined) return away;
        const { status, type, body: text } = witness.addCheckpoint(body);
        return { status, type, text };
      };
      return requestCosignature(store, config, { note, checkpoint: openCheckpoint(note, logKey.publicKey) }, old, post);
    },
  };
}

test("a head is cosigned, from the size that the witness knows", async () => {
  const { append, sign, request, asked } = await openWorld();
  await append(3);
  const first = await request(await sign(), 0);
  if (first.result !== "cosigned") throw new Error(first.detail);
  expect(cosignedAt(parseNote(first.note), cosigner)).toBe(NOW_MS / 1_000);
  await append(4);
  expect(await request(await sign(), 1)).toMatchObject({ result: "cosigned" });
  // The second head took two requests: the witness refused the first, and named the tree size that it knew.
  expect(asked).toEqual(Array.from({ length: 3 }, () => "https://witness.example/add-checkpoint"));
});

test("a witness that does not answer is unavailable, for the reason that the caller gives", async () => {
  const { append, sign, request } = await openWorld();
  await append(1);
  expect(await request(await sign(), 0, "no route to it")).toEqual({
    result: "unavailable",
    detail: "the witness witness.example does not answer: no route to it",
  });
});

test("a head is offered until it is cosigned, and only a change of the answer is reported", async () => {
  const away: Witnessed = { result: "unavailable", detail: "it is away" };
  const answers: (Witnessed | Error)[] = [away, away, new Error("no key"), { result: "cosigned", note: "cosigned" }];
  const [written, reported, failures]: [string[], Witnessed[], unknown[]] = [[], [], []];
  let asked = 0;
  const cosigning = startCosigning({
    async ask() {
      const answer = answers[asked++]!;
      if (answer instanceof Error) throw answer;
      return answer;
    },
    write: async (note) => void written.push(note),
    report: (witnessed) => void reported.push(witnessed),
    failed: (fault) => void failures.push(fault),
  });
  for (let offers = 0; offers < 6; offers++) {
    cosigning.offer("a head");
    // A head that is offered during a request to the witness starts no second request.
    cosigning.offer("a head");
    await new Promise(setImmediate);
    expect(asked).toBe(Math.min(offers + 1, answers.length));
  }
  await cosigning[Symbol.asyncDispose]();
  expect(asked).toBe(answers.length);
  expect(written).toEqual(["cosigned"]);
  expect(reported).toEqual([away, { result: "cosigned", note: "cosigned" }]);
  expect(failures).toEqual([new Error("no key")]);
});
