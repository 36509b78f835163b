import type { InboxMessage, Page, SentDm } from "./network.ts";
import { unreadable } from "./x-bodies.ts";
import { readConversation, readInbox, type MessagePage } from "./x-events.ts";
import { FRAME_BYTES, optional, sized, type PageSize, type Wanted } from "./x-page.ts";
import type { XRead } from "./x-read.ts";

/** https://docs.x.com/x-api/direct-messages/get-dm-events */
const MESSAGES: PageSize = { least: 1, most: 100 };

/** 10,000 characters outside of the first plane, each escaped as two of `\uXXXX`: 12 bytes; and the other fields. */
const MESSAGE_BYTES_MAX = 125_000;

/** Pages that one read of a conversation takes: X may filter by type after it has cut the page. */
const PAGES_MAX = 3;

/** Fields that both versions of X's specification know: `sender_id` comes with the expansion only. */
const FIELDS = "id,event_type,text,created_at,dm_conversation_id";
const QUERY = { event_types: "MessageCreate", expansions: "sender_id" };

/**
 * The newest messages of one conversation. Reads on where X gives fewer than were asked for and says that there are
 * more: to miss one is to call it absent.
 */
export async function readWhole(read: XRead, token: string, recipientId: string, limit: number): Promise<SentDm[]> {
  const path = `/2/dm_conversations/with/${recipientId}/dm_events`;
  const { size } = sized({ limit }, MESSAGES);
  const found: SentDm[] = [];
  let cursor: string | undefined;
  for (let page = 1; page <= PAGES_MAX; page++) {
    const wanted = { size: size - found.length, cursor };
    const { messages, next } = readConversation(await ask(read, token, path, `${FIELDS},entities`, wanted));
    found.push(...messages);
    if (found.length >= size || next === undefined) return found.slice(0, size);
    cursor = next;
  }
  throw unreadable();
}

/** A page of all conversations. Without `entities`: the links of a stranger's message may be ten times its text. */
export async function readNewest(read: XRead, token: string, page: Page): Promise<MessagePage<InboxMessage>> {
  return readInbox(await ask(read, token, "/2/dm_events", FIELDS, sized(page, MESSAGES)));
}

function ask(read: XRead, token: string, path: string, fields: string, { size, cursor }: Wanted): Promise<string> {
  return read(token, {
    path,
    query: {
      max_results: String(size),
      "dm_event.fields": fields,
      ...QUERY,
      ...optional({ pagination_token: cursor }),
    },
    answerBytesMax: FRAME_BYTES + size * MESSAGE_BYTES_MAX,
  });
}
