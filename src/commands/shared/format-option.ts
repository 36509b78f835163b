import { FORMAT_NAMES } from "../../log/export-formats.ts";
import { Option } from "./command.ts";

export const formatOption = () =>
  new Option("--format <name>", "the form of the file").choices(FORMAT_NAMES).default("jsonl" as const);
