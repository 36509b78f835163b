// These tests call the code directly.
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  AMOUNT_MAX,
  decimalsIn,
  divideRounded,
  formatAmount,
  isCurrency,
  parseAmount,
} from "../../src/platform/money.ts";
import { countCases } from "../harness/case-count.ts";

const currencies = fc.constantFrom("JPY", "KRW", "EUR", "USD", "BHD", "KWD", "CLF");
const amounts = fc.oneof(fc.integer({ min: -AMOUNT_MAX, max: AMOUNT_MAX }), fc.integer({ min: -5_000, max: 5_000 }));

test("every amount is read without loss from its decimal, as text and as a number", () => {
  fc.assert(
    fc.property(amounts, currencies, fc.nat(3), (amount, currency, zeros) => {
      const decimal = formatAmount(amount, currency);
      const point = decimalsIn(currency) === 0 ? "." : "";
      expect(parseAmount(zeros === 0 ? decimal : decimal + point + "0".repeat(zeros), currency)).toBe(amount);
      expect(parseAmount(JSON.parse(decimal) as number, currency)).toBe(amount);
    }),
    { numRuns: countCases(100_000) },
  );
});

test.each([
  ["24.90", "EUR", 2490],
  [24.9, "EUR", 2490],
  [1e3, "JPY", 1000],
  ["-0", "EUR", 0],
  ["1.234", "BHD", 1234],
  ["0.005", "EUR", undefined],
  ["1.5", "JPY", undefined],
  [0.1 + 0.2, "EUR", undefined],
  [1e21, "JPY", undefined],
  ["9999999999999.99", "EUR", AMOUNT_MAX],
  ["10000000000000.00", "EUR", undefined],
  ["1,5", "EUR", undefined],
  ["", "EUR", undefined],
  ["+1", "EUR", undefined],
] as const)("%p of %s is %p", (decimal, currency, expected) => {
  expect(parseAmount(decimal, currency)).toBe(expected);
});

test("quotients are rounded half away from zero", () => {
  expect([7n, 5n, -5n, -7n, 1n].map((units) => divideRounded(units, 2n))).toEqual([4n, 3n, -3n, -4n, 1n]);
  expect([1n, 2n, -2n].map((units) => divideRounded(units, 3n))).toEqual([0n, 1n, -1n]);
});

test("a currency is known by its code in capitals", () => {
  expect(["EUR", "UYW", "eur", "EURO", "QQQ"].map(isCurrency)).toEqual([true, true, false, false, false]);
});
