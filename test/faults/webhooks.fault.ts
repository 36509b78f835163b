// Delivers all events; the ordinary run of this test delivers a part of them.
import "../process/webhooks.test.ts";
