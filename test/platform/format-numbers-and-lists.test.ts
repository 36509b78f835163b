// These tests call the code directly.
import { expect, test } from "bun:test";
import { formatPercent, formatUsd } from "../../src/platform/format-numbers-and-lists.ts";

test.each([
  [0, "0 %"],
  [0.004, "0.4 %"],
  [0.0996, "10 %"],
  [0.0994, "9.9 %"],
  [0.478, "48 %"],
  [1, "100 %"],
])("the share %d is written as %s", (share, text) => {
  expect(formatPercent(share)).toBe(text);
});

test.each([
  [13.531, 2, "$13.54"],
  [0.1 + 0.2, 2, "$0.30"],
  [0.0287, 3, "$0.029"],
  [1_388, 2, "$1,388.00"],
  [0, 2, "$0.00"],
])("%d dollars with %i decimals are written as %s, rounded up", (usd, decimals, text) => {
  expect(formatUsd(usd, decimals)).toBe(text);
});
