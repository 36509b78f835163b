// These tests call the code directly.
import { expect, test } from "bun:test";
import { watchSignals } from "../../src/platform/signals.ts";

/** A process whose signals and clock the test controls. */
function openProcess() {
  const listeners = new Map<string, () => void>();
  const exited: number[] = [];
  const process = { now: 5_000, exited };
  const interruption = watchSignals({
    on: (signal, listener) => void listeners.set(signal, listener),
    exit: (code) => void exited.push(code),
    now: () => process.now,
  });
  return { process, interruption, send: (signal: "SIGINT" | "SIGTERM") => listeners.get(signal)?.() };
}

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s ends a command at once that watches no signal", (signal, code) => {
  const { process, send } = openProcess();
  send(signal);
  expect(process.exited).toEqual([code]);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("%s aborts a command that watches it, and exits if repeated a second later", (signal, code) => {
  const { process, interruption, send } = openProcess();
  const { signal: watched } = interruption;
  send(signal);
  expect([watched.aborted, watched.reason, process.exited]).toEqual([true, code, []]);
  for (const later of [0, 1, 998]) {
    process.now += later;
    send(signal);
  }
  expect(process.exited).toEqual([]);
  process.now += 1;
  send(signal);
  expect(process.exited).toEqual([code]);
});

test("a different signal within the second does not exit either", () => {
  const { process, interruption, send } = openProcess();
  expect(interruption.signal.aborted).toBe(false);
  send("SIGINT");
  send("SIGTERM");
  expect([interruption.signal.reason, process.exited]).toEqual([130, []]);
  process.now += 1_000;
  send("SIGTERM");
  expect(process.exited).toEqual([143]);
});
