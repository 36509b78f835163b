// These tests call the code directly.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { createStopWords } from "../../src/outreach/detect-opt-out-replies.ts";
import { checkOptOut } from "../../src/template/check-opt-out.ts";
import { createOptOutCode, isPersonalCode } from "../../src/template/short-link.ts";
import {
  findRenderFault,
  MESSAGE_CHARS_MAX,
  missingPlaceholders,
  parseTemplate,
  render,
  renderAll,
  withoutOptOut,
  chooseVariant,
  type MessageRecipient,
} from "../../src/template/template.ts";
import { TemplateError } from "../../src/template/parse-parts.ts";

const ann: MessageRecipient = {
  key: "42",
  username: "ann_b",
  name: "Ann",
  fields: { company: "Acme" },
};

function say(text: string, recipient: Partial<MessageRecipient> = {}) {
  return render(parseTemplate(text), { ...ann, ...recipient });
}

function faultOf(text: string): TemplateError {
  try {
    parseTemplate(text);
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
  throw new Error("the template was accepted");
}

describe("placeholders", () => {
  test.each([
    ["Hi {{name}}", "Hi Ann"],
    ["Hi {{ name }}, @{{username}}!", "Hi Ann, @ann_b!"],
    ["{{NAME}} of {{ Company }}", "Ann of Acme"],
    ["{{title|friend}}", "friend"],
    ["{{ title | a | b }}", "a | b"],
    ["{{name|there}}", "Ann"],
    ["{ one } brace {is} text", "{ one } brace {is} text"],
    ["👋🏽 {{name}} 日本", "👋🏽 Ann 日本"],
    ["one\r\ntwo\rthree", "one\ntwo\nthree"],
    ["  \n Hi {{name}} \n\n", "Hi Ann"],
  ])("%j renders as %j", (template, text) => {
    expect(say(template)).toEqual({ ok: true, text, variant: "A", links: [] });
  });

  test("match columns regardless of case, spaces and composition", () => {
    expect(say("{{ PRE\u0301NOM  usuel }}", { fields: { " Prénom usuel ": "Zoé" } })).toMatchObject({ text: "Zoé" });
  });

  test("prefer a recipient's name to a field called name", () => {
    expect(say("{{name}}", { fields: { name: "Field" } })).toMatchObject({
      text: "Ann",
    });
    expect(say("{{name}}", { name: undefined, fields: { name: "Field" } })).toMatchObject({ text: "Field" });
  });

  test("without a column are listed once, in order", () => {
    const template = parseTemplate("{{zip}} {{ Company }} {{company}} {{name}} {{title|x}}\n---\n{{city}}");
    expect(missingPlaceholders(template, ["COMPANY "])).toEqual(["city", "zip"]);
    expect(missingPlaceholders(template, ["city", "zip", "company"])).toEqual([]);
  });

  test("are missing if only another occurrence has a fallback", () => {
    expect(missingPlaceholders(parseTemplate("{{a|x}} {{a}}"), [])).toEqual(["a"]);
  });
});

describe("short links", () => {
  const base = "https://go.example";
  const linked = (text: string) => parseTemplate(text, base).variants.map(({ links }) => links);

  test("differ for each variant and target, and stay the same", () => {
    const text =
      "A {{link https://shop.example/a}} {{ link https://shop.example/b }} {{link https://shop.example/a}}\n---\nB {{link https://shop.example/a}}";
    const all = linked(text).flat();
    expect(all.map(({ target }) => target)).toEqual([
      "https://shop.example/a",
      "https://shop.example/b",
      "https://shop.example/a",
    ]);
    expect(new Set(all.map(({ code }) => code)).size).toBe(3);
    expect(linked(text).flat()).toEqual(all);
    expect(parseTemplate(text, "https://other.example").variants[0]?.links[0]?.code).not.toBe(all[0]!.code);
  });

  test("appear in a message as base and code", () => {
    const template = parseTemplate("Hi {{name}}: {{link https://shop.example/a}}", "https://reach.example/l");
    const [link] = template.variants[0]!.links;
    expect(link).toMatchObject({
      domain: "reach.example/l",
      code: expect.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{10}$/),
    });
    expect(render(template, { key: "1", username: "ann", name: "Ann", fields: {} })).toMatchObject({
      text: `Hi Ann: https://reach.example/l/${link!.code}`,
      links: [link!],
    });
  });

  test("{{link}} and {{link|there}} stay fields", () => {
    expect(linked("{{link}} {{ link | there }}")).toEqual([[]]);
  });

  test.each(["{{link shop.example}}", "{{link ftp://shop.example}}", "{{link javascript:alert(1)}}"])(
    "%s is refused with line and column",
    (text) => {
      expect(() => parseTemplate(`Hi ${text}`, base)).toThrow(
        "line 1, column 4: {{link …}} needs an http or https URL",
      );
    },
  );

  test("are refused without a base", () => {
    expect(() => parseTemplate("Hi {{link https://shop.example}}")).toThrow("needs LINK_BASE, or REDIRECTS=on");
  });
});

