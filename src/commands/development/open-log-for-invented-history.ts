import type { EventLog } from "../../log/event-log.ts";
import type { Clock } from "../../platform/clock-ids-and-timers.ts";
import { omitUndefined } from "../../platform/omit-undefined.ts";
import { createVisitorSketch } from "../../privacy/hash-visitor-for-counting.ts";
import { createPersonalCode } from "../../template/short-link.ts";
import { parseTemplate, render, toTemplateNames } from "../../template/template.ts";
import { linksIn } from "../../../projections/link-keys-and-text-links.ts";
import { toPersonalLinks } from "../../links/add-and-personalize-links.ts";
import { readServedConfig } from "../shared/command.ts";
import type { Terminal } from "../shared/terminal-answers-and-exit-codes.ts";

/**
 * Opens the configured log for a program that fills it with an invented history. Events get the times of `clock`, and
 * the same code makes them as in a service.
 */
export async function openLogForHistory(terminal: Terminal, clock: Clock) {
  const config = await readServedConfig(terminal);
  const { openReachlog } = await import("../../service/open-reachlog.ts");
  const reachlog = await openReachlog(config, { clock });
  const { eventLog, keyring, hashesOf } = reachlog;
  const placeVisitor = createVisitorSketch(keyring.keys, clock);
  const linkBase = config.outreach.template?.linkBase;
  return {
    append(stream: string, events: readonly { readonly type: string; readonly data: object }[], caller: string) {
      // The log's codec checks each event against its schema.
      return eventLog.append(stream, events as Parameters<EventLog["append"]>[1], { caller });
    },
    head: () => eventLog.store.head(),
    openTemplate(text: string, name: string) {
      const template = parseTemplate(text, linkBase, name);
      return {
        names: toTemplateNames(template),
        write(recipient: { id: string; username: string }, about: { name: string; fields: object }, secret?: string) {
          const fields = about.fields as Readonly<Record<string, string>>;
          const to = { key: recipient.id, username: recipient.username, name: about.name, fields };
          const rendered = render(template, to);
          if (!rendered.ok) throw new Error(`the template has a field without a value: ${rendered.reason}`);
          const { variant, links } = rendered;
          const own = secret === undefined ? undefined : toPersonalLinks(links, secret);
          const text =
            own && secret !== undefined ? render(template, to, (link) => createPersonalCode(secret, link)) : rendered;
          if (!text.ok) throw new Error("the template fits its own links only");
          const ownCodes = own?.personal_links.map(({ code }) => code) ?? [];
          const intent = { text: text.text, links: [...linksIn(rendered.text)], variant, ...omitUndefined(own ?? {}) };
          return { variant, shared: links, ownCodes, intent };
        },
      };
    },
    placeVisitor: async (link: string, visitor: { readonly ip: string; readonly userAgent: string }) =>
      placeVisitor(link, visitor),
    hashesOf,
    [Symbol.asyncDispose]: () => reachlog[Symbol.asyncDispose](),
  };
}
