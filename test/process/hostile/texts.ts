/** Word in the hostile texts. If a line of an output begins with it, a text has forged that line. */
export const FORGED = "FORGED";

/** Hostile texts by their purpose. People outside may write them into any field for text. */
export const HOSTILE = {
  "clears the screen": "\u001b[2J\u001b[H",
  "colours by a sequence": "\u001b[31mred",
  "colours by a C1 sequence": "\u009b31mred",
  "masks a link (OSC 8)": "\u001b]8;;https://evil.example\u001b\\bank\u001b]8;;\u0007",
  "writes the clipboard (OSC 52)": "\u001b]52;c;ZXZpbA==\u0007",
  "asks the terminal (DCS)": "\u0090$q\u009c",
  "sets the title": "\u001b]0;evil\u0007",
  "overwrites the line": `ok\r${FORGED}`,
  "forges a line": `x\n${FORGED}`,
  "forges a line of the log": `x\r\n{"level":"error","message":"${FORGED}"}`,
  "forges a line for JavaScript": `x\u2028${FORGED}\u2029${FORGED}`,
  "goes back": "abc\b\b\bxyz\u007f",
  "turns the direction around": "\u202egnp.exe\u202c \u2066x\u2069 \u061c\u200f",
  "is a vertical tab or form feed": `x\u000b${FORGED}\u000c${FORGED}\u0085${FORGED}`,
  "is a script": "<script>alert(1)</script>",
  "leaves an attribute": `"><img src=x onerror=alert(1)>'onmouseover='alert(1)`,
  "leaves a title or style": "</title></style></td></textarea><svg onload=alert(1)>",
  "is an entity": "&lt;b&gt;&#60;script&#62;",
  "is SQL": "'; DROP TABLE events; --",
  "is a formula": '=HYPERLINK("https://evil.example";"bank")',
  "is a command as a formula": "=cmd|'/C calc'!A0",
  "begins a cell with a formula": "x;=cmd|'/C calc'!A0; @SUM(1+1)*cmd\t=1+1",
  "is a signed formula": "+1+1",
  "is a negative formula": "-1+1",
  "is a formula by its sign": "@SUM(1)",
  "is a wide formula": "\uff1d1+1",
  "is a formula behind a tab": "\t=1+1",
  "leaves a cell": `","=1+1","`,
} as const;

export const STEERING =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)/;

/** Number of characters of a bad line that a test reports, enough to find the line. */
const TOLD_CHARS = 120;

/** Returns the lines of an output that control a terminal or imitate another program's line. */
export function badLines(output: string): string[] {
  const isBad = (line: string): boolean =>
    STEERING.test(line) || line.startsWith(FORGED) || line.startsWith('{"level":"error","message":"FORGED"');
  return output.split(/\r?\n/).flatMap((line) => (isBad(line) ? [JSON.stringify(line).slice(0, TOLD_CHARS)] : []));
}
