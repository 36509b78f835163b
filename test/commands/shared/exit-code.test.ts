// These tests call the code directly.
import { expect, test } from "bun:test";
import {
  AppendInDoubt,
  BackupFailed,
  KeyReused,
  StoreBusy,
  StoreFull,
  StoreOwned,
  StoreUnusable,
} from "eventstore-lite/testing";
import { toExitCode } from "../../../src/commands/shared/exit-code.ts";
import { describeFault } from "../../../src/platform/describe-system-errors.ts";
import { SocialError } from "../../../src/networks/network.ts";
import { ServiceError, type ErrorKind } from "../../../src/platform/service-error.ts";

const CODES: Readonly<Record<ErrorKind, number | undefined>> = {
  usage: 2,
  configuration: 78,
  damaged: 78,
  invalid: 1,
  not_found: 1,
  conflict: 1,
  busy: 75,
  overloaded: 75,
  full: 75,
  closed: undefined,
  in_doubt: undefined,
  unavailable: 75,
  rate_limited: 1,
  unauthorized: 1,
  rejected: 1,
  stopped: 1,
};

test.each(Object.entries(CODES) as [ErrorKind, number | undefined][])("%s ends a command with %p", (kind, code) => {
  expect(toExitCode(new ServiceError(kind, "a sentence"))).toBe(code);
});

test("failures of the store, of a network and of the system have exit codes too", () => {
  const faults = [
    [new StoreOwned("pid 7"), 75],
    [new StoreBusy(), 75],
    [new StoreFull(), 75],
    [new StoreUnusable("a newer format"), 78],
    [new BackupFailed("no room"), 1],
    [new KeyReused(), 1],
    [new SocialError("unavailable", "X answered 503"), 75],
    [new SocialError("stopped", "no credits", { stop: "credits_depleted" }), 1],
    [Object.assign(new Error("read-only"), { code: "EROFS" }), 78],
    [Object.assign(new Error("no such file"), { code: "ENOENT" }), 1],
  ] as const;
  for (const [fault, code] of faults) expect([fault.message, toExitCode(fault)]).toEqual([fault.message, code]);
});

test("an unforeseen fault has no exit code", () => {
  for (const fault of [new TypeError("oops"), new AppendInDoubt(new Error("EIO")), "thrown text", undefined]) {
    expect(toExitCode(fault)).toBeUndefined();
  }
});

test("a system error about a file is one sentence, also within a store error", () => {
  const path = "/data/reachlog.sqlite.owner";
  const system = Object.assign(new Error(`EROFS: read-only file system, open '${path}'`), { code: "EROFS", path });
  const sentence = `${path} is on a read-only file system`;
  expect(describeFault(system)).toBe(sentence);
  expect(describeFault(new StoreUnusable(`${path}: ${String(system)}`, { cause: system }))).toBe(sentence);
  expect(describeFault(new Error("its own words", { cause: new Error("another") }))).toBe("its own words");
});