describe("a missing field", () => {
  test.each([undefined, "", "   ", "\n\t", "\u200B", "\u2060\uFE0F", "\u3164", "\u0000", "\u2800", "\u202E"])(
    "may be a name without visible text: %j",
    (name) => {
      expect(say("Hi {{name}}", { name })).toEqual({
        ok: false,
        reason: "missing_field",
        missing: ["name"],
      });
      expect(say("Hi {{name|there}}", { name })).toMatchObject({
        ok: true,
        text: "Hi there",
      });
    },
  );

  test("is named once, like all others", () => {
    expect(say("{{b}} {{a}} {{b}} {{name}}")).toEqual({
      ok: false,
      reason: "missing_field",
      missing: ["a", "b"],
    });
  });

  test.each(["toString", "__proto__x", "hasOwnProperty", "valueOf"])("{{%s}} is not found on a prototype", (field) => {
    expect(say(`{{${field}}}`)).toMatchObject({ ok: false });
  });
});

describe("a value", () => {
  test.each([
    ["{{username}}", "{{username}}"],
    ["$& $1 $$", "$& $1 $$"],
    ["A\nB\tC", "A B C"],
    ["A\u0000\u001b[31mB\u007f", "A[31mB"],
    ["\u202Eevil\u202C", "evil"],
    ["👩‍👩‍👧 x", "👩‍👩‍👧 x"],
    ["\uD800x", "\uFFFDx"],
    ["  Ann  ", "Ann"],
  ])("is inserted literally: %j as %j", (name, text) => {
    expect(say("{{name}}", { name })).toMatchObject({ ok: true, text });
  });
});

test("a fault is found exactly where no message is rendered, without fields that come later", () => {
  const long = "x".repeat(MESSAGE_CHARS_MAX / 2);
  // A variant has at most three of these parts, and three of them still fit into a message. parseTemplate refuses a
  // template with a variant that can never fit, and this test needs templates that are accepted.
  const third = "y".repeat(Math.floor(MESSAGE_CHARS_MAX / 3) - 10);
  const value = fc.constantFrom("", " ", "Ann", "\u200B", long, `${long} `);
  const part = fc.constantFrom("Hi ", "{{name}}", "{{company}}", "{{company|you}}", "{{city}}", `${third} `);
  const variant = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => `Hello ${parts.join("")}`);
  const template = fc.array(variant, { minLength: 1, maxLength: 3 }).map((variants) => variants.join("\n---\n"));
  const fields = fc.dictionary(fc.constantFrom("company", "Company", "city"), value);
  fc.assert(
    fc.property(template, fields, value, fc.string(), fc.boolean(), (raw, known, name, key, isLater) => {
      const parsed = parseTemplate(raw);
      const recipient = { ...ann, key, name, fields: known };
      const rendered = render(parsed, recipient);
      const later = isLater ? ["name"] : [];
      const missing = rendered.ok ? [] : rendered.missing.filter((field) => !later.includes(field));
      const isFault = !rendered.ok && (rendered.reason === "too_long" || missing.length > 0);
      const found: unknown = findRenderFault(parsed, recipient, later);
      expect(found).toEqual(isFault ? { ...rendered, missing } : undefined);
    }),
  );
});

