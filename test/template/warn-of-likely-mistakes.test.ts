// These tests call the code directly.
import { expect, test } from "bun:test";
import { warnOfSlips } from "../../src/template/warn-of-likely-mistakes.ts";

test.each([
  ["Hi {name}, how are you?", 'line 1: "{name}" is sent as it stands'],
  ["Hi { First Name }", '"{ First Name }"'],
  ["Hi\n*|FNAME|*", 'line 2: "*|FNAME|*" is sent'],
  ["Hi [[name]]", '"[[name]]"'],
  ["Hi %FIRSTNAME%", '"%FIRSTNAME%"'],
  ["Hi <<name>>", '"<<name>>"'],
  ["Hi ${name}", '"${name}"'],
  ["Hi [First Name]", '"[First Name]"'],
  ["Rock &amp; roll", '"&amp;" is sent as it stands; write the character itself'],
  ["Rock&nbsp;&#39;n&#39; roll", '"&nbsp;"'],
  ["Hi<br>there", '"<br>" is sent as it stands; X shows no HTML'],
  ["Hi {{name}}\\n---\\nHello", '"\\\\n" is sent as it stands; a line break is a real one'],
  ["Schöne GrÃ¼ÃŸe", "read as Windows-1252"],
  ["Itâ€™s", "read as Windows-1252"],
  ["One\n----\nTwo", 'line 2: "----" separates no variants'],
  ["One\n—\nTwo", 'line 2: "—" separates no variants'],
  ["One\n–––\nTwo", "separates no variants"],
  ["One\n- - -\nTwo", "separates no variants"],
  ["One\n --- \nTwo", "separates no variants"],
  ["One\n---\u00a0\nTwo", "separates no variants"],
  ['"Hi {{name}}"', 'the text begins and ends with " and ", which are sent'],
  ["“Hi {{name}}”\n", "begins and ends with “ and ”"],
  ["'Hi {{name}}'", "begins and ends with ' and '"],
  ["Hi\u001b[31m", "line 1: the control character U+001B is sent"],
])("%j causes one warning", (text, warning) => {
  expect(warnOfSlips(text)).toEqual([expect.stringContaining(warning)]);
});

test.each([
  "Hi {{name|there}}, get $50 off: SAVE#1 {{link https://shop.example/a?b=1&amplifier=2}}\r\n---\r\nHello {{ first name }} - bye",
  "5 < 6 & 7 > 3, 100% safe, 50%, [see below], it's “quoted” here",
  'He said "hi" to me, and "bye"!',
  "ÂGE D'OR, CHÂTEAU, SÃO PAULO, Grüße",
  "---",
])("%j causes no warning", (text) => {
  expect(warnOfSlips(text)).toEqual([]);
});
