// These tests call the code directly.
import { expect, test } from "bun:test";
import { StoreClosed } from "eventstore-lite";
import { SigningKeyRefused } from "eventstore-lite/proof";
import { AppendInDoubt, InvalidAppend, StoreFull, StoreOwned } from "eventstore-lite/testing";
import { InvalidEvent } from "../../events/define-event.ts";
import { classifyError } from "../../src/log/classify-store-error.ts";
import { SocialError } from "../../src/networks/network.ts";
import { ServiceError, type ErrorKind } from "../../src/platform/service-error.ts";

const FAULTS: readonly (readonly [unknown, ErrorKind | undefined])[] = [
  [new ServiceError("not_found", "no log"), "not_found"],
  [new SocialError("rate_limited", "wait"), "rate_limited"],
  [new StoreFull(), "full"],
  [new StoreOwned("pid 7"), "busy"],
  [new StoreClosed(), "closed"],
  [new AppendInDoubt(undefined), "in_doubt"],
  [new SigningKeyRefused("others can read it"), "configuration"],
  [new InvalidEvent("unknown event type"), "damaged"],
  [new InvalidAppend("no events"), undefined],
  [new TypeError("undefined is not a function"), undefined],
  // This error only looks like one of ours. An error of a network may have such members.
  [Object.assign(new Error("refused"), { kind: "configuration", code: "full" }), undefined],
  [undefined, undefined],
];

test("known errors are classified, and all others have no kind", () => {
  for (const [fault, kind] of FAULTS) expect([String(fault), classifyError(fault)]).toEqual([String(fault), kind]);
});