describe("a malformed template", () => {
  test.each([
    ["Hi {{name", 1, 4, "not closed"],
    ["Hi\n  {{name\n}}", 2, 3, "not closed"],
    ["Hi name}}", 1, 8, "without a {{"],
    ["Hi {{name}} }}", 1, 13, "without a {{"],
    ["Hi {{{name}}}", 1, 4, "one } too many|brace inside"],
    ["Hi {{name}}}", 1, 12, "one } too many"],
    ["{{a {{b}}", 1, 1, "brace inside"],
    ["Hi {{}}", 1, 4, "without a name"],
    ["Hi {{ | x}}", 1, 4, "without a name"],
    ["Hi {{name| }}", 1, 4, "hole"],
    ["👋 {{__proto__}}", 1, 3, "reserved"],
    ["a\r\n---\r\nb {{", 3, 3, "not closed"],
    ["", 1, 1, "without text"],
    ["a\n---\n \n---\nb", 3, 1, "without text"],
  ])("is refused with line and column: %j", (text, line, column, problem) => {
    const fault = faultOf(text);
    expect(fault.message).toMatch(new RegExp(problem));
    if (!text.includes("\n \n") && !text.includes("{{{")) expect([fault.line, fault.column]).toEqual([line, column]);
  });

  test("has a placeholder across a line of ---", () => {
    expect(faultOf("{{a\n---\nb}}").line).toBe(1);
  });
});

describe("variants", () => {
  const template = parseTemplate("first {{name}}\n---\nsecond {{name}}\n---  \nthird {{name}}");

  // Template with seven variants. With three, the test would not notice a wrong order of the hash's bytes, because 256
  // is 1 modulo 3.
  const seven = parseTemplate(Array.from({ length: 7 }, (_, index) => `text ${index}`).join("\n---\n"));

  // These values are fixed. If the rule changed, recipients would get another message than the log says.
  test.each([
    ["1", "F"],
    ["42", "A"],
    ["@ann_b", "A"],
    ["1786543210987654321", "B"],
    ["日本", "D"],
  ])("the recipient %s always gets %s", (key, variant) => {
    expect(render(seven, { ...ann, key })).toMatchObject({ variant });
  });

  test("the letter of a recipient depends on the number of variants, not on their text", () => {
    const wording = fc.array(fc.stringMatching(/^[a-z]{1,20}$/), { minLength: 7, maxLength: 7 });
    fc.assert(
      fc.property(wording, fc.string(), (texts, key) => {
        expect(chooseVariant(parseTemplate(texts.join("\n---\n")), key).label).toBe(chooseVariant(seven, key).label);
      }),
    );
  });

  test("are assigned about evenly", () => {
    const counts = new Map<string, number>();
    for (let id = 0; id < 30_000; id++) {
      const message = render(template, {
        ...ann,
        key: String(1_786_000_000_000_000 + id),
      });
      if (message.ok) counts.set(message.variant, (counts.get(message.variant) ?? 0) + 1);
    }
    for (const label of ["A", "B", "C"]) expect(Math.abs((counts.get(label) ?? 0) - 10_000)).toBeLessThan(500);
  });

  test("a line that only begins with --- is text", () => {
    expect(say("a\n----\n--- b\n ---")).toMatchObject({
      text: "a\n----\n--- b\n ---",
    });
  });

  test("are limited to 26", () => {
    expect(faultOf(Array.from({ length: 27 }, () => "x").join("\n---\n")).message).toContain("26 variants");
  });
});

