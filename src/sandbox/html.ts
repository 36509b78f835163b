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

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:0;color:#1c2430;background:#f6f7f9}
main{max-width:60rem;margin:2rem auto;padding:0 1rem}.card{max-width:26rem;background:#fff;border:1px solid #dfe3e8;
border-radius:.6rem;padding:1.2rem 1.6rem;margin:3rem auto}table{border-collapse:collapse;width:100%;background:#fff}
td,th{border:1px solid #dfe3e8;padding:.3rem .5rem;text-align:left;overflow-wrap:anywhere}button{padding:.35rem .8rem;margin:.15rem}
label{display:block;margin:.3rem 0}`;

/** A page with no script and nothing from elsewhere. `body` is HTML. */
export function htmlPage(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><main>${body}</main></body></html>`;
}
