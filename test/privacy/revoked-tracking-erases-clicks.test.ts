// These tests run parts of the service inside the test process.
import { expect, test } from "bun:test";
import { findPerson } from "../../projections/contact-identity.ts";
import { STREAMS, type NewEvent } from "../../src/log/event-log.ts";
import { isSuppressed } from "../../src/outreach/decide.ts";
import { forgetPerson } from "../../src/privacy/forget-person-or-address.ts";
import { importRecipients } from "../../src/recipients/import.ts";
import { parseRecipients } from "../../src/recipients/parse-imported-lists.ts";
import { eraseLeftClicks, recordConsent } from "../../src/recipients/record-consent.ts";
import { ENGINES, inFile, openInstance } from "../harness/in-process/open-one-of-several-instances.ts";
import { RULES } from "../harness/in-process/simulated-outreach-processes.ts";
import { addedOf } from "../harness/in-process/make-recipient-and-click-events.ts";

const [ANN, BEA, CID] = ["ann", "bea", "cid"].map((username, at) => ({ id: `100${at}`, username })) as [
  { readonly id: string; readonly username: string },
  { readonly id: string; readonly username: string },
  { readonly id: string; readonly username: string },
];

async function openDecider(...[stack, log]: Parameters<typeof openInstance>) {
  const instance = await openInstance(stack, log);
  return { ...instance, hashesOf: RULES.hashes, sleep: async () => {} };
}

/** Events of a recipient who was imported with tracking granted, got a message with a personal link, and clicked it. */
const tracked = (recipient: typeof ANN): readonly NewEvent[] => [
  addedOf(recipient, { tracking: "granted", tracking_at: "2026-03-02", tracking_source: "form" }),
  {
    type: "DirectMessageAttempted",
    data: {
      attempt_id: `a-${recipient.id}`,
      run_id: "r",
      recipient,
      text: "Hi",
      variant: "A",
      personal_links: [{ code: `own-${recipient.username}`, link: "go.example/shared" }],
      day: "2026-03-02",
    },
  },
  { type: "PersonalLinkClicked", data: { code: `own-${recipient.username}` } },
];

test.each(ENGINES)(
  "with a log %s, revoked tracking erases the clicks on personal links, and nothing else",
  async (_name, where) => {
    await using stack = new AsyncDisposableStack();
    const log = await where(stack);
    const [here, there] = [await openDecider(stack, log), await openDecider(stack, log)];
    for (const recipient of [ANN, BEA, CID]) await here.eventLog.append(STREAMS.outreach, tracked(recipient), {});
    const { last } = await there.eventLog.append(
      STREAMS.outreach,
      [{ type: "PersonalLinkClicked", data: { code: "own-ann" } }],
      {},
    );
    const codes = async ({ store }: typeof here): Promise<readonly string[]> => {
      await Array.fromAsync(store.read({ backwards: true, limit: 1 }));
      const clicks = await Array.fromAsync(store.read({ types: ["PersonalLinkClicked"] }));
      return clicks.map(({ data }) => (data as { code: string }).code);
    };
    await there.projector.until(last);
    expect(await codes(there)).toEqual(["own-ann", "own-bea", "own-cid", "own-ann"]);

    await recordConsent(here, "ann", { tracking: "denied", tracking_source: "mail" }, {});
    await there.projector.until((await here.store.head()).position);
    expect(await codes(there)).toEqual(["erased", "own-bea", "own-cid", "erased"]);
    const rows = parseRecipients("id,username,tracking\n1001,bea,denied", "csv", { now: 0 }).rows;
    await importRecipients(there, rows, {}, { chunkRows: 10, signal: new AbortController().signal });
    await here.projector.until((await here.store.head()).position);
    expect(await codes(here)).toEqual(["erased", "erased", "own-cid", "erased"]);

    // The stored data no longer reveals which of these clicks were Ann's and which were Bea's.
    const refs = await refsOfClicks(here);
    expect(new Set(refs).size).toBe(4);
    const named: string[] = [];
    for await (const event of here.store.read({ types: ["PersonForgotten"] }))
      if (event.type === "PersonForgotten") named.push(...event.data.keys);
    expect(named.length).toBe(2);
    expect(refs.filter((ref) => named.some((owner) => ref.startsWith(owner)))).toEqual([]);
    for (const owner of named) expect(await here.store.keyring.keys.refs(owner)).toEqual([owner]);

    // A click that comes after the revocation is unreadable too, even though tracking was granted again before it.
    await recordConsent(here, "ann", { tracking: "granted" }, {});
    await here.eventLog.append(STREAMS.outreach, [{ type: "PersonalLinkClicked", data: { code: "own-ann" } }], {});
    expect((await codes(there)).at(-1)).toBe("erased");

    for (const { projector, store } of [here, there]) {
      await projector.until((await store.head()).position);
      const contacts = projector.state("contacts");
      expect(findPerson(contacts, BEA)).toMatchObject({ ...BEA, suppressed: false, personal_links: ["own-bea"] });
      expect(contacts.hashes.size).toBe(0);
      const rules = { ...RULES, isForgotten: store.keyring.isForgotten };
      for (const recipient of [ANN, BEA]) expect(isSuppressed({ contacts } as never, rules, recipient)).toBe(false);
      expect(await store.verify()).toMatchObject({ ok: true });
    }

    // A forgotten person also loses the clicks on their personal links.
    const options = { metadata: {}, signal: new AbortController().signal };
    await forgetPerson(here, (contacts) => findPerson(contacts, CID), options);
    await there.projector.until((await here.store.head()).position);
    expect(await codes(there)).toEqual(["erased", "erased", "erased", "erased", "erased"]);
    expect(findPerson(there.projector.state("contacts"), ANN)).toMatchObject(ANN);
  },
);

/** The refs of the keys, as in the ciphertexts. */
async function refsOfClicks({ store }: Awaited<ReturnType<typeof openDecider>>): Promise<readonly string[]> {
  const stored = await Array.fromAsync(store.readStored({ types: ["PersonalLinkClicked"] }));
  return stored.map(({ data }) => store.keyring.refOf((data as { ciphertext: string }).ciphertext));
}

test("a denial under a handle that turns out to be the recipient's erases earlier clicks", async () => {
  await using stack = new AsyncDisposableStack();
  const here = await openDecider(stack, await inFile(stack));
  await here.eventLog.append(STREAMS.outreach, tracked(ANN), {});
  await recordConsent(here, "ann_b", { tracking: "denied" }, {});
  const data = { recipient: { ...ANN, username: "ann_b" }, message_id: "m", received_at: "2026-03-03T08:00:00.000Z" };
  const { last } = await here.eventLog.append(STREAMS.outreach, [{ type: "DirectMessageReceived", data }], {});
  await here.projector.until(last);
  const read = async () => (await Array.fromAsync(here.store.read({ types: ["PersonalLinkClicked"] })))[0]?.data;
  expect(await read()).toEqual({ code: "own-ann" });
  await eraseLeftClicks(here, { metadata: {} });
  expect(await read()).toEqual({ code: "erased" });
  // A second erasure has nothing to do.
  const { position } = await here.store.head();
  await eraseLeftClicks(here, { metadata: {} });
  expect((await here.store.head()).position).toBe(position);
});
