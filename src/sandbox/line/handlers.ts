import { http, HttpResponse } from "msw";
import { failed, monthlyLimit, tooMany, unauthorized } from "./answers.ts";
import { pushFault, type Push } from "./push.ts";
import { acceptedBefore, takeTurn, type Accepted, type LineState } from "./state.ts";

/** Where the handlers are. */
const ORIGIN = "https://api.line.me";

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** One official account, and the one user who is its friend. */
export function lineHandlers(state: LineState) {
  return [
    http.post(`${ORIGIN}/v2/bot/message/push`, async ({ request }) => {
      if (!isKnown(state, request)) return unauthorized();
      if (!takeTurn(state)) return tooMany();
      return push(state, request);
    }),
    http.get(`${ORIGIN}/v2/bot/info`, ({ request }) =>
      isKnown(state, request)
        ? HttpResponse.json({ userId: "Ub0t", basicId: "@sandbox", displayName: "Sandbox", chatMode: "bot" })
        : unauthorized(),
    ),
  ];
}

function isKnown({ accessToken }: LineState, { headers }: Request): boolean {
  return /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1] === accessToken;
}

async function push(state: LineState, request: Request): Promise<Response> {
  const key = request.headers.get("x-line-retry-key");
  if (key !== null && !UUID.test(key)) return failed(400, "The retry key is invalid");
  const body: unknown = await request.json().catch(() => undefined);
  if (body === undefined) return failed(400, "The request body could not be parsed as JSON (line: 1, column: 1)");
  const fault = pushFault(body);
  if (fault !== undefined) return failed(400, "The request body has 1 error(s)", [fault]);
  const before = key === null ? undefined : acceptedBefore(state, key);
  if (before !== undefined) return accept(409, before);
  const { to, messages } = body as Push;
  if (to !== state.to) return failed(400, "Failed to send messages");
  if (messages.length > state.quota) return monthlyLimit();
  state.quota -= messages.length;
  const at = state.clock.now();
  const sentMessages = messages.map(({ text }) => {
    state.messages.add({ to, text, at });
    return { id: String(461_230_966_842_064_000n + BigInt(state.messages.total)), quoteToken: "sandboxQuoteToken" };
  });
  const accepted = { requestId: crypto.randomUUID(), sentMessages, at };
  if (key !== null) state.accepted.set(key, accepted);
  return accept(200, accepted);
}

/** The second time it is only told what became of the first. */
function accept(status: 200 | 409, { requestId, sentMessages }: Accepted): Response {
  if (status === 200) return HttpResponse.json({ sentMessages }, { headers: { "x-line-request-id": requestId } });
  return HttpResponse.json(
    { message: "The retry key is already accepted", sentMessages },
    { status, headers: { "x-line-accepted-request-id": requestId } },
  );
}
