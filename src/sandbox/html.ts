const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}

const STYLE = `:root{color-scheme:light dark;--line:light-dark(#dfe3e8,#3a4250);--back:light-dark(#f6f7f9,#171b21);
--card:light-dark(#fff,#20262e);--on:light-dark(#b3261e,#ff8a80)}
body{font:15px/1.5 system-ui,sans-serif;margin:0;background:var(--back)}
main{max-width:64rem;margin:2rem auto;padding:0 1rem}h2{margin:2rem 0 .5rem;font-size:1.1rem}
.card{max-width:26rem;background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1.2rem 1.6rem;margin:3rem auto}
table{border-collapse:collapse;width:100%;background:var(--card);font-size:.9rem}
td,th{border:1px solid var(--line);padding:.3rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}td:not(:last-child){overflow-wrap:normal}th{white-space:nowrap}h1{font-size:1.6rem}
button,select,input{font:inherit;padding:.2rem .6rem;margin:.1rem}button.on{color:var(--on);font-weight:600}
form.row{display:flex;flex-wrap:wrap;gap:.3rem}label{display:block;margin:.3rem 0}`;

/** A page with no script and nothing from elsewhere. `body` is HTML. */
export function htmlPage(title: string, body: string, refreshSeconds?: number): string {
  const refresh = refreshSeconds === undefined ? "" : `<meta http-equiv="refresh" content="${refreshSeconds}">`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
${refresh}<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>`;
}
