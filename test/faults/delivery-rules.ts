import type { FaultRow } from "./delivery-faults.ts";
import type { Lives } from "./killed-services.ts";
import { arrivalsAt, otherThan, type NetworkRow } from "./delivery-network-table.ts";
import type { Logged, DispatchRecord } from "./delivery-records.ts";

/** Checks the rules that hold for every dispatch under any fault. Returns the violations. */
export function faultsOfDispatch(record: DispatchRecord, { deduplicates }: NetworkRow): string[] {
  const { position, endings, arrived, cutOff, outcomes } = record;
  const [ending] = endings;
  const sent = outcomes.filter(({ data }) => data["mode"] !== undefined);
  const rules: [boolean, string][] = [
    [endings.length !== 1, `has ${endings.length} endings`],
    [ending === "delivered" && arrived === 0, "counts as delivered and never arrived"],
    [arrived > (deduplicates === true ? 1 : 1 + cutOff), `arrived ${arrived} times and was cut off ${cutOff} times`],
    [ending === "dead" && outcomes.at(-1)?.data["refused"] === true && arrived > 0, "was refused and arrived"],
    [sent.some(({ data }, at) => data["attempt"] !== at + 1), "has attempts that do not follow each other"],
  ];
  return rules.flatMap(([isBroken, words]) => (isBroken ? [`${position} ${words}`] : []));
}

/** Checks that the dispatches ended as the fault permits and requires. Returns the violations. */
export function faultsOfEndings(all: readonly DispatchRecord[], row: NetworkRow, fault: FaultRow): string[] {
  const { channel } = row;
  const inDoubt = all.filter(({ endings }) => endings[0] === "in doubt");
  const mayDoubt = leavesDoubt(row, fault);
  // The service attempts a channel test only once, and fails a direct send on a suspended channel, so these may end as
  // dead letters.
  const isTest = ({ isClick }: DispatchRecord): boolean => !isClick && channel === "ads";
  const mayDie = (record: DispatchRecord): boolean => isTest(record) || (!record.isClick && fault.endsBy !== undefined);
  const mayDoubtIt = (record: DispatchRecord): boolean => mayDoubt || (isTest(record) && fault.doubtful !== undefined);
  const dead = all.filter((record) => record.endings[0] === "dead" && !mayDie(record));
  // Dispatches that a kill cut off are left out, because they may have arrived before the kill, however they ended.
  const arrivedWrongly = inDoubt.filter(
    ({ arrived, cutOff }) => cutOff === 0 && arrived > 0 !== (fault.arrives === true),
  );
  const detailOf = ({ outcomes }: DispatchRecord): string => String(outcomes.at(-1)?.data["detail"]);
  return [
    ...(mayDoubt && inDoubt.length === 0 ? ["nothing is in doubt"] : []),
    ...inDoubt
      .filter((record) => !mayDoubtIt(record))
      .map((record) => `${record.position} is in doubt: ${detailOf(record)}`),
    ...(mayDoubt
      ? arrivedWrongly.map((record) => `${record.position} is in doubt and arrived ${record.arrived} times`)
      : []),
    ...dead.map((record) => `${record.position} is dead: ${detailOf(record)}`),
    ...all.filter(({ endings }) => endings[0] === "skipped").map(({ position }) => `${position} was skipped`),
  ];
}

function leavesDoubt({ deduplicates, tellsByStatus }: NetworkRow, { doubtful }: FaultRow): boolean {
  if (doubtful === undefined || deduplicates === true) return false;
  return doubtful === "unanswered" || tellsByStatus !== true;
}

interface Stop {
  readonly row: NetworkRow;
  readonly endsBy: string;
  readonly lives: Lives;
}

/**
 * Checks that the service suspends a channel which the network refuses: once, with one report, without sending clicks
 * until it resumes, and with failed direct sends. Returns the violations.
 */
export function faultsOfStop(
  log: readonly Logged[],
  all: readonly DispatchRecord[],
  { row, endsBy, lives }: Stop,
): string[] {
  const { channel } = row;
  const ofType = (type: string) => log.filter((event) => event.type === type && event.data["channel"] === channel);
  const stops = ofType("ChannelSuspended").length;
  const resumed = ofType("ChannelResumed");
  const reasons = resumed.map(({ data }) => data["why"]).join();
  const until = resumed[0]?.position ?? 0;
  const after = lives.kills[0]?.position ?? 0;
  const isWithin = ({ position }: Logged): boolean => position > after && position < until;
  const tried = all.filter(({ isClick, outcomes }) => isClick && outcomes.some(isWithin)).length;
  const directs = all.filter(({ isClick }) => !isClick);
  const late = directs.filter(({ endings, outcomes }) => endings[0] !== "dead" || (outcomes[0]?.position ?? 0) > until);
  const isAnnouncement = (text: unknown): boolean => String(text).includes(`refuses the ${channel} channel`);
  const requested = log.filter(({ data }) => isAnnouncement(data["message"] ?? data["text"])).length;
  const other = arrivalsAt(otherThan(channel), lives.world.sandbox).kept as readonly { text: string }[];
  const announced = other.filter(({ text }) => isAnnouncement(text)).length;
  const rules: [boolean, string][] = [
    [stops !== 1, `it was suspended ${stops} times`],
    [reasons !== endsBy, `it went on ${resumed.length} times: ${reasons}`],
    [tried > 0, `${tried} clicks were tried while it was suspended`],
    [late.length > 0, `${late.length} direct sends did not fail at once`],
    [requested !== 1 || announced !== 1, `the operator was to be told ${requested} times, and was ${announced} times`],
  ];
  return rules.flatMap(([isBroken, words]) => (isBroken ? [words] : []));
}
