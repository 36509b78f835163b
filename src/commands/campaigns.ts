import { group } from "./shared/command.ts";

export const campaigns = group(
  "campaigns",
  "create, change, end, list, show or count campaigns",
  [],
  "All of them work beside a running service.",
);