describe("a template's id", () => {
  // The id in this test was computed by `sha256sum` from the text `Hi {{name}}`. Events in the log contain ids of
  // templates, so a later version must compute the same id from the same text.
  test("is the beginning of the SHA-256 of its text", () => {
    expect(parseTemplate("Hi {{name}}").id).toBe("deeba1bc3365");
  });

  test("ignores BOM and line endings, and changes with the text", () => {
    expect(parseTemplate("\uFEFFa\r\n---\r\nb").id).toBe(parseTemplate("a\n---\nb").id);
    expect(parseTemplate("a\n---\nc").id).not.toBe(parseTemplate("a\n---\nb").id);
  });
});

describe("the length of a message", () => {
  test("may reach X's limit, but not exceed it", () => {
    const fits = "x".repeat(MESSAGE_CHARS_MAX - 1);
    expect(say(`${fits}{{name}}`, { name: "1" })).toMatchObject({ ok: true });
    expect(say(`${fits}{{name}}`, { name: "12" })).toEqual({
      ok: false,
      reason: "too_long",
      missing: [],
      length: MESSAGE_CHARS_MAX + 1,
    });
  });
  test("is checked at the start for the template's own text", () => {
    expect(faultOf("x".repeat(MESSAGE_CHARS_MAX + 1)).message).toContain("10000");
  });
});

