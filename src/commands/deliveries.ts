import { group } from "./command.ts";
import { discard } from "./deliveries/discard.ts";
import { lag } from "./deliveries/lag.ts";
import { list } from "./deliveries/list.ts";
import { resume } from "./deliveries/resume.ts";
import { retry } from "./deliveries/retry.ts";
import { show } from "./deliveries/show.ts";
import { test } from "./deliveries/test.ts";

export const deliveries = group(
  "deliveries",
  "show what is pending, suspended or dead, and decide about it",
  [list, show, lag, retry, discard, resume, test],
  "All of them work beside a running service.",
);
