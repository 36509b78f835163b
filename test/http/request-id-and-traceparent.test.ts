// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { requestId, traceparent } from "../../src/http/app.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT_ID = "b7ad6b7169203331";

test("a caller's request id is kept if it is 1 to 128 characters of A-Za-z0-9._-", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/), (id) => expect(requestId(id, () => "made")).toBe(id)),
  );
  for (const bad of [null, "", "a b", "a\n", "a/b", "ä", "x".repeat(129)]) {
    expect(requestId(bad, () => "made")).toBe("made");
  }
});

test.each([`00-${TRACE_ID}-${PARENT_ID}-00`, `00-${TRACE_ID}-${PARENT_ID}-01`])(
  "the valid traceparent %s is kept",
  (given) => {
    expect(traceparent(given)).toBe(given);
  },
);

test.each([
  null,
  "",
  `00-${"0".repeat(32)}-${PARENT_ID}-01`,
  `00-${TRACE_ID}-${"0".repeat(16)}-01`,
  `00-${TRACE_ID.toUpperCase()}-${PARENT_ID}-01`,
  `01-${TRACE_ID}-${PARENT_ID}-01`,
  `ff-${TRACE_ID}-${PARENT_ID}-01`,
  `00-${TRACE_ID}-${PARENT_ID}-01-more`,
  `00-${TRACE_ID}-${PARENT_ID}-01\n`,
  `00-${TRACE_ID}-${PARENT_ID}`,
])("the invalid traceparent %j is replaced by a new unsampled one", (given) => {
  const made = traceparent(given);
  expect(made).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-00$/);
  expect(traceparent(given)).not.toBe(made);
});
