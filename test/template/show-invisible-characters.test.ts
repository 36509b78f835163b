// These tests call the code directly.
import { expect, test } from "bun:test";
import { showOnOneLine, showUnseen } from "../../src/template/show-invisible-characters.ts";

test("invisible characters are shown as signs, all others unchanged", () => {
  const text = "Hi\u001b[2J\tü\u007f\u202e\u200b\ufeff\r\nfamily 👨‍👩‍👧";
  expect(showUnseen(text)).toBe("Hi␛[2J␉ü␡<U+202E><U+200B><U+FEFF>␍\nfamily 👨‍👩‍👧");
  expect(showOnOneLine("one\n\ntwo")).toBe("one↵↵two");
});
