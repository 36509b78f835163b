/** Settings of a service without channels. Its log then has no outcomes of dispatches. */
export const NO_CHANNELS = {
  META_PIXEL_ID: "",
  META_ACCESS_TOKEN: "",
  CHAT_WEBHOOK_URL: "",
  TELEGRAM_BOT_TOKEN: "",
  TELEGRAM_CHAT_ID: "",
};
