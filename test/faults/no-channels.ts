/** Settings of a service without channels: its log then has events of requests and no outcomes. */
export const NO_CHANNELS = {
  META_PIXEL_ID: "",
  META_ACCESS_TOKEN: "",
  CHAT_WEBHOOK_URL: "",
  TELEGRAM_BOT_TOKEN: "",
  TELEGRAM_CHAT_ID: "",
};
