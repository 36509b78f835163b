/** A message as a reader sees it. */
export interface Rendered {
  readonly text: string;
  /** Everything in it that is no plain text: mentions, masked links, formatting. A bare address is none of these. */
  readonly marks: readonly string[];
}

/** One piece of a network's syntax. `pattern` is sticky; `shows` gives what is seen of it. */
export interface Rule {
  /** Undefined: it leaves no mark. */
  readonly mark?: string;
  readonly pattern: RegExp;
  /** Stands only at the beginning of a line. */
  readonly lineStart?: true;
  /** Text that is read by the rules again; absent: nothing of the piece is. */
  readonly inner?: (match: RegExpExecArray) => string;
  readonly shows?: (match: RegExpExecArray) => string;
}

/** Reads `text` by the first rule that fits at each place; where none does, a character stands for itself. */
export function render(text: string, rules: readonly Rule[]): Rendered {
  const marks: string[] = [];
  let shown = "";
  let at = 0;
  while (at < text.length) {
    const lineStart = at === 0 || text[at - 1] === "\n";
    const found = ruleAt(text, at, lineStart, rules);
    if (found === undefined) {
      shown += text[at++];
      continue;
    }
    const { rule, match } = found;
    if (rule.mark !== undefined) marks.push(rule.mark);
    const inner = rule.inner === undefined ? undefined : render(rule.inner(match), rules);
    marks.push(...(inner?.marks ?? []));
    shown += inner?.text ?? rule.shows?.(match) ?? "";
    at += match[0].length;
  }
  return { text: shown, marks };
}

function ruleAt(text: string, at: number, lineStart: boolean, rules: readonly Rule[]) {
  for (const rule of rules) {
    if (rule.lineStart === true && !lineStart) continue;
    rule.pattern.lastIndex = at;
    const match = rule.pattern.exec(text);
    if (match !== null && match[0] !== "") return { rule, match };
  }
  return undefined;
}