describe("for any template and recipient", () => {
  const field = fc.constantFrom("name", "username", "company", "city", "Ort");
  const literal = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => text.replace(/[{}]|---/g, ""));
  const piece = fc.oneof(
    literal,
    field.map((name) => `{{ ${name} }}`),
    fc.tuple(field, fc.stringMatching(/^[a-z]{1,8}$/)).map(([name, fallback]) => `{{${name}|${fallback}}}`),
  );
  const template = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => `x${pieces.join("")}`);
  const value = fc.oneof(
    fc.string({ unit: "binary", maxLength: 30 }),
    fc.constantFrom("", " ", "{{name}}", "}}", "{{", "\u200B"),
  );
  const recipient = fc.record({
    key: fc.string(),
    username: fc.stringMatching(/^\w{1,15}$/),
    name: fc.option(value, { nil: undefined }),
    fields: fc.dictionary(fc.constantFrom("company", "City", "ort"), value),
  });

  test("a message renders completely and reproducibly, or names the missing fields", () => {
    fc.assert(
      fc.property(template, recipient, (text, who) => {
        const parsed = parseTemplate(text);
        const message = render(parsed, who);
        expect(render(parseTemplate(text), structuredClone(who))).toEqual(message);
        if (message.ok) {
          expect(message.text).not.toMatch(/(?![\n\t])\p{Cc}/u);
          expect(message.text.isWellFormed()).toBe(true);
          expect(message.text.length).toBeLessThanOrEqual(MESSAGE_CHARS_MAX);
        } else {
          expect(message.missing.length).toBeGreaterThan(0);
          for (const name of message.missing) expect(text.toLowerCase()).toContain(name);
        }
      }),
      { numRuns: 500 },
    );
  });

  const several = fc.array(template, { minLength: 1, maxLength: 5 }).map((texts) => texts.join("\n---\n"));

  test("every variant renders for a recipient with all fields", () => {
    const said = fc.stringMatching(/^[a-z]{1,10}$/);
    const whole = fc.record({
      key: fc.string(),
      username: fc.stringMatching(/^\w{1,15}$/),
      name: said,
      fields: fc.record({ company: said, City: said, ort: said }),
    });
    fc.assert(
      fc.property(several, whole, (text, who) => {
        const parsed = parseTemplate(text);
        const all = renderAll(parsed, who);
        expect(all.map(({ variant }) => variant)).toEqual(["A", "B", "C", "D", "E"].slice(0, parsed.variants.length));
        for (const { variant, rendered } of all) {
          expect(rendered).toMatchObject({ ok: true, variant });
          if (rendered.ok) expect(rendered.text).toBe(filledByHand(text, variant, who));
        }
      }),
    );
  });

  test("render and renderAll agree on the recipient's variant", () => {
    fc.assert(
      fc.property(several, recipient, (text, who) => {
        const parsed = parseTemplate(text);
        const own = chooseVariant(parsed, who.key).label;
        const among = renderAll(parsed, who).find(({ variant }) => variant === own);
        expect(among?.rendered).toEqual(render(parsed, who));
      }),
    );
  });

  test("a value never changes the text around it", () => {
    fc.assert(
      fc.property(value, (name) => {
        const message = say("<{{name}}>", { name });
        if (message.ok) expect(message.text).toMatch(/^<[^]+>$/);
        const framed = message.ok ? message.text.slice(1, -1) : "";
        expect(framed.trim()).toBe(framed);
      }),
    );
  });

  test("parsing returns a template or throws a TemplateError", () => {
    const hostile = fc.array(fc.constantFrom("{{", "}}", "{", "}", "|", "---", "\n", "name", " ", "é", "\r\n"), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(hostile, (pieces) => {
        try {
          parseTemplate(pieces.join(""));
        } catch (error) {
          expect(error).toBeInstanceOf(TemplateError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

test.each([
  ["Hi {{optout}}", true, true, "Each variant links"],
  ["Hi, reply STOP and we stop.\n---\nHi {{ OptOut }}", true, false, "without {{optout}}: A"],
  [
    "Hi https://acme.example/out\n---\nstop here\n---\nnonstop {{stop}} {{a|stop}}",
    false,
    false,
    "way to opt out: A, C.",
  ],
])(
  "a variant offers an opt-out by {{optout}} or by a stop word in its own text: %j",
  (text, isOffered, isSure, detail) => {
    const template = parseTemplate(text, undefined, undefined, "https://reach.example/o");
    const found = checkOptOut(template, createStopWords(["stop"]));
    expect(found).toEqual({ isOffered, isSure, detail: expect.stringContaining(detail) });
  },
);

describe("{{optout}}", () => {
  const base = "https://reach.example/o";
  const parse = (text: string, optOutBase?: string) => parseTemplate(text, undefined, undefined, optOutBase);

  test("becomes the address of the recipient's page, and in previews one of the same length that no page has", () => {
    const template = parse("Hi {{name}}: {{ Optout }}.", base);
    const code = createOptOutCode("secret");
    expect(render(template, ann, undefined, code)).toMatchObject({ text: `Hi Ann: ${base}/${code}.` });
    const shown = render(template, ann);
    expect(shown).toMatchObject({ text: `Hi Ann: ${base}/YOUR-OWN-CODE.` });
    expect("YOUR-OWN-CODE".length).toBe(code.length);
    expect(isPersonalCode(code)).toBe(true);
    expect(withoutOptOut(template, shown.ok ? shown.text : "")).toBe("Hi Ann:  .");
    expect(missingPlaceholders(template, [])).toEqual([]);
  });

  test("needs an address and takes no fallback", () => {
    expect(() => parse("Hi {{optout}}")).toThrow("{{optout}} needs PUBLIC_URL");
    expect(() => parse("Hi {{optout|there}}", base)).toThrow("line 1, column 4: {{optout}} takes no fallback");
  });
});

/** The text of a variant by plain replacement, for values without braces and white space. */
function filledByHand(text: string, variant: string, { username, name, fields }: MessageRecipient): string {
  const values = new Map([...Object.entries(fields), ["name", name ?? ""], ["username", username]]);
  const lower = new Map([...values].map(([field, value]) => [field.toLowerCase(), value]));
  const source = text.split("\n---\n")["ABCDE".indexOf(variant)] ?? "";
  return source
    .trim()
    .replaceAll(/\{\{ ?(\w+) ?(?:\|\w+)?\}\}/g, (_, field: string) => lower.get(field.toLowerCase()) ?? "");
}
