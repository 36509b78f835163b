/** A click of about 300 bytes, as a link shortener posts it. */
export const CLICK = JSON.stringify({
  event: "click",
  domain: "go.example",
  short_code: "spring-26",
  original_url: "https://shop.example/products/42?utm_source=x&utm_medium=social&fbclid=IwAR0abcdefghij",
  ip: "203.0.113.7",
  user_agent: "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0",
});

/**
 * The same click with a placeholder for its time of sending in µs since the epoch, which http-load-client.ts fills in.
 */
export const STAMPED_CLICK = CLICK.replace("fbclid=", `sent=${"0".repeat(16)}&fbclid=`);

export const CLICK_PATH = "/api/tracking/event";
