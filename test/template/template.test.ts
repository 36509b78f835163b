// On no harness.
import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { checkOptOut } from "../../src/template/opt-out.ts";
import {
  MESSAGE_CHARS_MAX,
  missingPlaceholders,
  parseTemplate,
  render,
  renderAll,
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
  ])("%j gives %j", (template, text) => {
    expect(say(template)).toEqual({ ok: true, text, variant: "A", links: [] });
  });

  test("an imported column and a placeholder meet whatever their case, spaces and composition", () => {
    expect(say("{{ PRE\u0301NOM  usuel }}", { fields: { " Prénom usuel ": "Zoé" } })).toMatchObject({ text: "Zoé" });
  });

  test("a recipient's name beats a field of that name", () => {
    expect(say("{{name}}", { fields: { name: "Field" } })).toMatchObject({
      text: "Ann",
    });
    expect(say("{{name}}", { name: undefined, fields: { name: "Field" } })).toMatchObject({ text: "Field" });
  });

  test("that no recipient could fill are found, each once, sorted", () => {
    const template = parseTemplate("{{zip}} {{ Company }} {{company}} {{name}} {{title|x}}\n---\n{{city}}");
    expect(missingPlaceholders(template, ["COMPANY "])).toEqual(["city", "zip"]);
    expect(missingPlaceholders(template, ["city", "zip", "company"])).toEqual([]);
  });

  test("a field with a fallback in one place only is still missed in the other", () => {
    expect(missingPlaceholders(parseTemplate("{{a|x}} {{a}}"), [])).toEqual(["a"]);
  });
});

describe("short links", () => {
  const base = "https://go.example";
  const linked = (text: string) => parseTemplate(text, base).variants.map(({ links }) => links);

  test("each variant and target has a link of its own, which is always the same", () => {
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

  test("a message holds the base and the code", () => {
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
    "%s is refused with its place",
    (text) => {
      expect(() => parseTemplate(`Hi ${text}`, base)).toThrow(
        "line 1, column 4: {{link …}} needs an http or https URL",
      );
    },
  );

  test("without a base there is no link", () => {
    expect(() => parseTemplate("Hi {{link https://shop.example}}")).toThrow("needs LINK_BASE, or REDIRECTS=on");
  });
});

describe("never a message with a hole in it", () => {
  test.each([undefined, "", "   ", "\n\t", "\u200B", "\u2060\uFE0F", "\u3164", "\u0000", "\u2800", "\u202E"])(
    "the name %j counts as missing",
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

  test("all missing fields are named, once", () => {
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

describe("values are taken literally", () => {
  test.each([
    ["{{username}}", "{{username}}"],
    ["$& $1 $$", "$& $1 $$"],
    ["A\nB\tC", "A B C"],
    ["A\u0000\u001b[31mB\u007f", "A[31mB"],
    ["\u202Eevil\u202C", "evil"],
    ["👩‍👩‍👧 x", "👩‍👩‍👧 x"],
    ["\uD800x", "\uFFFDx"],
    ["  Ann  ", "Ann"],
  ])("%j is written %j", (name, text) => {
    expect(say("{{name}}", { name })).toMatchObject({ ok: true, text });
  });
});

describe("malformed templates are reported by line and column", () => {
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
  ])("%j", (text, line, column, problem) => {
    const fault = faultOf(text);
    expect(fault.message).toMatch(new RegExp(problem));
    if (!text.includes("\n \n") && !text.includes("{{{")) expect([fault.line, fault.column]).toEqual([line, column]);
  });

  test("a placeholder may not reach over a line of ---", () => {
    expect(faultOf("{{a\n---\nb}}").line).toBe(1);
  });
});

describe("variants", () => {
  const template = parseTemplate("first {{name}}\n---\nsecond {{name}}\n---  \nthird {{name}}");

  // Seven, because 256 is 1 modulo 3: with three variants the test would not depend on the order of the hash's bytes.
  const seven = parseTemplate(Array.from({ length: 7 }, (_, index) => `text ${index}`).join("\n---\n"));

  // Fixed values: another rule would give recipients another message than the log says they got.
  test.each([
    ["1", "F"],
    ["42", "A"],
    ["@ann_b", "A"],
    ["1786543210987654321", "B"],
    ["日本", "D"],
  ])("the recipient %s gets %s for ever", (key, variant) => {
    expect(render(seven, { ...ann, key })).toMatchObject({ variant });
  });

  test("whatever a template says, a person keeps their letter as long as the number of variants stays", () => {
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

  test("there are at most 26", () => {
    expect(faultOf(Array.from({ length: 27 }, () => "x").join("\n---\n")).message).toContain("26 variants");
  });
});

describe("a template's id", () => {
  // The output of `printf 'Hi {{name}}' | sha256sum`. The log stores it, so it must not change either.
  test("is the beginning of the SHA-256 of its text", () => {
    expect(parseTemplate("Hi {{name}}").id).toBe("deeba1bc3365");
  });

  test("is the same whatever editor saved the file, and another for another text", () => {
    expect(parseTemplate("\uFEFFa\r\n---\r\nb").id).toBe(parseTemplate("a\n---\nb").id);
    expect(parseTemplate("a\n---\nc").id).not.toBe(parseTemplate("a\n---\nb").id);
  });
});

describe("length", () => {
  test("X's limit is the last length that passes", () => {
    const fits = "x".repeat(MESSAGE_CHARS_MAX - 1);
    expect(say(`${fits}{{name}}`, { name: "1" })).toMatchObject({ ok: true });
    expect(say(`${fits}{{name}}`, { name: "12" })).toEqual({
      ok: false,
      reason: "too_long",
      missing: [],
      length: MESSAGE_CHARS_MAX + 1,
    });
  });
  test("a text that could never be sent is refused at start", () => {
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

  test("a message is whole, clean and of the same variant each time, or there is none", () => {
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

  test("every variant renders for a person who has all fields, and none has a hole", () => {
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

  test("the variant a person gets reads as it does among all variants", () => {
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

  test("parsing either gives a template or a TemplateError, never another fault", () => {
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
  ["Hi https://acme.example/stop", true, "Each variant has a link"],
  ["Hi\n---\nHi http://a.example\n---\nHi {{site}}, {{a|https://a.example}}", false, "without a link: A, C."],
  ["Hi https:// there", false, "without a link: A."],
])("a variant has a link where its own text has one: %j", (text, isLinked, detail) => {
  expect(checkOptOut(parseTemplate(text))).toEqual({ isLinked, detail: expect.stringContaining(detail) });
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
