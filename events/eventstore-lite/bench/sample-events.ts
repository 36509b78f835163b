import { randomUUID } from "node:crypto";
import type { NewEvent } from "../src/index.ts";

const META = {
  caller: "shop",
  request_id: "019a9f00-0000-7000-8000-000000000001",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
};

/** Makes events of some 300 bytes of data, like those of a request of an ordinary service. */
export function makeEvents(count: number): readonly NewEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    type: "ItemAdded",
    data: {
      sku: `tea-${index}`,
      page: "https://shop.example/products/42?utm_source=x&utm_medium=social&fbclid=IwAR0abcdefghij",
      ip: "203.0.113.7",
      user_agent:
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0",
    },
    meta: META,
  }));
}
